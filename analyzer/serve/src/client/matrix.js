// Who sends whom, and who waits for whom: a picture of rows and columns of ranks, or of hosts.

import { ask } from "./connection.js";
import { byKeys, within } from "./cursor.js";
import { keep } from "./save.js";
import { change, run, state } from "./state.js";
import { more } from "./tables.js";
import { bytes, duration } from "./units.js";

const SIZE = 420;
const EDGE = 64;
const svg = document.getElementById("matrix");
const element = (id) => document.getElementById(id);
let asked = "";
let shown = null;
/** The cell that keys move. */
const cursor = { row: 0, column: 0 };

function made(name, attributes, text = null) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  if (text !== null) one.textContent = text;
  return one;
}

const value = (metric, of) =>
  metric === "waiting" ? duration(of) : metric === "bytes" ? bytes(of) : `${of} messages`;

const ranks = ([first, last]) => (first === last ? String(first) : `${first}–${last}`);

function draw() {
  if (shown === null) return;
  const answer = shown;
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
  const titleOf = (row, column, sum) => {
    const verb = answer.metric === "waiting" ? "waits for" : "to";
    return `${label(rows, row)} ${verb} ${label(columns, column)}: ${value(answer.metric, sum)}`;
  };
  const most = Math.max(...answer.cells.map(([, , sum]) => sum), 0);
  for (const [row, column, sum] of answer.cells) {
    const one = made("rect", {
      x: EDGE + column * cell, y: EDGE + row * cell, width: cell, height: cell,
      class: answer.metric === "waiting" ? "waits" : "sends",
      // Small amounts can be seen, too.
      "fill-opacity": (0.15 + 0.85 * (sum / most)).toFixed(3),
    });
    one.append(made("title", {}, titleOf(row, column, sum)));
    one.addEventListener("click", () => choose(answer, row, column));
    parts.push(one);
  }
  cursor.row = within(cursor.row, 0, rows.length - 1);
  cursor.column = within(cursor.column, 0, columns.length - 1);
  const isSeen = isByKey() && rows.length > 0 && columns.length > 0;
  if (isSeen) {
    const place = { x: EDGE + cursor.column * cell, y: EDGE + cursor.row * cell };
    parts.push(made("rect", { ...place, width: cell, height: cell, class: "cursor" }));
  }
  const here = answer.cells.find(([row, column]) => row === cursor.row && column === cursor.column);
  element("matrix-at").textContent = isSeen ? titleOf(cursor.row, cursor.column, here?.[2] ?? 0) : "";
  svg.replaceChildren(...parts);
  svg.dataset.whole = String(answer.whole);
  svg.dataset.cells = String(answer.cells.length);
  const shared = answer.hosts_per_row > 1 ? `. ${answer.hosts_per_row} successive hosts share a row` : "";
  const sum = `${value(answer.metric, answer.whole)} in sight${shared}`;
  const why = state.of === "run" && state.group === ""
    ? "Ranks that share a cell count for one host."
    : "Not all is known of so much: choose less.";
  element("matrix-note").textContent = answer.exact ? sum : `${sum}. ${why}`;
  keep("matrix", answer.cells.map(([row, column, sum]) => ({
    from: label(rows, row), to: label(columns, column), [answer.metric]: sum,
  })));
}

/** A cell of several ranks becomes the picture; one that has no parts leads to the time line of its ranks. */
function choose(answer, row, column) {
  const say = (text) => {
    element("matrix-note").textContent = text;
  };
  if (answer.hosts) {
    say("Cells of hosts have no parts: choose them by ranks.");
    return;
  }
  const [[from, fromLast], [to, toLast]] = [answer.rows[row], answer.columns[column]];
  // Only the report has cells that several ranks share.
  const shared = answer.ranks_per_cell ?? 1;
  if (fromLast - from >= shared || toLast - to >= shared) {
    change({ part: [from, fromLast, to, toLast].join("_") });
    return;
  }
  const [one, other] = [answer.row_locations[row], answer.column_locations[column]];
  change({ first: Math.min(one[0], other[0]), last: Math.max(one[1], other[1]) });
  if (from !== fromLast || to !== toLast) {
    const pairs = `Pairs of ranks ${ranks([from, fromLast])} and ${ranks([to, toLast])}`;
    say(`${pairs} share a cell of the report. They are told apart of the selection.`);
  }
}

/** Offers the communicators and windows that there are. */
function offer(listed, areMore) {
  const known = listed.some(([id]) => id === state.group) || state.group === "" ? [] : [[state.group, `#${state.group}`]];
  const options = [["", "all communicators"], ...listed, ...known];
  const made = [...options.map(([id, label]) => new Option(label, id)), ...(areMore ? [more(listed.length)] : [])];
  const ids = (all) => [...all].map((option) => option.value).join(" ");
  if (ids(element("group").options) !== ids(made)) element("group").replaceChildren(...made);
  element("group").value = state.group;
}

export async function show() {
  const { from, until, first, last } = state;
  const hosts = state.by === "hosts";
  const lines = state.part === "" || hosts ? [] : state.part.split("_").map(Number);
  const question = {
    ask: "matrix",
    metric: state.matrix,
    hosts,
    ...(lines.length === 4 ? { from: lines[0], from_last: lines[1], to: lines[2], to_last: lines[3] } : {}),
    ...(state.of === "selection" ? { selection: { from_s: from, until_s: until, first, last } } : {}),
    ...(state.group === "" ? {} : { communicator: state.group }),
  };
  const key = `${run.number} ${JSON.stringify(question)}`;
  for (const [id, name] of [["what", "matrix"], ["by", "by"], ["of", "of"]]) element(id).value = state[name];
  if (key === asked) return;
  const answer = await ask(question);
  if (answer === null) return;
  asked = key;
  offer(answer.communicators, answer.more_communicators);
  shown = answer;
  draw();
}

const move = (down, across) => () => {
  cursor.row += down;
  cursor.column += across;
};
const isByKey = byKeys(svg, {
  ArrowLeft: move(0, -1),
  ArrowRight: move(0, 1),
  ArrowUp: move(-1, 0),
  ArrowDown: move(1, 0),
  Enter: () => {
    const { row, column } = cursor;
    // Of a cell without anything, too, the ranks can be looked at.
    if (shown !== null && (shown.hosts ?? shown.rows).length > 0) choose(shown, row, column);
  },
}, draw);

for (const [id, name] of [["what", "matrix"], ["by", "by"], ["of", "of"], ["group", "group"]]) {
  element(id).addEventListener("change", (event) => change({ [name]: event.target.value }));
}
element("matrix-all").addEventListener("click", () => change({ part: "" }));
