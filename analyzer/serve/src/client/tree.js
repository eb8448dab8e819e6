// The profile in three panes: what is measured, where in the program, at which hosts, ranks and threads. In each, what
// is closed has its inclusive amount, and what is open what is left without those below it.

import { ask } from "./connection.js";
import { tell as tellProblem } from "./problems.js";
import { keep } from "./save.js";
import { change, lose, rename, run, state } from "./state.js";
import { fill } from "./tables.js";
import { bytes, cut, duration } from "./units.js";

/** Pixels from nothing to the most of a rank. */
const SPREAD = 200;
/** Metrics whose parts are shown at first. */
const USUAL = ["time", "lost"];
/** Most characters of rows that are open or closed, in the address. */
const FOLDS = 800;
const element = (id) => document.getElementById(id);
/** What the address says of these rows. */
let folds = { open: "", parts: "", closed: "", threads: "" };
let shown = null;
let asked = "";
let drawn = "";
/** The metric and the place whose places among the others were shown last. */
let [unfolded, revealed] = ["", ""];
/** Places whose parts are shown. */
const open = new Set();
/** Ids of the metrics whose parts are shown. */
const divided = new Set(USUAL);
/** Hosts whose ranks are not shown. */
const closed = new Set();
/** First ranks of the rows whose threads are shown. */
const parted = new Set();

function amount(value, unit, whole) {
  if (state.percent !== "") return whole > 0 ? `${((100 * value) / whole).toFixed(1)} %` : "";
  if (unit === "s") return duration(value);
  return unit === "B" ? bytes(value) : String(Math.round(value));
}

/** How much more, or less, there is than in the other run. */
function changed(row, whole) {
  const more = row.inclusive - (row.before?.[0] ?? 0);
  if (row.before === null || more === 0) return "";
  return `${more > 0 ? "+" : "−"}${amount(Math.abs(more), shown.unit, whole)}`;
}

/** Some of a list, as a text of the address: as much as it may be long. */
function listed(all, between = ".") {
  let text = "";
  for (const one of all) if (text.length + String(one).length < FOLDS) text += `${text === "" ? "" : between}${one}`;
  return text === "" ? "-" : text;
}

/** Whether a list is what a set has. */
const areAll = (list, set) => list.length === set.size && list.every((one) => set.has(one));

/** Notes in the address which rows are open or closed. */
function fold(nodes) {
  const isOpen = [...nodes.values()].filter(({ id, below }) => below.length > 0 && open.has(id)).map(({ id }) => id);
  const usual = new Set(ways(nodes, shown.node ?? 0));
  const hasParts = ({ id }) => shown.metrics.some(({ parent }) => parent === id);
  const inParts = shown.metrics.filter((row) => hasParts(row) && divided.has(row.id)).map(({ id }) => id);
  const usualParts = new Set(shown.metrics.filter((row) => hasParts(row) && isUsual(row.id)).map(({ id }) => id));
  folds = {
    open: areAll(isOpen, usual) ? "" : listed(isOpen),
    parts: areAll(inParts, usualParts) ? "" : listed(inParts),
    closed: closed.size === 0 ? "" : listed(closed, " "),
    threads: parted.size === 0 ? "" : listed(parted),
  };
  if (Object.entries(folds).some(([name, text]) => state[name] !== text)) rename(folds);
}

/** Opens and closes rows as the address says. */
function unfold() {
  const take = (set, text, between = ".") => {
    set.clear();
    for (const one of text.split(between)) if (one !== "" && one !== "-") set.add(one);
  };
  take(open, state.open);
  take(divided, state.parts || USUAL.join("."));
  take(closed, state.closed, " ");
  take(parted, state.threads);
  // As it is linked, not as it would be shown.
  unfolded = state.parts === "" ? "" : shown.metric;
  revealed = state.open === "" ? "" : shown.place;
}

