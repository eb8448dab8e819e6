// What is looked at: in the address, so that a link leads there.

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
  find: ["", (text) => text.length <= 100],
  functions: ["", (text) => text.length <= 100],
  matrix: ["bytes", isOneOf("bytes", "messages", "waiting")],
  by: ["ranks", isOneOf("ranks", "hosts")],
  of: ["run", isOneOf("run", "selection")],
  group: ["", (text) => /^[0-9a-f]{0,16}$/.test(text)],
  part: ["", (text) => text === "" || /^\d{1,9}(_\d{1,9}){3}$/.test(text)],
  topology: ["", (text) => /^[0-9a-f]{0,16}$/.test(text)],
  placed: ["", (text) => text === "" || isMetric(text) || /^[a-z_]{1,60}$/.test(text)],
};
const first = Object.fromEntries(Object.entries(CHOICES).map(([name, [one]]) => [name, one]));

/** What may be switched off. */
export const SWITCHES = ["path", "messages"];
const switches = (isOn) => Object.fromEntries(SWITCHES.map((name) => [name, isOn(name)]));

/** What is looked at now. */
export const state = { from: 0, until: 1, first: 0, last: 0, call: null, node: 0, mends: {}, ...switches(() => true), ...first };

/** The name of a metric. */
export const nameOf = (metric) => run.metrics.find(([id]) => id === metric)?.[1] ?? metric;

const listeners = [];

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
  state.node = Math.max(0, Math.trunc(state.node));
  const words = new URLSearchParams();
  if (state.from > 0 || state.until < run.end) {
    words.set("from", String(Number(state.from.toPrecision(12))));
    words.set("until", String(Number(state.until.toPrecision(12))));
  }
  if (state.first > 0 || state.last < run.locations - 1) {
    words.set("first", String(state.first));
    words.set("last", String(state.last));
  }
  for (const [name, [one]] of Object.entries(CHOICES)) if (state[name] !== one) words.set(name, state[name]);
  if (state.node > 0) words.set("node", String(state.node));
  for (const name of SWITCHES) if (!state[name]) words.set(name, "0");
  const mends = Object.entries(state.mends).filter(([, part]) => part > 0);
  if (mends.length > 0) words.set("mend", mends.map(([of, part]) => `${of}_${part}`).join("."));
  if (state.call) words.set("call", state.call.join("_"));
  history.replaceState(null, "", `#${words}`);
  for (const listener of listeners) listener(state);
}

/** Percents by what is mended, of a text as 1_50.network_100. */
function mendsOf(text) {
  const found = text.split(".").map((one) => /^([a-z]+|\d+)_(\d{1,3})$/.exec(one));
  return Object.fromEntries(found.filter((one) => one !== null).map(([, of, part]) => [of, Math.min(100, Number(part))]));
}

/** What the address says. */
export function fromAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (name, other) => {
    const found = Number.parseFloat(words.get(name) ?? "");
    return Number.isFinite(found) ? found : other;
  };
  const call = (words.get("call") ?? "").split("_").map(Number);
  change({
    from: number("from", 0),
    until: number("until", run.end),
    first: number("first", 0),
    last: number("last", run.locations - 1),
    ...Object.fromEntries(Object.entries(CHOICES).map(([name, [one]]) => [name, words.get(name) ?? one])),
    node: number("node", 0),
    ...switches((name) => words.get(name) !== "0"),
    mends: mendsOf(words.get("mend") ?? ""),
    call: call.length === 3 && call.every((one) => Number.isFinite(one) && one >= 0) ? call : null,
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
