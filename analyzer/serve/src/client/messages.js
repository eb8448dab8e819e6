// Messages over the time line: from the call that sends to the end of the one that receives.

import { layer } from "./layer.js";

/** Length of an arrow's head, pixels. */
const HEAD = 5;
const canvas = document.getElementById("line");

export const messages = layer("messages", (shown) => {
  canvas.dataset.messages = String(shown?.messages.length ?? 0);
});

/** Draws them. `middle` is of a lane. */
export function drawMessages(pen, { x, middle, colour, of }) {
  pen.strokeStyle = pen.fillStyle = colour;
  pen.globalAlpha = 0.6;
  for (const [from, sent, to, received] of messages.of(of)?.messages ?? []) {
    const [begin, end] = [middle(from), middle(to)];
    if (begin === undefined || end === undefined || begin === end) continue;
    const [left, right] = [x(sent), x(received)];
    pen.beginPath();
    pen.moveTo(left, begin);
    pen.lineTo(right, end);
    pen.stroke();
    const towards = Math.atan2(end - begin, right - left);
    pen.beginPath();
    pen.moveTo(right, end);
    for (const side of [-0.4, 0.4]) pen.lineTo(right - HEAD * Math.cos(towards + side), end - HEAD * Math.sin(towards + side));
    pen.fill();
  }
  pen.globalAlpha = 1;
}