/** Places with parts on the way to one. */
function ways(nodes, at) {
  const found = [nodes.get(0)].filter((node) => node?.below.length > 0);
  for (let node = nodes.get(nodes.get(at)?.parent); node?.at > 0; node = nodes.get(node.parent)) found.push(node);
  return found.map(({ id }) => id);
}

/** Metrics of which one is a part. */
function above(id) {
  const parent = shown.metrics.find((row) => row.id === id)?.parent ?? null;
  return parent === null ? [] : [parent, ...above(parent)];
}

const isUsual = (id) => USUAL.includes(id) || above(shown.metric).includes(id);

/** Nodes by position, each with those below it, in the chosen order. */
function tree() {
  const nodes = new Map(shown.nodes.map(([at, parent, kind, name, inclusive, exclusive, ranks, before, id]) => [
    at, { at, id, parent, kind, name: name || kind, inclusive, exclusive, ranks, before, below: [] },
  ]));
  for (const node of nodes.values()) nodes.get(node.parent)?.below.push(node);
  const orders = {
    most: (a, b) => b.inclusive - a.inclusive,
    own: (a, b) => b.exclusive - a.exclusive,
    name: (a, b) => a.name.localeCompare(b.name),
  };
  for (const node of nodes.values()) node.below.sort(orders[state.order]);
  return nodes;
}

function reveal(nodes, at) {
  for (const id of ways(nodes, at)) open.add(id);
}

function draw() {
  if (shown === null) return;
  drawn = `${state.order} ${state.percent} ${state.find}`;
  const nodes = tree();
  const whole = shown.metrics.find((metric) => metric.id === shown.metric)?.whole ?? 0;
  const words = state.find.toLowerCase();
  const isFound = (node) => words !== "" && node.name.toLowerCase().includes(words);
  if (words !== "") for (const node of nodes.values()) if (isFound(node)) reveal(nodes, node.at);
  const isCompared = shown.against !== null;
  const tell = (value, of, unit = shown.unit) => (value === null || value === undefined ? "" : amount(value, unit, of));
  drawMetrics(isCompared, tell);
  const rows = [];
  const visit = (node, depth) => {
    rows.push({ ...node, depth });
    if (open.has(node.id)) for (const one of node.below) visit(one, depth + 1);
  };
  if (nodes.has(0)) visit(nodes.get(0), 0);
  const own = (row) => (open.has(row.id) && row.below.length > 0 ? row.exclusive : row.inclusive);
  fill("tree", [
    ["Where", (row) => `${" ".repeat(row.depth * 2)}${row.below.length === 0 ? " " : open.has(row.id) ? "▾" : "▸"} ${row.name}`],
    ["", (row) => amount(own(row), shown.unit, whole), true],
    ["Inclusive", (row) => amount(row.inclusive, shown.unit, whole), true],
    ["Exclusive", (row) => amount(row.exclusive, shown.unit, whole), true],
    ...(isCompared ? [
      ["Before", (row) => tell(row.before?.[0], whole), true],
      ["Change", (row) => changed(row, whole), true],
    ] : []),
    ["Most at", (row) => (row.ranks === null ? "" : `rank ${row.ranks[3]}`)],
  ], rows, (row) => {
    if (row.below.length > 0 && (row.at === shown.node || !open.has(row.id))) {
      if (!open.delete(row.id)) open.add(row.id);
    }
    if (row.at === shown.node) draw();
    else change({ node: row.at === 0 ? "" : row.id });
  }, cut(shown.nodes.length, shown.nodes_in_report, "places, those with most of it", "report.json has all."));
  [...element("tree").rows].slice(1).forEach((line, at) => {
    line.classList.toggle("chosen", rows[at].at === shown.node);
    line.classList.toggle("found", isFound(rows[at]));
  });
  keep("tree", shown.nodes.map(([at, parent, kind, name, inclusive, exclusive, ranks, before]) => ({
    node: at, parent, kind, name, inclusive, exclusive,
    min: ranks?.[0], median: ranks?.[1], max: ranks?.[2], max_rank: ranks?.[3],
    ...(isCompared ? { before_inclusive: before?.[0], before_exclusive: before?.[1] } : {}),
  })));
  drawSystem();
  fold(nodes);
  element("against").textContent = isCompared ? `Before: ${shown.against}` : "";
  drawSpread();
  element("tree").dataset.whole = String(whole);
  element("tree").dataset.metric = shown.metric;
}

