// Samples over time by function: of all chosen threads together, and of each lane of the time line.

import { ask } from "./connection.js";
import { run, state } from "./state.js";

const LEFT = 76;
/** Pixels of a part. */
const PART = 4;
/** Most lanes that are told apart. */
const APART = 16;
const line = document.getElementById("line");
/** What was asked last, and the answer to come. */
let latest = { text: "", answer: null };

/** Whether there may be samples. */
export const isSampled = () => run.metrics.some(([id]) => id === "samples");

/** Curves of what is looked at, by row: of all together, then of each lane, if these are wanted. Asked once for all who show them. */
export function curves() {
  const question = {
    ask: "sampled",
    from_s: state.from,
    until_s: state.until,
    first: state.first,
    last: state.last,
    apart: state.sampled === "" ? 0 : APART,
    // In narrower parts there are few samples, and curves are made of chance.
    width: Math.round(Math.max(100, line.clientWidth - LEFT) / PART),
  };
  const text = `${run.number} ${JSON.stringify(question)}`;
  if (text !== latest.text) {
    const mine = { text, answer: ask(question).then(read) };
    latest = mine;
    // What was not answered is asked again.
    mine.answer.then((answer) => {
      if (answer === null && latest === mine) latest = { text: "", answer: null };
    });
  }
  return latest.answer;
}

function read(answer) {
  if (answer === null) return null;
  const { parts, locations, counts } = answer;
  const all = new Uint32Array(Uint8Array.from(atob(counts), (one) => one.charCodeAt(0)).buffer);
  const kinds = all.length / parts / (1 + locations.length);
  const curve = (row, kind) => all.subarray((row * kinds + kind) * parts, (row * kinds + kind + 1) * parts);
  const rows = [0, ...locations].map((_, row) => Array.from({ length: kinds }, (_, kind) => curve(row, kind)));
  return { ...answer, rows };
}

/** Samples in each part of a row. */
export const sums = (row) => Array.from(row[0], (_, part) => row.reduce((sum, counts) => sum + counts[part], 0));

/** Draws the curves of a row one upon the other; `most` samples are `high`. */
export function stack(pen, row, { step, bottom, high, most, style }) {
  const colours = row.map((_, at) => style.getPropertyValue(`--function-${at}`));
  for (let part = 0; part < row[0].length; part += 1) {
    let top = bottom;
    row.forEach((counts, at) => {
      const own = (counts[part] / most) * high;
      if (own <= 0) return;
      pen.fillStyle = colours[at];
      pen.fillRect(LEFT + part * step, top - own, step + 0.5, own);
      top -= own;
    });
  }
}

/** Says which colour is which function, and how many of the samples it has; nothing of no answer. */
export function legend(id, answer) {
  const box = document.getElementById(id);
  const { functions, others } = answer ?? { functions: [], others: { functions: 0, samples: 0 } };
  const all = functions.reduce((sum, { samples }) => sum + samples, others.samples);
  const names = functions.map(({ name, samples }) => [name, samples]);
  if (others.functions > 0) names.push([`${others.functions} other ${others.functions === 1 ? "function" : "functions"}`, others.samples]);
  box.hidden = names.length === 0;
  box.replaceChildren(...names.map(([name, samples], at) => {
    const made = document.createElement("span");
    made.textContent = `${name}: ${Number(((100 * samples) / all).toPrecision(2))} %`;
    made.style.setProperty("--own", `var(--function-${at})`);
    return made;
  }));
}
