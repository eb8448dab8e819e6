// Time line: calls one by one where they are few, else shares of kinds of time; waits with an arrow to who was late.

import { chain } from "./chain.js";
import { ask } from "./connection.js";
import { byKeys, within } from "./cursor.js";
import { drawMessages, messages } from "./messages.js";
import { drawPath, path } from "./path.js";
import { onCanvas } from "./pen.js";
import { nameAt, positionOf } from "./places.js";
import { curves, isSampled, legend, stack, sums } from "./sampled.js";
import { change, pan, run, state, zoom } from "./state.js";
import { cut, duration, moment, ticks, who } from "./units.js";

const LEFT = 76;
const BOTTOM = 20;
const LANE = 26;
/** How texts of changes of the recording begin. */
const CHANGE = "recording: ";
/** Pixels towards a rank that is not shown. */
const AWAY = 12;
/** Steps of arrow keys from the begin to the end, where single calls are not told. */
const STEPS = 50;
/** Ranks that are shown at a time. */
export const LANES = 16;
const canvas = document.getElementById("line");
const box = document.getElementById("sampled");
let shown = null;
/** Curves of samples, if they are wanted. */
let functions = null;
let asked = 0;
let grip = null;
/** What keys move: a location, a moment, and the number of a call there. */
let cursor = { location: 0, at: 0, number: null, name: null, run: 0 };

/** Moves it there. */
function put(location, at, number = null) {
  cursor = { location, at, number, name: nameAt(location), run: run.number };
}

/** Asks for the time line of what is looked at. */
export async function show() {
  // Positions are others in a run that has gone on.
  if (cursor.name !== null && cursor.run !== run.number) put(positionOf(cursor.name) ?? 0, cursor.at, cursor.number);
  const question = {
    from_s: state.from,
    until_s: state.until,
    first: state.first,
    last: Math.min(state.last, state.first + LANES - 1),
    width: Math.min(700, Math.round(Math.max(100, canvas.clientWidth - LEFT))),
  };
  asked += 1;
  const mine = asked;
  const over = path.show(question, draw);
  box.checked = state.sampled !== "";
  box.closest("label").hidden = !isSampled();
  const [answer, found] = await Promise.all([ask({ ...question, ask: "line" }), box.checked ? curves() : null]);
  if (mine === asked) functions = found;
  if (answer !== null) take(answer);
  await over;
  if (mine !== asked) return;
  const { width, ...stretch } = question;
  // Of calls that are not told, messages would hide what is below.
  const areCalls = shown?.lanes.some(({ calls }) => calls) ?? false;
  await messages.show(areCalls ? stretch : null, draw);
}

function take(answer) {
  for (const lane of answer.lanes) {
    lane.parts = lane.parts && Uint8Array.from(atob(lane.parts), (one) => one.charCodeAt(0));
  }
  shown = answer;
  const all = (of) => String(answer.lanes.reduce((sum, lane) => sum + (of(lane)?.length ?? 0), 0));
  canvas.dataset.calls = all(({ calls }) => calls);
  canvas.dataset.samples = all(({ samples }) => samples);
  const chosen = state.last - state.first + 1;
  const told = Number(all(({ waits }) => waits));
  const inSight = answer.lanes.reduce((sum, lane) => sum + lane.waits_in_sight, 0);
  document.getElementById("line-note").textContent = [
    cut(answer.lanes.length, chosen, "chosen rows", "Keys Up and Down lead to the others."),
    cut(told, inSight, "waits, the longest", "Zoom in to see others."),
    answer.lanes.some((lane) => lane.unknown_waits) ? "Other waits were shorter: they are not kept." : "",
    answer.lanes.some((lane) => lane.samples === null && curveOf(lane) === null) ? "There are too many samples to be shown one by one: zoom in." : "",
  ].filter((text) => text !== "").join(" ");
  draw();
}

/** Draws the time line again, in the colours of now. */
export function draw() {
  if (shown === null) return;
  const drawn = shown.lanes.map(curveOf).filter((row) => row !== null);
  legend("line-functions", drawn.length > 0 ? functions : null);
  canvas.dataset.curves = String(drawn.flatMap(sums).reduce((sum, count) => sum + count, 0));
  document.getElementById("line-at").textContent = isByKey() && shown.lanes.length > 0 ? tellPlace() : "";
  onCanvas(canvas, shown.lanes.length * LANE + BOTTOM, paint);
}