/** The tree of metrics. */
function drawMetrics(isCompared, tell) {
  const all = shown.metrics;
  const below = (id) => all.filter((row) => row.parent === id);
  // What is asked for can be seen.
  if (shown.metric !== unfolded) for (const id of above(shown.metric)) divided.add(id);
  unfolded = shown.metric;
  const rows = [];
  const visit = (row, depth) => {
    const parts = below(row.id);
    const isOpen = parts.length > 0 && divided.has(row.id);
    const left = (key) => parts.reduce((sum, part) => sum - (part[key] ?? 0), row[key] ?? 0);
    // Sums of rounded numbers are not quite the whole.
    const rest = (key) => (left(key) > 1e-9 * row[key] ? left(key) : 0);
    const own = (key) => (isOpen && row[key] !== null ? rest(key) : row[key]);
    const sign = parts.length === 0 ? " " : isOpen ? "▾" : "▸";
    rows.push({ ...row, left: own("whole"), left_before: own("before"), title: `${" ".repeat(depth * 2)}${sign} ${row.name}`, parts });
    if (isOpen) for (const part of parts) visit(part, depth + 1);
  };
  for (const row of below(null)) visit(row, 0);
  const whole = (row) => all.find(({ id }) => id === (above(row.id).at(-1) ?? row.id)).whole;
  fill("metrics", [
    ["Metric", (row) => row.title],
    ["Whole run", (row) => amount(row.left, row.unit, whole(row)), true],
    ...(isCompared ? [["Before", (row) => tell(row.left_before, whole(row), row.unit), true]] : []),
  ], rows, (row) => {
    if (row.parts.length > 0 && (row.id === shown.metric || !divided.has(row.id))) {
      if (!divided.delete(row.id)) divided.add(row.id);
    }
    if (row.id === shown.metric) draw();
    else change({ profile: row.key ?? row.id });
  });
  [...element("metrics").rows].slice(1).forEach((line, at) => line.classList.toggle("chosen", rows[at].id === shown.metric));
  keep("metrics", all);
}

const span = (first, last) => (first === last ? String(first) : `${first}–${last}`);

