// Over time: how much of something all chosen ranks have together.

import { ask } from "./connection.js";
import { onCanvas } from "./pen.js";
import { curves, legend, stack, sums } from "./sampled.js";
import { nameOf, run, state } from "./state.js";
import { amount, colourOf, moment, ticks } from "./units.js";

const LEFT = 76;
const TOP = 16;
const BOTTOM = 20;
const TALL = 98;
const canvas = document.getElementById("course");
const select = document.getElementById("curve");
let shown = null;

/** Asks for the course of what is looked at. */
export async function show() {
  select.value = state.curve;
  const answer = state.curve === "samples" ? await ofSamples() : await ask({
    ask: "course",
    from_s: state.from,
    until_s: state.until,
    first: state.first,
    last: state.last,
    metric: state.curve,
    width: Math.min(700, Math.round(Math.max(100, canvas.clientWidth - LEFT))),
  });
  if (answer === null) return;
  shown = answer;
  legend("course-functions", shown.row ? shown : null);
  const most = Math.max(...shown.rates, 0);
  const count = state.last - state.first + 1;
  const of = shown.unit === "s"
    ? `At most ${Number(most.toPrecision(3))} of ${count} at a moment, ${Number((shown.total / (shown.until_s - shown.from_s)).toPrecision(3))} on average`
    : `${amount(shown.total, shown.unit)} in sight, at most ${amount(most, shown.unit)} a second`;
  const doubt = shown.unit === "s" ? "the longest waits alone are counted" : "nothing is counted: so many calls are not read. Choose less";
  document.getElementById("course-note").textContent =
    shown.partly_counted === 0 ? of : `${of}. Of ${shown.partly_counted} threads ${doubt}`;
  canvas.dataset.total = String(shown.total);
  draw();
}

/** The course of samples, with curves of its own by function. */
async function ofSamples() {
  const answer = await curves();
  if (answer === null) return null;
  const [row] = answer.rows;
  const counts = sums(row);
  const second = counts.length / (answer.until_s - answer.from_s);
  return {
    ...answer,
    row,
    metric: "samples",
    unit: "",
    rates: counts.map((count) => count * second),
    total: counts.reduce((sum, count) => sum + count, 0),
  };
}

/** Draws it again, in the colours of now. */
export function draw() {
  if (shown !== null) onCanvas(canvas, TALL, paint);
}

function paint(pen, wide, tall) {
  const style = getComputedStyle(canvas);
  const { rates, from_s, until_s } = shown;
  const most = Math.max(...rates, 0);
  const step = (wide - LEFT) / rates.length;
  const bottom = tall - BOTTOM;
  pen.fillStyle = style.getPropertyValue(`--${colourOf(shown, run)}`);
  if (shown.row && most > 0) {
    const second = rates.length / (until_s - from_s);
    stack(pen, shown.row, { step, bottom, high: bottom - TOP, most: most / second, style });
  } else rates.forEach((rate, part) => {
    const high = most > 0 ? (rate / most) * (bottom - TOP) : 0;
    if (high > 0) pen.fillRect(LEFT + part * step, bottom - high, step + 0.5, high);
  });
  pen.fillStyle = style.color;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const top = shown.unit === "s" ? String(Number(most.toPrecision(3))) : `${amount(most, shown.unit)}/s`;
  pen.fillText(top, LEFT - 8, TOP, LEFT - 10);
  pen.fillText("0", LEFT - 8, bottom, LEFT - 10);
  pen.textAlign = "left";
  pen.fillText(nameOf(shown.metric), LEFT, 6);
  pen.textAlign = "center";
  const length = until_s - from_s;
  for (const tick of ticks(from_s, until_s, 8)) {
    const x = LEFT + ((tick - from_s) / length) * (wide - LEFT);
    if (x > LEFT + 20 && x < wide - 24) pen.fillText(moment(tick, length), x, tall - BOTTOM / 2);
  }
}