function paint(pen, wide, tall) {
  const style = getComputedStyle(canvas);
  const colours = shown.kinds.map((kind) => style.getPropertyValue(`--${kind}`));
  pen.textBaseline = "middle";
  const length = shown.until_s - shown.from_s;
  const x = (ns) => LEFT + (Math.min(length, Math.max(0, ns / 1e9)) / length) * (wide - LEFT);
  const most = Math.max(...shown.lanes.flatMap((lane) => sums(curveOf(lane) ?? [[0]])));
  shown.lanes.forEach((lane, at) => {
    const top = at * LANE;
    pen.fillStyle = style.color;
    pen.textAlign = "right";
    pen.fillText(lane.thread ? `${lane.rank}.${lane.thread}` : `rank ${lane.rank}`, LEFT - 8, top + LANE / 2, LEFT - 10);
    const curve = curveOf(lane);
    if (curve !== null) stack(pen, curve, { step: (wide - LEFT) / curve[0].length, bottom: top + LANE - 4, high: LANE - 6, most, style });
    if (lane.calls) {
      drawCalls(pen, lane, top, x, colours, curve === null);
      drawSamples(pen, lane, top, x);
    }
    else if (curve === null) drawParts(pen, lane, top, wide, colours);
    pen.fillStyle = colours[4];
    for (const [since, , , , , , , lasted] of lane.waits) {
      pen.fillRect(x(since), top + LANE - 9, Math.max(1, x(since + lasted) - x(since)), 4);
    }
  });
  const tops = new Map(shown.lanes.map((lane, at) => [lane.location, at * LANE]));
  const top = (location) => tops.get(location);
  const middle = (location) => tops.has(location) ? tops.get(location) + LANE / 2 : undefined;
  drawPath(pen, { x, top, wide, left: LEFT, colour: style.color, of: shown });
  drawMessages(pen, { x, middle, colour: style.color, of: shown });
  drawArrows(pen, x, colours[4]);
  if (isByKey() && shown.lanes.length > 0) drawCursor(pen, x);
  pen.fillStyle = style.color;
  pen.textAlign = "center";
  for (const tick of ticks(shown.from_s, shown.until_s, 8)) {
    const place = LEFT + ((tick - shown.from_s) / length) * (wide - LEFT);
    if (place > LEFT + 20 && place < wide - 24) pen.fillText(moment(tick, length), place, tall - BOTTOM / 2);
  }
}

/** The curves of a lane that has no marks of single samples; null if there are none, or no sample in them. */
function curveOf(lane) {
  if (functions?.from_s !== shown.from_s || functions.until_s !== shown.until_s || (lane.calls && lane.samples)) return null;
  const row = functions.rows[1 + functions.locations.indexOf(lane.location)];
  return functions.locations.includes(lane.location) && row.some((counts) => counts.some((count) => count > 0)) ? row : null;
}

/** In which function a lane was most often at a moment, s, if its curves tell. */
function mostly(lane, at) {
  const row = curveOf(lane);
  if (row === null) return "";
  const part = Math.floor(((at - shown.from_s) / (shown.until_s - shown.from_s)) * row[0].length);
  const counts = row.map((curve) => curve[part] ?? 0);
  const most = Math.max(...counts);
  return most === 0 ? "" : `, most samples in ${functions.functions[counts.indexOf(most)]?.name ?? "other functions"}`;
}

function drawCalls(pen, lane, top, x, colours, hasGround) {
  pen.textAlign = "left";
  pen.fillStyle = colours[0];
  pen.globalAlpha = 0.35;
  if (hasGround) pen.fillRect(x(0), top + 8, x(Infinity) - x(0), 6);
  pen.globalAlpha = 1;
  for (const [number, enter, lasted, kind, name] of lane.calls) {
    const [begin, end] = [x(enter), x(enter + lasted)];
    const wide = Math.max(1, end - begin);
    if (lasted === 0 && shown.texts[name].startsWith(CHANGE)) {
      drawChange(pen, begin, top);
      continue;
    }
    pen.fillStyle = colours[kind];
    pen.fillRect(begin, top + 3, wide, LANE - 7);
    if (state.call && state.call[0] === lane.location && state.call[1] === number) {
      pen.strokeStyle = getComputedStyle(canvas).color;
      pen.strokeRect(begin - 0.5, top + 2.5, wide + 1, LANE - 6);
    }
    if (wide > 50) {
      pen.fillStyle = "#000";
      pen.fillText(shown.texts[name], begin + 3, top + 10, wide - 6);
    }
  }
}

