// The critical path over the time line: the calls and computation that make the run as long as it is.

import { layer } from "./layer.js";

/** Pixels that each change of the rank needs to be drawn. */
const JUMP = 12;
const canvas = document.getElementById("line");

export const path = layer("path", (shown) => {
  for (const lane of shown?.lanes ?? []) {
    lane.parts = lane.parts && Uint8Array.from(atob(lane.parts), (one) => one.charCodeAt(0));
  }
  const total = (shown?.lanes ?? []).reduce((sum, lane) => sum + lane.total_s, 0);
  canvas.dataset.path = String(total);
});

/** Draws it: a line along each lane, and from lane to lane where the path goes on with another rank. */
export function drawPath(pen, { x, top, wide, left, colour, of }) {
  const shown = path.of(of);
  if (shown === null) return;
  pen.fillStyle = colour;
  const all = [];
  for (const lane of shown.lanes) {
    const y = top(lane.location);
    if (y === undefined) continue;
    for (const [from, lasts] of lane.stretches ?? []) {
      all.push({ from, until: from + lasts, y });
      pen.fillRect(x(from), y, Math.max(1, x(from + lasts) - x(from)), 3);
    }
    const step = (wide - left) / (lane.parts?.length ?? 1);
    (lane.parts ?? []).forEach((share, part) => {
      if (share === 0) return;
      pen.globalAlpha = 0.25 + (0.75 * share) / 255;
      pen.fillRect(left + part * step, y, step + 0.5, 3);
    });
    pen.globalAlpha = 1;
  }
  all.sort((a, b) => a.from - b.from);
  const steps = all.slice(1).map((next, at) => [all[at], next]);
  const jumps = steps.filter(([before, next]) => before.until === next.from && before.y !== next.y);
  // Where they are many, they would hide what is below.
  if (jumps.length > (wide - left) / JUMP) return;
  for (const [before, next] of jumps) {
    pen.fillRect(x(next.from) - 0.75, Math.min(before.y, next.y), 1.5, Math.abs(before.y - next.y) + 3);
  }
}
