// What is recorded of a program that runs: what is wanted by now, and a form where the server allows to change it.

import { fill } from "./tables.js";
import { cut } from "./units.js";

const form = document.getElementById("steer");
const said = document.getElementById("steered");

/** Shows what the server tells of it. */
export function tell(news) {
  form.hidden = !(news.steers && news.runs);
  document.getElementById("recording").hidden = form.hidden && news.wanted.length === 0;
  document.getElementById("wanted").hidden = news.wanted.length === 0;
  fill("wanted", [
    ["Ranks", (row) => row.ranks],
    ["Recorded", (row) => row.wish],
    ["Not heard yet by", (row) => row.unheard],
  ], news.wanted, null, cut(news.wanted.length, news.wanted_in_all, "rows", "laggard steer has all."));
}

/** Ranges of ranks, of a text as 0-3,8. */
function ranges(text) {
  return text.split(",").map((part) => {
    const found = /^(\d+)(?:-(\d+))?$/.exec(part.trim());
    if (!found) throw new Error(`no ranks: ${part}`);
    return [Number(found[1]), Number(found[2] ?? found[1])];
  });
}

/** What the form asks for. */
function wish() {
  const text = (name) => form.elements[name].value.trim();
  const made = {};
  if (text("ranks") !== "") made.ranks = ranges(text("ranks"));
  if (text("detail") === "as_started") made.as_started = true;
  else if (text("detail") !== "") made.detail = text("detail");
  if (text("depth") !== "") made.depth = Number(text("depth"));
  if (text("hz") !== "") made.sample_hz = Number(text("hz"));
  const calls = (name) => text(name).split(",").map((call) => call.trim()).filter((call) => call !== "");
  if (text("leave") !== "") made.leave_out = calls("leave");
  if (text("take") !== "") made.take_in = calls("take");
  return made;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const answer = await fetch("steer", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(wish()),
    });
    const { ranks, error } = await answer.json();
    said.textContent = error ?? `Asked of ${ranks} ${ranks === 1 ? "rank" : "ranks"}.`;
    said.dataset.state = error ? "refused" : "done";
    if (!error) form.reset();
  } catch (error) {
    said.textContent = error instanceof TypeError ? "laggard does not answer" : error.message;
    said.dataset.state = "refused";
  }
});