/** Where the thread was: a mark for each sample, and in wide gaps between calls the place with most of them. */
function drawSamples(pen, lane, top, x) {
  pen.fillStyle = getComputedStyle(canvas).color;
  const samples = lane.samples ?? [];
  for (const [time] of samples) pen.fillRect(x(time), top + 15, 1, 4);
  let [since, next] = [0, 0];
  for (const [, enter, lasted] of [...lane.calls, [0, Infinity, 0]]) {
    const counts = new Map();
    for (; next < samples.length && samples[next][0] <= enter; next += 1) {
      const text = samples[next][1];
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    const [most] = [...counts].sort((a, b) => b[1] - a[1]);
    const wide = x(enter) - x(since);
    if (most && wide > 60) pen.fillText(shown.texts[most[0]], x(since) + 3, top + 10, wide - 6);
    since = enter + lasted;
  }
}

/** A change of what is recorded: a flag. */
function drawChange(pen, at, top) {
  pen.fillStyle = getComputedStyle(canvas).color;
  pen.fillRect(at - 0.75, top, 1.5, LANE - 2);
  pen.beginPath();
  pen.moveTo(at, top);
  pen.lineTo(at + 7, top + 4);
  pen.lineTo(at, top + 8);
  pen.fill();
}

function drawParts(pen, lane, top, wide, colours) {
  const count = lane.parts.length / colours.length;
  const step = (wide - LEFT) / count;
  for (let part = 0; part < count; part += 1) {
    let bottom = top + LANE - 4;
    // Waiting is part of the others, and is drawn over them.
    for (let kind = 0; kind < 4; kind += 1) {
      const high = (lane.parts[part * colours.length + kind] / 255) * (LANE - 6);
      if (high <= 0) continue;
      pen.fillStyle = colours[kind];
      pen.fillRect(LEFT + part * step, bottom - high, step + 0.5, high);
      bottom -= high;
    }
    const waiting = (lane.parts[part * colours.length + 4] / 255) * (LANE - 6);
    pen.fillStyle = colours[4];
    if (waiting > 0) pen.fillRect(LEFT + part * step, bottom, step + 0.5, Math.min(waiting, top + LANE - 4 - bottom));
  }
}

/** From each wait to the call that came late, or the way to its rank. */
function drawArrows(pen, x, colour) {
  const lanes = new Map(shown.lanes.map((lane, at) => [lane.location, at]));
  pen.strokeStyle = colour;
  pen.lineWidth = 1.2;
  shown.lanes.forEach((lane, at) => {
    for (const [since, , , rank, late, enter, thread, lasted] of lane.waits) {
      if (late === null || lanes.get(late) === at || x(since + lasted) - x(since) < 3) continue;
      const [begin, low] = [x(since + lasted), at * LANE + LANE - 7];
      pen.beginPath();
      pen.moveTo(begin, low);
      if (lanes.has(late)) pen.lineTo(x(enter), lanes.get(late) * LANE + LANE / 2);
      // Who is not shown is above or below.
      else pen.lineTo(begin, low + (late < shown.lanes[0].location ? -AWAY : AWAY));
      pen.stroke();
      if (!lanes.has(late) && begin - x(since) > 120) {
        pen.fillStyle = "#000";
        pen.textAlign = "right";
        pen.fillText(who(rank, thread), begin - 3, at * LANE + 10, begin - x(since) - 60);
      }
    }
  });
  // The chain of the chosen call, over all others.
  pen.strokeStyle = pen.fillStyle = getComputedStyle(canvas).color;
  pen.lineWidth = 2.2;
  const ns = (seconds) => (seconds - shown.from_s) * 1e9;
  for (const step of chain) {
    const [from, to] = [lanes.get(step.at), lanes.get(step.late)];
    if (from === undefined || to === undefined) continue;
    pen.beginPath();
    pen.moveTo(x(ns(step.since)), from * LANE + LANE - 7);
    pen.lineTo(x(ns(step.until)), from * LANE + LANE - 7);
    pen.lineTo(x(ns(step.enter)), to * LANE + LANE / 2);
    pen.stroke();
    pen.beginPath();
    pen.arc(x(ns(step.enter)), to * LANE + LANE / 2, 3.5, 0, 2 * Math.PI);
    pen.fill();
  }
  pen.lineWidth = 1;
}

/** The middle of a call, s. */
const middleOf = ([, enter, lasted]) => shown.from_s + (enter + lasted / 2) / 1e9;

/** The lane and the call that keys are at, or the next ones that are shown. */
function place() {
  const at = shown.lanes.findIndex(({ location }) => location === cursor.location);
  const lane = shown.lanes[Math.max(at, 0)];
  const calls = lane.calls ?? [];
  const away = (call) => Math.max(0, Math.abs(middleOf(call) - cursor.at) - call[2] / 2e9);
  const nearest = (best, call) => (best === null || away(call) < away(best) ? call : best);
  const isIt = ([number]) => at >= 0 && number === cursor.number;
  const call = calls.find(isIt) ?? calls.reduce(nearest, null);
  return { top: Math.max(at, 0) * LANE, lane, calls, call };
}

function drawCursor(pen, x) {
  const { top, call } = place();
  const ns = (within(cursor.at, shown.from_s, shown.until_s) - shown.from_s) * 1e9;
  const [begin, end] = call === null ? [x(ns), x(ns)] : [x(call[1]), x(call[1] + call[2])];
  pen.strokeStyle = getComputedStyle(canvas).color;
  pen.lineWidth = 2.2;
  pen.strokeRect(begin - 2, top + 1, Math.max(1, end - begin) + 4, LANE - 3);
  pen.lineWidth = 1;
}

const tellCall = (call) => `${shown.texts[call[4]]} ${shown.texts[call[5]]}: ${duration(call[2] / 1e9)}`;

function tellPlace() {
  const { lane, call } = place();
  const name = who(lane.rank, lane.thread);
  return call === null
    ? `${name} at ${moment(cursor.at, shown.until_s - shown.from_s)}${mostly(lane, cursor.at)}. Enter zooms in.`
    : `${name}: ${tellCall(call)}. Enter opens it.`;
}

/** The lane and the call at a place. */
function found(event) {
  const lane = shown?.lanes[Math.floor(event.offsetY / LANE)];
  if (!lane || event.offsetX < LEFT) return {};
  const length = shown.until_s - shown.from_s;
  const ns = (position) => ((position - LEFT) / (canvas.clientWidth - LEFT)) * length * 1e9;
  const [least, most] = [ns(event.offsetX - 1), ns(event.offsetX + 1)];
  const call = lane.calls?.find(([, enter, lasted]) => enter <= most && enter + lasted >= least);
  const sample = lane.samples?.find(([time]) => time >= least && time <= most);
  return { lane, call, sample, at: shown.from_s + ns(event.offsetX) / 1e9 };
}

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  grip = { x: event.offsetX, from: state.from, until: state.until, moved: false };
});

