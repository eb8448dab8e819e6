// Run at a glance: ranks by time, the darker the more of something.

import { ask } from "./connection.js";
import { byKeys, within } from "./cursor.js";
import { onCanvas } from "./pen.js";
import { change, nameOf, run, state } from "./state.js";
import { amount, colourOf, duration, moment, ticks } from "./units.js";

const LEFT = 76;
const BOTTOM = 20;
/** Steps of arrow keys from the begin to the end. */
const STEPS = 100;
const canvas = document.getElementById("heat");
const box = document.getElementById("alike");
let shown = null;
let drag = null;
/** What keys move. */
const cursor = { row: 0, cell: 0 };
/** The cell at which keys began to mark a time. */
let mark = null;

/** Asks for the map of what is looked at. */
export async function show() {
  const wide = Math.max(100, canvas.clientWidth - LEFT);
  const answer = await ask({
    ask: state.alike === "" ? "heat" : "alike",
    from_s: state.from,
    until_s: state.until,
    metric: state.metric,
    width: Math.min(600, Math.round(wide)),
    height: 64,
  });
  if (answer === null) return;
  shown = { ...answer, cells: Uint8Array.from(atob(answer.cells), (one) => one.charCodeAt(0)) };
  canvas.dataset.total = String(answer.total);
  canvas.dataset.rows = String(answer.rows.length);
  box.checked = state.alike !== "";
  document.getElementById("heat-note").textContent = answer.partly_counted === 0
    ? "" : `Of ${answer.partly_counted} threads ${answer.unit === "s" ? "the longest waits alone are counted" : "not all is counted: zoom in"}`;
  draw();
}

/** Draws the map again, in the colours of now. */
export function draw() {
  if (shown === null) return;
  cursor.row = within(cursor.row, 0, shown.rows.length - 1);
  cursor.cell = within(cursor.cell, 0, shown.width - 1);
  document.getElementById("heat-at").textContent = isByKey() && shown.rows.length > 0 ? tellPlace() : "";
  const high = Math.min(24, Math.max(4, Math.floor(320 / shown.rows.length)));
  onCanvas(canvas, shown.rows.length * high + BOTTOM, (...pen) => paint(...pen, high));
}

function paint(pen, wide, tall, high) {
  const { rows, width, cells } = shown;
  const style = getComputedStyle(canvas);
  const step = (wide - LEFT) / width;
  pen.fillStyle = style.getPropertyValue(`--${colourOf(shown, run)}`);
  rows.forEach((row, at) => {
    for (let cell = 0; cell < width; cell += 1) {
      const shade = cells[at * width + cell];
      if (shade === 0) continue;
      pen.globalAlpha = 0.06 + (0.94 * shade) / 255;
      pen.fillRect(LEFT + cell * step, at * high, step + 0.5, high - (high > 6 ? 1 : 0));
    }
  });
  pen.globalAlpha = 1;
  pen.fillStyle = style.color;
  const skip = Math.ceil(14 / high);
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  rows.forEach((row, at) => {
    const label = state.alike === "" || row.count === 1 ? row.label : `${row.count} alike`;
    if (at % skip === 0) pen.fillText(label, LEFT - 8, at * high + high / 2, LEFT - 10);
  });
  pen.strokeStyle = style.color;
  rows.forEach((row, at) => {
    const isAll = state.first === 0 && state.last === run.locations - 1;
    if (!isAll && row.last >= state.first && row.first <= state.last) {
      pen.strokeRect(LEFT - 4, at * high, 2, high - 1);
    }
  });
  pen.textAlign = "center";
  const length = shown.until_s - shown.from_s;
  for (const tick of ticks(shown.from_s, shown.until_s, 8)) {
    const x = LEFT + ((tick - shown.from_s) / length) * (wide - LEFT);
    if (x > LEFT + 20 && x < wide - 24) pen.fillText(moment(tick, length), x, tall - BOTTOM / 2);
  }
  if (isByKey()) {
    pen.lineWidth = 2;
    pen.strokeRect(LEFT + cursor.cell * step - 1, cursor.row * high, Math.max(3, step), high);
    pen.lineWidth = 1;
  }
  const marked = drag ?? markedBy(step);
  if (marked !== null) {
    pen.globalAlpha = 0.25;
    pen.fillRect(Math.min(marked.from, marked.to), 0, Math.abs(marked.to - marked.from), tall - BOTTOM);
    pen.globalAlpha = 1;
  }
}

