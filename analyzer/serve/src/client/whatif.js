// How long the run would take if root causes were mended: a slider for each, and one for the network.

import { ask } from "./connection.js";
import { change, lose, run, state } from "./state.js";
import { cut, duration } from "./units.js";

/** Root causes with a slider, the largest first. */
const MOST = 10;
const STEP = 5;
const element = (id) => document.getElementById(id);
const sliders = new Map();
let refused = null;
/** What stays of root causes, in the order of their numbers. */
let keys = [];
let asked = "";

function slider(of, text) {
  const [label, input, part, name] = ["label", "input", "output", "span"].map((kind) => document.createElement(kind));
  Object.assign(input, { type: "range", min: 0, max: 100, step: STEP, value: 0 });
  input.dataset.mends = of;
  input.addEventListener("input", () => change({ mends: { ...state.mends, [of]: Number(input.value) } }));
  name.textContent = text;
  label.append(input, part, name);
  sliders.set(of, { input, part });
  return label;
}

/** Makes the sliders for the root causes of the report. */
export function offer(overview) {
  refused = overview.no_what_if;
  sliders.clear();
  renumber(overview.root_causes.map(({ key }) => key));
  const causes = overview.root_causes.map((row, at) => ({ ...row, number: String(at + 1) }));
  const told = causes.filter((row) => row.can_go).slice(0, MOST);
  const labels = told.map((row) => slider(row.number, `${row.id}: ${row.what}`));
  const note = document.createElement("p");
  const rest = "laggard what-if --without-cause has the others.";
  note.textContent = cut(told.length, overview.root_causes_that_can_go, "root causes have a slider", rest);
  element("mends").replaceChildren(...labels, slider("network", "Transfers take less time, down to none"), note);
  element("mends").hidden = element("unmend").hidden = refused !== null;
  asked = "";
}

/** What is mended stays so when a later report numbers root causes anew. */
function renumber(now) {
  const isAny = keys.length > 0;
  const moved = ([of, part]) => [of === "network" ? of : String(now.indexOf(keys[of - 1]) + 1), part];
  const mends = isAny ? Object.entries(state.mends).map(moved) : [];
  keys = now;
  if (mends.some(([of]) => of === "0")) lose(["a root cause that was mended"]);
  if (isAny) state.mends = Object.fromEntries(mends.filter(([of]) => of !== "0"));
}

/** A change of `laggard what-if`, of a slider that is not at its begin. */
function changeOf([of, percent]) {
  const part = percent / 100;
  return of === "network" ? ["network", `latency=${Number((1 - part).toFixed(2))}`] : ["without_cause", `${of}=${part}`];
}

function gainOf(answer) {
  const share = Math.abs(Number(answer.gain_percent.toPrecision(2)));
  const verb = answer.gain_s < 0 ? "longer" : "shorter";
  const doubt = answer.doubt_s > 0.01 * Math.abs(answer.gain_s) ? `, perhaps by ${duration(answer.doubt_s)} more` : "";
  return `The run would take ${duration(answer.time_s)} instead of ${duration(answer.recorded_s)}: ` +
    `${duration(Math.abs(answer.gain_s))} ${verb}${doubt} (${share} % of the time between start-up and shut-down).`;
}

/** Asks what the sliders say. */
export async function show() {
  const said = element("gain");
  for (const [of, { input, part }] of sliders) {
    input.value = String(state.mends[of] ?? 0);
    part.textContent = `${input.value} %`;
  }
  const changes = Object.entries(state.mends).filter(([of, part]) => part > 0 && sliders.has(of)).map(changeOf);
  const key = `${run.number} ${JSON.stringify(changes)}`;
  if (key === asked) return;
  asked = key;
  said.dataset.gain = "";
  if (refused !== null || changes.length === 0) {
    said.textContent = refused ?? "";
    return;
  }
  said.textContent = "…";
  const answer = await ask({ ask: "what_if", changes });
  // Whoever asked later answers.
  if (asked !== key) return;
  if (answer === null) {
    said.textContent = "";
    asked = "";
    return;
  }
  said.textContent = gainOf(answer);
  Object.assign(said.dataset, { gain: String(answer.gain_s), time: String(answer.time_s) });
  said.title = answer.changes.join(" ");
}

element("unmend").addEventListener("click", () => change({ mends: {} }));