canvas.addEventListener("pointermove", (event) => {
  if (grip !== null) {
    const moved = event.offsetX - grip.x;
    if (Math.abs(moved) < 4 && !grip.moved) return;
    grip.moved = true;
    const by = (moved / (canvas.clientWidth - LEFT)) * (grip.until - grip.from);
    change({ from: grip.from - by, until: grip.until - by });
    return;
  }
  const { lane, call, sample, at } = found(event);
  canvas.title = "";
  if (lane) canvas.title = `${who(lane.rank, lane.thread)}${sample ? ` in ${shown.texts[sample[1]]}` : mostly(lane, at)}`;
  if (call) canvas.title = tellCall(call);
});

canvas.addEventListener("pointerup", (event) => {
  const isClick = grip !== null && !grip.moved;
  grip = null;
  if (!isClick) return;
  const { lane, call } = found(event);
  openCall(lane, call ?? null);
});

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const part = (event.offsetX - LEFT) / (canvas.clientWidth - LEFT);
  if (event.shiftKey) pan(Math.sign(event.deltaY + event.deltaX) * 0.15);
  else zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, state.from + part * (state.until - state.from));
}, { passive: false });

box.addEventListener("change", () => change({ sampled: box.checked ? "1" : "" }));

/** Keys go on from what a location did at a moment. */
export function aim(location, at) {
  put(location, at);
}

/** Shows the next or the former ranks. */
export function move(lanes) {
  const count = Math.min(LANES, run.locations);
  const first = Math.min(Math.max(0, state.first + lanes), run.locations - count);
  change({ first, last: first + count - 1 });
}

/** Shows all about a call of a lane; about none if there is none. */
function openCall(lane, call) {
  if (call === null) {
    change({ call: null });
    return;
  }
  put(lane.location, middleOf(call), call[0]);
  change({ call: [cursor.location, cursor.number, cursor.at] });
}

/** To the next call of a lane, or the former one; beyond what is shown, time goes on. */
const across = (by) => () => {
  if (shown === null || shown.lanes.length === 0) return;
  const { lane, calls, call } = place();
  const next = calls[calls.indexOf(call) + by];
  const length = state.until - state.from;
  const at = next ? middleOf(next) : within(cursor.at, state.from, state.until) + (call ? 0 : (by * length) / STEPS);
  put(lane.location, within(at, 0, run.end), (next ?? call)?.[0] ?? null);
  if (!next && (call || at < state.from || at > state.until)) pan(by / 2);
};

/** To another rank, also to one that is not shown yet. */
const down = (by) => () => {
  if (shown === null || shown.lanes.length === 0) return;
  const { lane, call } = place();
  const location = within(lane.location + by, 0, run.locations - 1);
  put(location, call === null ? cursor.at : middleOf(call));
  if (!shown.lanes.some((one) => one.location === location)) move(by);
};

const isByKey = byKeys(canvas, {
  ArrowLeft: across(-1),
  ArrowRight: across(1),
  ArrowUp: down(-1),
  ArrowDown: down(1),
  Enter: () => {
    if (shown === null || shown.lanes.length === 0) return;
    const { lane, call } = place();
    if (call === null) zoom(0.25, within(cursor.at, state.from, state.until));
    else openCall(lane, call);
  },
}, draw);