/** The first cell that keys have marked, and the one after the last. */
const markedCells = () => (mark === null ? null : [Math.min(mark, cursor.cell), Math.max(mark, cursor.cell) + 1]);

function markedBy(step) {
  const cells = isByKey() ? markedCells() : null;
  return cells && { from: LEFT + cells[0] * step, to: LEFT + cells[1] * step };
}

/** The time at which a cell begins. */
const begin = (cell) => shown.from_s + (cell / shown.width) * (shown.until_s - shown.from_s);

function tellCell(row, cell) {
  const part = shown.cells[row * shown.width + cell] / 255;
  const here = shown.most === null ? `${(100 * part).toFixed(0)} %` : amount(part * shown.most, shown.unit);
  return `${here} ${nameOf(shown.metric)}; ${amount(shown.rows[row].total, shown.unit)} in all`;
}

function tellPlace() {
  const { row, cell } = cursor;
  const cells = markedCells();
  const enter = cells === null ? "Enter chooses the row" : `Enter shows ${duration(begin(cells[1]) - begin(cells[0]))}`;
  return `${shown.rows[row].label} at ${duration(begin(cell))}: ${tellCell(row, cell)}. ${enter}, Shift with arrow keys marks a time.`;
}

const time = (x) => {
  const part = (x - LEFT) / (canvas.clientWidth - LEFT);
  return shown.from_s + Math.min(1, Math.max(0, part)) * (shown.until_s - shown.from_s);
};

const rowAt = (y) => shown.rows[Math.floor((y / (canvas.clientHeight - BOTTOM)) * shown.rows.length)];

box.addEventListener("change", () => change({ alike: box.checked ? "1" : "" }));

canvas.addEventListener("pointerdown", (event) => {
  if (shown === null) return;
  canvas.setPointerCapture(event.pointerId);
  drag = { from: event.offsetX, to: event.offsetX };
});

canvas.addEventListener("pointermove", (event) => {
  if (shown === null) return;
  if (drag !== null) {
    drag.to = event.offsetX;
    draw();
    return;
  }
  const row = rowAt(event.offsetY);
  if (!row || event.offsetX < LEFT) return;
  const at = shown.rows.indexOf(row);
  const cell = Math.floor(((event.offsetX - LEFT) / (canvas.clientWidth - LEFT)) * shown.width);
  canvas.title = `${row.label} at ${duration(time(event.offsetX))}: ${tellCell(at, cell)}`;
});

canvas.addEventListener("pointerup", (event) => {
  if (drag === null) return;
  const { from, to } = drag;
  drag = null;
  if (Math.abs(to - from) > 4) {
    const [begin, end] = [time(from), time(to)].sort((a, b) => a - b);
    change({ from: begin, until: end });
    return;
  }
  const row = rowAt(event.offsetY);
  if (row) change({ first: row.first, last: row.last });
});

const goTo = (cell) => (event) => {
  if (shown === null) return;
  mark = event.shiftKey ? mark ?? cursor.cell : null;
  cursor.cell = cell();
};
const across = (by) => goTo(() => within(cursor.cell + by * Math.ceil(shown.width / STEPS), 0, shown.width - 1));
const down = (by) => () => {
  cursor.row += by;
};

function choose() {
  const cells = markedCells();
  mark = null;
  if (cells !== null) change({ from: begin(cells[0]), until: begin(cells[1]) });
  else if (shown?.rows[cursor.row]) change({ first: shown.rows[cursor.row].first, last: shown.rows[cursor.row].last });
}

const isByKey = byKeys(canvas, {
  ArrowLeft: across(-1),
  ArrowRight: across(1),
  Home: goTo(() => 0),
  End: goTo(() => shown.width - 1),
  ArrowUp: down(-1),
  ArrowDown: down(1),
  Enter: choose,
  Escape: () => {
    if (mark === null) return false;
    mark = null;
    return true;
  },
}, draw);