/** Hosts, their ranks, and the threads of ranks that are open. */
function drawSystem() {
  const all = shown.system.flatMap((row) => [row, ...row.threads.map(([from, until, first, last, mean]) => ({
    ...row, thread: span(from, until), locations: [first, last], mean, threads: [],
  }))]);
  const isShown = (row) => !closed.has(row.host) && (row.thread === undefined || parted.has(String(row.first)));
  const names = [...new Set(shown.system.map((row) => row.host))];
  const rows = names.flatMap((host) => {
    const ranks = shown.system.filter((row) => row.host === host);
    const total = ranks.reduce((sum, row) => sum + row.mean * (row.last - row.first + 1), 0);
    return [{ host, total, ranks }, ...all.filter((row) => row.host === host && isShown(row))];
  });
  const most = rows.reduce((sum, row) => sum + (row.total ?? 0), 0);
  const tell = (value) => amount(value, shown.unit, most);
  const sign = (row) => (row.threads.length === 0 ? "" : parted.has(String(row.first)) ? "▾ " : "▸ ");
  const hasThreads = all.length > shown.system.length;
  const isMean = shown.system.some((row) => row.first !== row.last);
  const whole = shown.nodes.find(([at]) => at === shown.node)?.[4] ?? 0;
  const isCause = shown.metrics.some(({ id, parent }) => id === shown.metric && parent === "caused");
  const rest = isCause && whole - most > 1e-3 * whole ? whole - most : 0;
  fill("system", [
    ["Host", (row) => (row.ranks === undefined ? "" : `${closed.has(row.host) ? "▸" : "▾"} ${row.host}`)],
    ["Rank", (row) => (row.ranks !== undefined || row.thread !== undefined ? "" : `${sign(row)}${span(row.first, row.last)}`), true],
    ...(hasThreads ? [["Thread", (row) => row.thread ?? "", true]] : []),
    [isMean ? "All, or mean" : "", (row) => tell(row.total ?? row.mean), true],
  ], rows, (row) => {
    if (row.ranks !== undefined) {
      if (!closed.delete(row.host)) closed.add(row.host);
      draw();
      return;
    }
    const { threads, locations: [first, last] } = row;
    const rank = String(row.first);
    if (threads.length > 0 && !parted.delete(rank)) parted.add(rank);
    draw();
    change({ first, last });
  }, [
    rest === 0 ? "" : `${amount(rest, shown.unit, whole)} of ${amount(whole, shown.unit, whole)} is of ranks that the report does not name.`,
    shown.untold_threads ?? "",
  ].filter((text) => text !== "").join(" "));
  keep("system", all.map(({ host, first, last, thread, mean }) => ({
    host, first, last, ...(hasThreads ? { thread: thread ?? "all" } : {}), mean,
  })));
}

/** The outline of a violin: how dense values are, by Gaussian kernels with Silverman's bandwidth. */
function violin(sorted, range, x, middle, half) {
  const count = sorted.length;
  const [least, most] = [sorted[0], sorted[count - 1]];
  if (!(least < most)) return "";
  const mean = sorted.reduce((sum, one) => sum + one, 0) / count;
  const deviation = Math.sqrt(sorted.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (count - 1));
  const silverman = 0.9 * (Math.min(deviation, range / 1.34) || deviation) * count ** -0.2;
  // Narrower than the places at which it is drawn, it would be between them.
  const bandwidth = Math.max(silverman, (most - least) / 60);
  const places = Array.from({ length: 61 }, (_, at) => least + ((most - least) * at) / 60);
  const dense = places.map((place) => sorted.reduce((sum, one) => sum + Math.exp(-(((place - one) / bandwidth) ** 2) / 2), 0));
  const densest = Math.max(...dense);
  const side = (sign) => places.map((place, at) => `${x(place).toFixed(1)},${(middle - (sign * half * dense[at]) / densest).toFixed(1)}`);
  return `M${[...side(1), ...side(-1).reverse()].join("L")}Z`;
}

/**
 * How the amount of the chosen node is spread over ranks: a mark for each, and a violin and a box of all. Of many
 * ranks these are of means of successive ones; least and most are of a single rank.
 */
