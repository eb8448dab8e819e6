// A program that still runs: what the server tells by itself, and what follows from that for the views.

import { ask, onNews } from "./connection.js";
import { change, run, state } from "./state.js";
import { tell as tellRecorded } from "./steer.js";
import { fill, ranksOf, showFound } from "./tables.js";
import { cut, duration } from "./units.js";
import { offer } from "./whatif.js";

let number = null;

/** How the program goes on, and in which calls ranks have been for long. */
function tell(news) {
  const box = document.getElementById("live");
  box.hidden = false;
  box.dataset.state = news.runs ? "runs" : "ended";
  box.dataset.number = String(news.number);
  box.dataset.hangs = String(news.hangs.length);
  document.getElementById("goes").textContent = news.text;
  document.getElementById("hangs").replaceChildren(...news.hangs.map((text) => {
    const made = document.createElement("li");
    made.textContent = text;
    return made;
  }));
  document.getElementById("now").hidden = news.calls.length === 0;
  fill("now", [
    ["For", (row) => duration(row.for_s), true],
    ["Ranks", ranksOf],
    ["In", (row) => `${row.call} ${row.place}`],
    ["For rank", (row) => row.waits_for ?? "", true],
  ], news.calls, null, cut(news.calls.length, news.calls_in_all, "rows", "These last longest."));
  tellRecorded(news);
}

/** Takes what the run is. */
export function learn({ end_s: end, locations, kinds, metrics, profile }) {
  if (metrics.length !== run.metrics.length) {
    for (const id of ["metric", "curve"]) {
      document.getElementById(id).replaceChildren(...metrics.map(([metric, name]) => new Option(name, metric)));
    }
  }
  Object.assign(run, { end, locations, kinds, metrics, profile });
}

/** Shows what came; who looks at the end of the run goes on doing so. */
async function hear(news) {
  tell(news);
  if (number === news.number) return;
  const isFirst = number === null;
  number = news.number;
  if (isFirst) return;
  const overview = await ask({ ask: "overview" });
  if (overview === null) return;
  const grown = overview.end_s - run.end;
  const [isAtEnd, hasAll] = [state.until >= run.end, state.last >= run.locations - 1];
  const isWhole = isAtEnd && state.from <= 0;
  learn(overview);
  run.number = number;
  document.getElementById("size").textContent = sizeOf(overview);
  showFound(overview);
  offer(overview);
  change({
    ...(isAtEnd ? { from: isWhole ? 0 : state.from + grown, until: overview.end_s } : {}),
    ...(hasAll ? { last: overview.locations - 1 } : {}),
  });
}

/** What the run is, in a line. */
export function sizeOf(overview) {
  const { size, waiting_percent: waiting, unknown_waiting: unknown } = overview;
  if (unknown === "") return `${size}. ${waiting.toFixed(0)} % of the time is waiting.`;
  return waiting === 0
    ? `${size}. How much of the time is waiting is unknown: ${unknown}.`
    : `${size}. At least ${waiting.toFixed(0)} % of the time is waiting (the rest is unknown: ${unknown}).`;
}

/** From now on what the server tells is shown. */
export function follow() {
  onNews(hear);
}
