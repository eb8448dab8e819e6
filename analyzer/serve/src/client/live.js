// A program that still runs: what the server tells by itself, and what follows from that for the views.

import { ask, onNews } from "./connection.js";
import { learn as take, renew, run } from "./state.js";
import { tell as tellRecorded } from "./steer.js";
import { fill, ranksOf, showFound } from "./tables.js";
import { cut, duration } from "./units.js";
import { offer } from "./whatif.js";

/** The number of the run that is asked about. */
let awaited = 0;

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
export function learn(overview, into = take) {
  if (String(overview.metrics) !== String(run.metrics)) {
    for (const id of ["metric", "curve"]) {
      const options = overview.metrics.map(([metric, name]) => new Option(name, metric));
      document.getElementById(id).replaceChildren(...options);
    }
  }
  document.getElementById("size").textContent = sizeOf(overview);
  showFound(overview);
  offer(overview);
  into(overview);
}

/** Shows what is there by now, if that is another run than what is shown. */
async function goOn(number) {
  if (number <= Math.max(run.number, awaited)) return;
  awaited = number;
  const overview = await ask({ ask: "overview" });
  awaited = 0;
  if (overview !== null) learn(overview, renew);
}

/** What the run is, in a line. */
function sizeOf(overview) {
  const { size, waiting_percent: waiting, unknown_waiting: unknown } = overview;
  if (unknown === "") return `${size}. ${waiting.toFixed(0)} % of the time is waiting.`;
  return waiting === 0
    ? `${size}. How much of the time is waiting is unknown: ${unknown}.`
    : `${size}. At least ${waiting.toFixed(0)} % of the time is waiting (the rest is unknown: ${unknown}).`;
}

/** From now on what the server tells is shown. */
export function follow() {
  onNews(tell, goOn);
}