function drawSpread() {
  const svg = element("spread");
  const each = shown.ranks_per_class;
  const sorted = shown.system.map((row) => row.mean).sort((a, b) => a - b);
  element("spreads").hidden = sorted.length < 2;
  if (sorted.length < 2) {
    svg.replaceChildren();
    keep("spread", []);
    return;
  }
  // Between two of them, as far as the quantile is.
  const quantile = (part) => {
    const at = part * (sorted.length - 1);
    const low = Math.floor(at);
    return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  };
  const [lower, median, upper] = [0.25, 0.5, 0.75].map(quantile);
  const [least, middle, most, rank] = shown.spread;
  const x = (value) => 6 + (most > 0 ? (value / most) * (SPREAD - 12) : 0);
  const made = (name, attributes) => {
    const one = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    return one;
  };
  svg.setAttribute("viewBox", `0 0 ${SPREAD} 34`);
  svg.setAttribute("width", SPREAD);
  svg.setAttribute("height", 34);
  const title = made("title", {});
  const tell = (value) => amount(value, shown.unit, most);
  const quarters = `a quarter up to ${tell(lower)}, half up to ${tell(median)}, three quarters up to ${tell(upper)}`;
  title.textContent = each === 1
    ? `Of a rank: least ${tell(least)}, ${quarters}, most ${tell(most)} (rank ${rank})`
    : `Of a rank: least ${tell(least)}, half up to ${tell(middle)}, most ${tell(most)} (rank ${rank}). ` +
      `Box and violin are of means of ${each} successive ranks: ${quarters}`;
  svg.replaceChildren(
    title,
    made("path", { d: violin(sorted, upper - lower, x, 12, 11), class: "sends", "fill-opacity": "0.25" }),
    made("rect", { x: x(least), y: 11, width: Math.max(1, x(most) - x(least)), height: 2, class: "sends" }),
    made("rect", { x: x(lower), y: 4, width: Math.max(1, x(upper) - x(lower)), height: 16, class: "sends", "fill-opacity": "0.5" }),
    made("rect", { x: x(median) - 1, y: 2, width: 2, height: 20, class: "sends" }),
    ...shown.system.map(({ mean }) => made("circle", { cx: x(mean), cy: 28, r: 3, class: "waits", "fill-opacity": "0.5" })),
  );
  Object.assign(svg.dataset, { least: String(least), most: String(most) });
  keep("spread", [{
    metric: shown.metric, node: shown.node, min: least, quarter: lower, median: middle, three_quarters: upper, max: most,
    max_rank: rank, ranks_per_class: each,
  }]);
}

/** Opens the way down along which most of the amount is. */
function hotPath() {
  const nodes = tree();
  let node = nodes.get(shown.node) ?? nodes.get(0);
  while (node && node.below.length > 0) {
    open.add(node.id);
    const next = node.below.reduce((most, one) => (one.inclusive > most.inclusive ? one : most));
    if (next.inclusive < node.inclusive / 2) break;
    node = next;
  }
  if (node && node.at !== shown.node) change({ node: node.at === 0 ? "" : node.id });
  else draw();
}

export async function show() {
  const keyOf = () => `${run.number} ${state.profile} ${state.node}`;
  const key = keyOf();
  const isLinked = Object.entries(folds).some(([name, text]) => state[name] !== text);
  const how = `${state.order} ${state.percent} ${state.find}`;
  element("percent").checked = state.percent !== "";
  element("order").value = state.order;
  if (element("find").value.trim() !== state.find) element("find").value = state.find;
  if (key === asked) {
    if (isLinked) unfold();
    if (isLinked && state.open === "") reveal(tree(), shown.node);
    if (isLinked || how !== drawn) draw();
    return;
  }
  // Links of earlier versions have the position.
  const isNumber = /^\d{1,9}$/.test(state.node);
  const place = state.node === "" ? {} : isNumber ? { node: Number(state.node) } : { place: state.node };
  const answer = await ask({ ask: "tree", metric: state.profile, ...place });
  if (answer === null) return;
  const wasThere = shown?.place === state.node;
  shown = answer;
  if (isLinked) unfold();
  if (shown.node !== null && revealed !== shown.place) reveal(tree(), shown.node);
  revealed = shown.place;
  draw();
  asked = shown.node === null ? "" : key;
  // Something else may be chosen since.
  if (key !== keyOf()) return;
  if (shown.node === null && wasThere) {
    lose(["the place in the profile"]);
    change({ node: "" });
  } else if (shown.node === null) tellProblem("tree", "the report has no such place");
  else {
    rename({ node: shown.node === 0 ? "" : shown.place, profile: shown.key ?? shown.metric });
    asked = keyOf();
  }
}

element("percent").addEventListener("change", (event) => change({ percent: event.target.checked ? "1" : "" }));
element("order").addEventListener("change", (event) => change({ order: event.target.value }));
element("find").addEventListener("input", (event) => change({ find: event.target.value.trim() }));
element("hot").addEventListener("click", () => shown !== null && hotPath());
