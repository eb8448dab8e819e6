// What is looked at: in the address, so that a link leads there.

import { areKnown, know, nameAt, nameOf as nameOfThreads, positionOf, positionsOf } from "./places.js";
import { tell } from "./problems.js";

/** Milliseconds between two addresses: browsers take no more than some 20 a second. */
const PAUSE = 100;

/** The whole run; known once the overview is there. `number` grows with a run that goes on. */
export const run = { end: 1, locations: 1, kinds: [], metrics: [], profile: [], number: 0 };

const isMetric = (text) => run.metrics.some(([id]) => id === text);
const isOneOf = (...all) => (text) => all.includes(text);

/** Choices that are texts: how each is at first, and whether a text is one. */
const CHOICES = {
  metric: ["waiting", isMetric],
  curve: ["computation", isMetric],
  alike: ["", isOneOf("", "1")],
  sampled: ["", isOneOf("", "1")],
  profile: ["time", (text) => run.profile.includes(text)],
  order: ["most", isOneOf("most", "own", "name")],
  percent: ["", isOneOf("", "1")],
  // Rows of the profile that are open or closed, where that is not as usual.
  open: ["", (text) => /^(-|[0-9a-f.]{0,1000})$/.test(text)],
  parts: ["", (text) => /^[-a-z0-9_:.]{0,1000}$/.test(text)],
  closed: ["", (text) => text.length <= 1000],
  threads: ["", (text) => /^[0-9.]{0,1000}$/.test(text)],
  find: ["", (text) => text.length <= 100],
  functions: ["", (text) => text.length <= 100],
  matrix: ["bytes", isOneOf("bytes", "messages", "waiting")],
  by: ["ranks", isOneOf("ranks", "hosts")],
  of: ["run", isOneOf("run", "selection")],
  group: ["", (text) => /^[0-9a-f]{0,16}$/.test(text)],
  part: ["", (text) => text === "" || /^\d{1,9}(_\d{1,9}){3}$/.test(text)],
  node: ["", (text) => /^(\d{1,9}|[0-9a-f]{12})?$/.test(text)],
  topology: ["", (text) => /^[0-9a-f]{0,16}$/.test(text)],
  placed: ["", (text) => text === "" || isMetric(text) || /^[a-z_]{1,60}$/.test(text)],
};
const first = Object.fromEntries(Object.entries(CHOICES).map(([name, [one]]) => [name, one]));

/** What may be switched off. */
export const SWITCHES = ["path", "messages"];
const switches = (isOn) => Object.fromEntries(SWITCHES.map((name) => [name, isOn(name)]));

/** What is looked at now. */
export const state = { from: 0, until: 1, first: 0, last: 0, call: null, mends: {}, ...switches(() => true), ...first };

/** The name of a metric. */
export const nameOf = (metric) => run.metrics.find(([id]) => id === metric)?.[1] ?? metric;

/** How what is looked at is called, whatever positions are by now: threads, and the thread of the call. */
let names = { threads: "", caller: "" };

const listeners = [];
let written = null;
let at = 0;

/** Writes what is looked at into the address, soon. */
function write() {
  written ??= new Promise((done) => {
    setTimeout(() => {
      written = null;
      at = performance.now();
      history.replaceState(null, "", `#${words()}`);
      done();
    }, at + PAUSE - performance.now());
  });
}

/** The address is what is looked at. */
export const isWritten = async () => written;

/** Calls `listener` whenever something else is looked at. */
export function onChange(listener) {
  listeners.push(listener);
}

/** Looks at something else. */
export function change(changes) {
  Object.assign(state, changes);
  const least = run.end * 1e-12 + 1e-9;
  const length = Math.min(Math.max(state.until - state.from, least), run.end);
  state.from = Math.min(Math.max(state.from, 0), run.end - length);
  state.until = state.from + length;
  state.first = Math.min(Math.max(Math.trunc(state.first), 0), run.locations - 1);
  state.last = Math.min(Math.max(Math.trunc(state.last), state.first), run.locations - 1);
  for (const [name, [one, isIt]] of Object.entries(CHOICES)) if (!isIt(state[name])) state[name] = one;
  const isAll = state.first === 0 && state.last === run.locations - 1;
  names = { threads: isAll ? "" : nameOfThreads(state.first, state.last), caller: state.call && nameAt(state.call[0]) };
  write();
  for (const listener of listeners) listener(state);
}

/** Calls something that is looked at by another name. */
export function rename(changes) {
  Object.assign(state, changes);
  write();
}

