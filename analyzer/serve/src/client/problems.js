// What is wrong, by what was asked: it stands until that is answered well, or wanted no more.

/** The parts of the page that questions are for. */
const PARTS = {
  heat: "Run at a glance", alike: "Run at a glance", line: "Time line", path: "Critical path",
  messages: "Messages", sampled: "Samples", changes: "Changes of what is recorded", call: "The call", meanwhile: "The call", course: "Over time",
  overview: "Findings", what_if: "What if these were mended", selection: "Selection", tree: "Profile",
  matrix: "Who sends whom", topology: "Ranks in their grid",
};
/** What lets go of a choice that cannot be shown, and what is shown then. */
const WITHOUT = {
  call: [{ call: null }, "Escape closes it."],
  tree: [{ node: "" }, "Escape shows the whole run."],
  matrix: [{ part: "", group: "" }, "Escape shows all ranks."],
  topology: [{ topology: "" }, "Escape shows the largest grid."],
};
/** These do not go with what is looked at. */
const LASTING = ["choice", "connection", "overview"];
const standing = new Map();
let round = 0;

function show() {
  const of = new Map();
  for (const [name, { text }] of standing) of.set(text, [...(of.get(text) ?? []), name]);
  const texts = [...of].map(([text, [name, ...others]]) => {
    // What is wrong with many is wrong with the trace.
    if (others.length > 0 || !PARTS[name]) return text;
    const way = WITHOUT[name]?.[1];
    return `${PARTS[name]}: ${text}${way ? `. ${way}` : ""}`;
  });
  const [box, text] = [document.getElementById("problem"), texts.join(" · ")];
  // What is said again is read aloud again.
  if (box.textContent !== text) box.textContent = text;
}

/** Tells what is wrong with what was asked; "" if nothing is. */
export function tell(name, text) {
  if (text === "" && !standing.has(name)) return;
  if (text === "") standing.delete(name);
  else standing.set(name, { text, round });
  show();
}

/** Whether something is wrong with it. */
export const stands = (name) => standing.has(name);

/** It is still wanted. */
export function asked(name) {
  const found = standing.get(name);
  if (found) found.round = round;
}

/** All is asked anew from now on. */
export function begin() {
  round += 1;
}

/** All was answered: what was not asked is wanted no more. */
export function end() {
  for (const [name, one] of standing) if (one.round < round && !LASTING.includes(name)) standing.delete(name);
  show();
}

/** Changes that let go of the choices that cannot be shown. */
export const without = () => Object.assign({}, ...[...standing.keys()].map((name) => WITHOUT[name]?.[0] ?? {}));
