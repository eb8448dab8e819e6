// The page: asks what the run is, then shows what the address says, and again whenever something else is looked at.

import { ask } from "./connection.js";
import * as course from "./course.js";
import * as heat from "./heat.js";
import * as line from "./line.js";
import { follow, learn } from "./live.js";
import * as matrix from "./matrix.js";
import * as problems from "./problems.js";
import { isSampled } from "./sampled.js";
import { addButtons } from "./save.js";
import { SWITCHES, change, fromAddress, isWritten, onChange, pan, run, state, zoom } from "./state.js";
import { showCall, showChanges, showSelection } from "./tables.js";
import * as topology from "./topology.js";
import * as tree from "./tree.js";
import { moment } from "./units.js";
import * as whatIf from "./whatif.js";

const element = (id) => document.getElementById(id);
const views = [heat.show, line.show, course.show, showSelection, showChanges, showCall, tree.show, matrix.show, topology.show, whatIf.show];
let pending = 0;
let timer = 0;

function showAll() {
  const length = state.until - state.from;
  element("range").textContent = `${moment(state.from, length)} to ${moment(state.until, length)}`;
  element("metric").value = state.metric;
  if (element("functions").value.trim() !== state.functions) element("functions").value = state.functions;
  document.body.dataset.state = "busy";
  clearTimeout(timer);
  // Who drags asks often: only the last place counts.
  timer = setTimeout(async () => {
    pending += 1;
    problems.begin();
    await Promise.all([...views.map((view) => view()), isWritten()]);
    pending -= 1;
    if (pending > 0) return;
    problems.end();
    document.body.dataset.state = "ready";
  }, 15);
}

const keys = {
  "+": () => zoom(0.5),
  "-": () => zoom(2),
  0: () => change({ from: 0, until: run.end, first: 0, last: run.locations - 1, call: null, ...problems.without() }),
  ArrowLeft: () => pan(-0.25),
  ArrowRight: () => pan(0.25),
  ArrowUp: () => line.move(-1),
  ArrowDown: () => line.move(1),
  PageUp: () => line.move(-line.LANES),
  PageDown: () => line.move(line.LANES),
  c: () => change({ path: !state.path }),
  m: () => change({ messages: !state.messages }),
  s: () => change({ sampled: state.sampled === "" && isSampled() ? "1" : "" }),
  Escape: () => change({ call: null, ...problems.without() }),
};

async function start() {
  const overview = await ask({ ask: "overview" });
  if (overview === null) return;
  document.title = `${overview.command} – laggard`;
  element("command").textContent = overview.command;
  element("legend").replaceChildren(...overview.kinds.map((kind) => {
    const made = document.createElement("span");
    made.textContent = kind;
    made.style.setProperty("--own", `var(--${kind})`);
    return made;
  }));
  learn(overview);
  addButtons();
  onChange(showAll);
  for (const name of ["metric", "curve"]) {
    element(name).addEventListener("change", (event) => change({ [name]: event.target.value }));
  }
  for (const name of SWITCHES) element(name).addEventListener("change", (event) => change({ [name]: event.target.checked }));
  element("functions").addEventListener("input", (event) => change({ functions: event.target.value.trim() }));
  element("in").addEventListener("click", keys["+"]);
  element("out").addEventListener("click", keys["-"]);
  element("all").addEventListener("click", keys[0]);
  // Who does something has read it.
  for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, () => problems.tell("choice", ""), true);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("select, input")) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  const again = () => {
    heat.draw();
    line.draw();
    course.draw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("resize", showAll);
  addEventListener("hashchange", (event) => fromAddress(event.newURL));
  fromAddress();
  follow();
}

start();
