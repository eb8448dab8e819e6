// What is looked at: in the address, so that a link leads there.

/** The whole run; known once the overview is there. `number` grows with a run that goes on. */
export const run = { end: 1, locations: 1, kinds: [], number: 0 };

/** What is looked at now. */
export const state = { from: 0, until: 1, first: 0, last: 0, metric: "waiting", call: null, profile: "time", node: 0, matrix: "bytes", path: true, mends: {}, functions: "", topology: null, placed: "" };

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
  if (!run.kinds.includes(state.metric)) state.metric = "waiting";
  if (!["time", "waiting", "caused", "calls", "bytes"].includes(state.profile)) state.profile = "time";
  if (!["bytes", "messages", "waiting"].includes(state.matrix)) state.matrix = "bytes";
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
  if (state.metric !== "waiting") words.set("metric", state.metric);
  if (state.profile !== "time") words.set("profile", state.profile);
  if (state.node > 0) words.set("node", String(state.node));
  if (state.matrix !== "bytes") words.set("matrix", state.matrix);
  if (!state.path) words.set("path", "0");
  if (state.topology !== null) words.set("topology", state.topology);
  if (state.placed !== "") words.set("placed", state.placed);
  if (state.functions !== "") words.set("functions", state.functions);
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
    metric: words.get("metric") ?? "waiting",
    profile: words.get("profile") ?? "time",
    node: number("node", 0),
    matrix: words.get("matrix") ?? "bytes",
    path: words.get("path") !== "0",
    functions: (words.get("functions") ?? "").slice(0, 100),
    topology: /^[0-9a-f]{1,16}$/.exec(words.get("topology") ?? "")?.[0] ?? null,
    placed: /^[a-z_]{1,60}$/.exec(words.get("placed") ?? "")?.[0] ?? "",
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
