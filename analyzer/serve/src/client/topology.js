// Cartesian communicators as grids: a place for each rank, the darker, the more of one kind of time.

import { ask } from "./connection.js";
import { keep } from "./save.js";
import { change, run, state } from "./state.js";
import { more } from "./tables.js";
import { amount, colourOf } from "./units.js";

const WIDE = 760;
const GAP = 18;
const svg = document.getElementById("topology");
const select = document.getElementById("communicator");
const placed = document.getElementById("placed");
let shown = null;
let asked = "";
let cursor = 0;

function made(name, attributes, text = null) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  if (text !== null) one.textContent = text;
  return one;
}

const nameOf = ({ id, name, dimensions }) =>
  `${name || `#${id}`} ${dimensions.map(([size, isPeriodic]) => `${size}${isPeriodic ? "°" : ""}`).join(" × ")}`;

/** The coordinates of a place, by its number. */
function coordinates(number, told) {
  const found = [];
  for (const size of told.toReversed()) {
    found.unshift(number % size);
    number = Math.floor(number / size);
  }
  return found;
}

/** Planes of rows and columns: the last two dimensions. A line is one row. */
function layout(told) {
  const [rows, columns] = told.length > 1 ? told.slice(-2) : [1, told[0] ?? 1];
  const planes = told.slice(0, -2).reduce((all, one) => all * one, 1);
  const cell = Math.max(6, Math.min(32, Math.floor(WIDE / columns) - 1));
  const across = Math.max(1, Math.min(planes, Math.floor((WIDE + GAP) / (columns * cell + GAP))));
  const place = (number) => {
    const plane = Math.floor(number / (rows * columns));
    const inside = number % (rows * columns);
    return {
      x: (plane % across) * (columns * cell + GAP) + (inside % columns) * cell,
      y: Math.floor(plane / across) * (rows * cell + GAP) + Math.floor(inside / columns) * cell + GAP,
    };
  };
  const down = Math.ceil(planes / across);
  return { rows, columns, planes, cell, place, width: across * (columns * cell + GAP), height: down * (rows * cell + GAP) + 2 };
}

/** A mean of a place in words: messages need not be whole ones. */
const amountOf = (mean) => `${amount(mean, shown.unit)}${shown.unit === "B" ? "" : ` ${nameOfMetric()}`}`;

const nameOfMetric = () => shown.metrics.find(([id]) => id === shown.metric)[1];

function titleOf([number, , rank, ranks, amount], { told, shared }) {
  const where = coordinates(number, told).map((at, of) => (shared[of] === 1 ? at : `${at * shared[of]}–${(at + 1) * shared[of] - 1}`));
  const who = ranks === 1 ? `rank ${rank}` : `${ranks} ranks from ${rank} on, each`;
  return `(${where.join(", ")}) ${who}: ${amountOf(amount / Math.max(ranks, 1))}`;
}

function draw() {
  const { shape, places, metric, unit } = shown;
  const kind = colourOf(shown, run);
  const parts = [];
  if (shape !== null && places.length > 0) {
    const { rows, columns, planes, cell, place, width, height } = layout(shape.told);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    for (let plane = 0; planes > 1 && plane < planes; plane += 1) {
      const { x, y } = place(plane * rows * columns);
      const at = coordinates(plane, shape.told.slice(0, -2)).join(", ");
      parts.push(made("text", { x, y: y - 4, "font-size": 10 }, at));
    }
    const mean = ([, , , ranks, amount]) => amount / Math.max(ranks, 1);
    const most = Math.max(...places.map(mean), 0);
    places.forEach((one, at) => {
      const { x, y } = place(one[0]);
      parts.push(made("rect", { x, y, width: cell - 1, height: cell - 1, class: "ground" }));
      const part = made("rect", {
        x, y, width: cell - 1, height: cell - 1, class: `place kind-${kind}`,
        "fill-opacity": most > 0 ? (0.06 + (0.94 * mean(one)) / most).toFixed(3) : "0",
      });
      part.append(made("title", {}, titleOf(one, shape)));
      part.addEventListener("click", () => choose(at));
      parts.push(part);
      if (at === cursor) parts.push(made("rect", { x: x + 1, y: y + 1, width: cell - 3, height: cell - 3, class: "cursor" }));
    });
  }
  svg.replaceChildren(...parts);
  svg.dataset.total = String(shown.total);
  svg.dataset.places = String(places.length);
  const partly = unit === "s" ? "the longest waits alone are counted" : "too many calls are in sight to count that: zoom in";
  const doubt = shown.partly_counted === 0 ? "" : `. Of ${shown.partly_counted} locations ${partly}`;
  document.getElementById("topology-note").textContent =
    places.length === 0 ? "" : titleOf(places[Math.min(cursor, places.length - 1)], shape) + doubt;
  keep("topology", places.map((one) => ({
    place: coordinates(one[0], shape.told).join(" "), first_rank: one[2], ranks: one[3], [unit === "s" ? `${metric}_s` : metric]: one[4],
  })));
}

/** Looks at the ranks of a place. */
function choose(at) {
  cursor = at;
  const [, location, , ranks] = shown.places[at];
  if (ranks === 1) change({ first: location, last: location });
  draw();
}

export async function show() {
  const question = { ask: "topology", metric: state.placed || state.metric, from_s: state.from, until_s: state.until };
  const key = `${run.number} ${state.topology} ${JSON.stringify(question)}`;
  if (key === asked) return;
  let answer = await ask({ ...question, communicator: state.topology || null });
  if (answer === null) return;
  const all = answer.communicators;
  document.getElementById("grids").hidden = all.length === 0;
  const known = all.some(({ id }) => id === state.topology);
  if (!known && all.length > 0) {
    // The largest one, until another is chosen.
    answer = await ask({ ...question, communicator: all[0].id });
    if (answer === null) return;
  }
  const rest = answer.more_communicators ? [more(all.length)] : [];
  select.replaceChildren(...all.map((one) => new Option(nameOf(one), one.id)), ...rest);
  select.value = known ? state.topology : all[0]?.id ?? "";
  const metrics = answer.metrics.map(([id, name]) => new Option(name, id));
  placed.replaceChildren(new Option(`as above: ${state.metric}`, ""), ...metrics);
  placed.value = state.placed;
  asked = key;
  shown = answer;
  cursor = Math.min(cursor, Math.max(0, answer.places.length - 1));
  draw();
}

select.addEventListener("change", () => change({ topology: select.value }));
placed.addEventListener("change", () => change({ placed: placed.value }));

svg.addEventListener("keydown", (event) => {
  if (shown?.shape === null || shown === null || shown.places.length === 0) return;
  const columns = shown.shape.told.at(-1) ?? 1;
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  if (event.key === "Enter") choose(cursor);
  else if (event.key in steps) {
    cursor = Math.min(Math.max(0, cursor + steps[event.key]), shown.places.length - 1);
    draw();
  } else return;
  event.preventDefault();
  event.stopPropagation();
});
