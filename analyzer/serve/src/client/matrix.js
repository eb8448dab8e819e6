// Who sends whom, and who waits for whom: a picture of rows and columns of ranks, or of hosts.

import { ask } from "./connection.js";
import { keep } from "./save.js";
import { change, run, state } from "./state.js";
import { bytes, duration } from "./units.js";

const SIZE = 420;
const EDGE = 64;
const svg = document.getElementById("matrix");
const element = (id) => document.getElementById(id);
let asked = "";
let part = {};

function made(name, attributes, text = null) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  if (text !== null) one.textContent = text;
  return one;
}

const value = (metric, of) =>
  metric === "waiting" ? duration(of) : metric === "bytes" ? bytes(of) : `${of} messages`;

const ranks = ([first, last]) => (first === last ? String(first) : `${first}–${last}`);

function draw(answer) {
  const names = answer.hosts ?? null;
  const label = (line, at) => (names ? names[at] : ranks(line[at]));
  const [rows, columns] = names ? [names, names] : [answer.rows, answer.columns];
  const cell = Math.min(40, (SIZE - EDGE) / Math.max(rows.length, columns.length, 1));
  const [width, height] = [EDGE + cell * columns.length, EDGE + cell * rows.length];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  const every = Math.max(1, Math.ceil(12 / cell));
  const parts = [];
  rows.forEach((_, at) => {
    if (at % every === 0) {
      const place = { x: EDGE - 6, y: EDGE + (at + 0.5) * cell + 3, "text-anchor": "end", "font-size": 10 };
      parts.push(made("text", place, label(rows, at)));
    }
  });
  columns.forEach((_, at) => {
    if (at % every === 0) {
      const x = EDGE + (at + 0.5) * cell + 3;
      const place = { x, y: EDGE - 6, transform: `rotate(-90 ${x} ${EDGE - 6})`, "font-size": 10 };
      parts.push(made("text", place, label(columns, at)));
    }
  });
  parts.push(made("rect", { x: EDGE, y: EDGE, width: width - EDGE, height: height - EDGE, class: "ground" }));
  const most = Math.max(...answer.cells.map(([, , sum]) => sum), 0);
  for (const [row, column, sum] of answer.cells) {
    const one = made("rect", {
      x: EDGE + column * cell, y: EDGE + row * cell, width: cell, height: cell,
      class: state.matrix === "waiting" ? "waits" : "sends",
      // Small amounts can be seen, too.
      "fill-opacity": (0.15 + 0.85 * (sum / most)).toFixed(3),
    });
    const verb = state.matrix === "waiting" ? "waits for" : "to";
    one.append(made("title", {}, `${label(rows, row)} ${verb} ${label(columns, column)}: ${value(state.matrix, sum)}`));
    one.addEventListener("click", () => choose(answer, row, column));
    parts.push(one);
  }
  svg.replaceChildren(...parts);
  svg.dataset.whole = String(answer.whole);
  svg.dataset.cells = String(answer.cells.length);
  const sum = `${value(state.matrix, answer.whole)} in sight`;
  const why = element("of").value === "run"
    ? "Ranks that share a cell count for one host."
    : "Not all is known of so much: choose less.";
  element("matrix-note").textContent = answer.exact ? sum : `${sum}. ${why}`;
  keep("matrix", answer.cells.map(([row, column, sum]) => ({
    from: label(rows, row), to: label(columns, column), [answer.metric]: sum,
  })));
}

/** A cell of several ranks becomes the picture; one of two ranks leads to their time line. */
function choose(answer, row, column) {
  if (answer.hosts) return;
  const [[from, fromLast], [to, toLast]] = [answer.rows[row], answer.columns[column]];
  if (from === fromLast && to === toLast) {
    const [one, other] = [answer.row_locations[row], answer.column_locations[column]];
    change({ first: Math.min(one[0], other[0]), last: Math.max(one[1], other[1]) });
    return;
  }
  part = { from, from_last: fromLast, to, to_last: toLast };
  show();
}

export async function show() {
  const hosts = element("by").value === "hosts";
  const { from, until, first, last } = state;
  const isPart = element("of").value === "selection";
  const question = {
    ask: "matrix",
    metric: state.matrix,
    hosts,
    ...(hosts ? {} : part),
    ...(isPart ? { selection: { from_s: from, until_s: until, first, last } } : {}),
  };
  const key = `${run.number} ${JSON.stringify(question)}`;
  element("what").value = state.matrix;
  if (key === asked) return;
  const answer = await ask(question);
  if (answer === null) return;
  asked = key;
  draw(answer);
}

element("what").addEventListener("change", (event) => change({ matrix: event.target.value }));
element("by").addEventListener("change", show);
element("of").addEventListener("change", show);
element("matrix-all").addEventListener("click", () => {
  part = {};
  show();
});