function words() {
  const words = new URLSearchParams();
  if (state.from > 0 || state.until < run.end) {
    words.set("from", String(Number(state.from.toPrecision(12))));
    words.set("until", String(Number(state.until.toPrecision(12))));
  }
  if (names.threads) words.set("ranks", names.threads);
  else if (names.threads === null) {
    words.set("first", String(state.first));
    words.set("last", String(state.last));
  }
  for (const [name, [one]] of Object.entries(CHOICES)) if (state[name] !== one) words.set(name, state[name]);
  for (const name of SWITCHES) if (!state[name]) words.set(name, "0");
  const mends = Object.entries(state.mends).filter(([, part]) => part > 0);
  if (mends.length > 0) words.set("mend", mends.map(([of, part]) => `${of}_${part}`).join("."));
  if (state.call) words.set("call", [names.caller ?? state.call[0], ...state.call.slice(1)].join("_"));
  return words;
}

/** Tells what was chosen and is not there, or no more; it is chosen no more then. */
export function lose(all) {
  if (all.length > 0) tell("choice", `Not in the run, so chosen no more: ${all.join(", ")}`);
}

/** Choices that the run does not have. */
const unknown = (choices) =>
  Object.entries(CHOICES).filter(([name, [, isIt]]) => !isIt(choices[name])).map(([name]) => `the chosen ${name}`);

/** Takes what the run is by now. What is looked at stays, at its new positions; who looks at the end goes on so. */
export function renew(overview) {
  const before = { ...run };
  learn(overview);
  const [isAtEnd, isWhole] = [state.until >= before.end, state.from <= 0];
  const grown = run.end - before.end;
  const lost = unknown(state);
  const isNamed = areKnown() && names.threads !== null;
  const threads = isNamed ? positionsOf(names.threads) : [state.first, state.last];
  if (names.threads && threads === null) lost.push(`ranks ${names.threads}`);
  const caller = areKnown() && names.caller ? positionOf(names.caller) : state.call?.[0];
  if (state.call && caller === null) lost.push(`the call of thread ${names.caller}`);
  lose(lost);
  const [first, last] = threads ?? [0, run.locations - 1];
  change({
    ...(isAtEnd ? { from: isWhole ? 0 : state.from + grown, until: run.end } : {}),
    first,
    last,
    call: state.call && caller !== null ? [caller, ...state.call.slice(1)] : null,
  });
}

/** Takes what the run is. */
export function learn({ number, end_s: end, locations, places, kinds, metrics, profile }) {
  Object.assign(run, { number, end, locations, kinds, metrics, profile });
  know(places);
}

/** Percents by what is mended, of a text as 1_50.network_100. */
function mendsOf(text) {
  const found = text.split(".").map((one) => /^([a-z]+|\d+)_(\d{1,3})$/.exec(one));
  return Object.fromEntries(found.filter((one) => one !== null).map(([, of, part]) => [of, Math.min(100, Number(part))]));
}

/** What an address says. That of the page may be another one by the time that one is heard of. */
export function fromAddress(address = location.href) {
  const words = new URLSearchParams(new URL(address).hash.slice(1));
  const number = (name, other) => {
    const found = Number.parseFloat(words.get(name) ?? "");
    return Number.isFinite(found) ? found : other;
  };
  const [who, ...call] = (words.get("call") ?? "").split("_");
  const caller = who.includes(".") ? positionOf(who) : Number(who);
  const isCount = (one) => Number.isFinite(Number(one)) && Number(one) >= 0;
  const isCall = call.length === 2 && [caller ?? 0, ...call].every(isCount);
  const ranks = words.get("ranks");
  const threads = ranks === null ? null : positionsOf(ranks);
  const choices = Object.fromEntries(Object.entries(CHOICES).map(([name, [one]]) => [name, words.get(name) ?? one]));
  lose([
    ...unknown(choices),
    ...(ranks !== null && threads === null ? [`ranks ${ranks.slice(0, 40)}`] : []),
    ...(isCall && caller === null ? [`the call of thread ${who.slice(0, 40)}`] : []),
  ]);
  change({
    from: number("from", 0),
    until: number("until", run.end),
    first: threads?.[0] ?? number("first", 0),
    last: threads?.[1] ?? number("last", run.locations - 1),
    ...choices,
    ...switches((name) => words.get(name) !== "0"),
    mends: mendsOf(words.get("mend") ?? ""),
    call: isCall && caller !== null ? [caller, ...call.map(Number)] : null,
  });
}

/** Zooms around a moment; `factor` below 1 shows less. */
export function zoom(factor, around = (state.from + state.until) / 2) {
  change({
    from: around - (around - state.from) * factor,
    until: around + (state.until - around) * factor,
  });
}

/** Moves by a part of what is shown. */
export function pan(part) {
  const by = (state.until - state.from) * part;
  change({ from: state.from + by, until: state.until + by });
}
