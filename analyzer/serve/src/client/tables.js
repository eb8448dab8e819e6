// Tables: findings and root causes, what is selected, and one call.

import { MOST, chain, follow, forget } from "./chain.js";
import { ask } from "./connection.js";
import { LANES, aim, draw } from "./line.js";
import { stands } from "./problems.js";
import { keep } from "./save.js";
import { change, run, state } from "./state.js";
import { amount, bytes, cut, duration, moment, who } from "./units.js";

function cell(kind, text, isNumber = false) {
  const made = document.createElement(kind);
  made.textContent = text;
  if (isNumber) made.className = "number";
  return made;
}

/** The end of choices of which only the largest are offered. */
export function more(count) {
  const made = new Option(`only the ${count} largest are listed`, "");
  made.disabled = true;
  return made;
}

/** Fills a table. Rows are objects; with `go`, one leads where it says. `note` is what `cut` says. */
export function fill(id, columns, rows, go = null, note = "") {
  keep(id, rows);
  const head = document.createElement("tr");
  head.append(...columns.map(([title, , isNumber]) => cell("th", title, isNumber)));
  const body = rows.map((row, at) => {
    const made = document.createElement("tr");
    made.append(...columns.map(([, text, isNumber]) => cell("td", text(row, at) ?? "", isNumber)));
    if (go !== null) {
      made.tabIndex = 0;
      made.addEventListener("click", () => go(row));
      made.addEventListener("keydown", (event) => event.key === "Enter" && go(row));
    }
    return made;
  });
  document.getElementById(id).replaceChildren(...(note === "" ? [] : [cell("caption", note)]), head, ...body);
}

const percent = (of) => `${Number(of.toPrecision(2))} %`;

/** Looks at some locations around one of them. */
function around(location) {
  const count = Math.min(LANES, run.locations);
  const first = Math.min(Math.max(0, location - 1), run.locations - count);
  return { first, last: first + count - 1 };
}

/** Looks at what a location did at a moment, and at some time around it. */
function moments(location, { start_s: start, end_s: end }) {
  const long = Math.max(end - start, 1e-6);
  aim(location, (start + end) / 2);
  return { from: start - 2 * long, until: end + long };
}

/** Ranks of a row, with the numbers of their threads where these are told. */
export const ranksOf = (row) => row.threads === "" ? row.ranks : `${row.ranks}, threads ${row.threads}`;

/** Findings and root causes of the report, how the run ended, and what is wrong with its trace. */
export function showFound(overview) {
  const { ended, anomalies, anomalies_in_report: ofAnomalies } = overview;
  Object.assign(document.getElementById("ended"), { textContent: ended, hidden: ended === "" });
  document.getElementById("odd").hidden = anomalies.length === 0;
  fill("anomalies", [
    ["", (row) => row.severity],
    ["What", (row) => row.what],
  ], anomalies, null, cut(anomalies.length, ofAnomalies, "anomalies, the worst", "report.json has all."));
  const { findings, findings_in_report: ofFindings, root_causes: roots, root_causes_in_report: ofRoots } = overview;
  fill("findings", [
    ["Time lost", (row) => duration(row.severity_s), true],
    ["Share", (row) => percent(row.percent), true],
    ["What", (row) => row.name],
    ["Where", (row) => `${row.operation} ${row.place}`],
    ["Ranks", ranksOf],
    ["Late", (row) => row.late_rank === null ? "" : `${who(row.late_rank, row.late_thread, true)}${row.because ? `: ${row.because}` : ""}`],
    ["Started by", (row) => row.root_causes.join(", ")],
  ], findings, (row) => change({
    ...(row.worst === null ? {} : moments(row.location, row.worst)),
    ...(row.location === null ? {} : around(Math.min(row.location, row.late_location ?? row.location))),
    ...(row.node === null ? {} : { node: row.node }),
    profile: row.pattern,
    matrix: "waiting",
    call: null,
  }), cut(findings.length, ofFindings, "findings", `laggard show --top ${ofFindings} and report.json have all.`));
  fill("roots", [
    ["Waiting", (row) => duration(row.severity_s), true],
    ["Share", (row) => percent(row.percent), true],
    ["", (row) => row.id],
    ["What", (row) => row.what],
  ], roots, (row) => change({
    ...(row.worst === null ? {} : moments(row.location, row.worst)),
    ...(row.location === null ? {} : around(row.location)),
    ...(row.node === null ? {} : { node: row.node }),
    profile: row.key,
    matrix: "waiting",
    call: null,
  }), cut(roots.length, ofRoots, "root causes", "report.json has all."));
}

/** Sums of what is selected. */
export async function showSelection() {
  const { from, until, first, last, functions } = state;
  const answer = await ask({ ask: "selection", from_s: from, until_s: until, first, last, functions });
  if (answer === null) return;
  const length = answer.until_s - answer.from_s;
  // As all shares of a report: what start-up and shut-down take is not counted. Waiting is part of the others.
  const whole = run.kinds.reduce((sum, kind) => sum + (kind === "waiting" ? 0 : answer.times_s[kind]), 0);
  fill("times", [
    ["Kind of time, between start-up and shut-down", (row) => row.kind],
    ["Time", (row) => duration(row.time_s), true],
    [`Share of ${duration(whole)}`, (row) => (whole > 0 ? percent((100 * row.time_s) / whole) : ""), true],
  ], run.kinds.map((kind) => ({ kind, time_s: answer.times_s[kind] })));
  const unread = document.getElementById("unread");
  const notes = [
    [answer.unread_locations, `Too many calls to count: choose less. Of ${answer.unread_locations} of ${answer.locations} threads the waiting alone is known.`],
    [answer.profiled_locations, `So many calls are told as profiles have them: without single calls and messages of ${answer.profiled_locations} of ${answer.locations} threads.`],
    [answer.unrecorded_locations, `Of ${answer.unrecorded_locations} of ${answer.locations} threads only a profile was recorded: waiting is unknown, and times of a part of the run are the mean of all of it.`],
    [answer.left_out_s, `For ${duration(answer.left_out_s)} the recording was paused, or kept a profile alone: what was done then is unknown, and shown as computation.`],
    [answer.paused_locations, `Of ${answer.paused_locations} of ${answer.locations} threads the recording was paused at times, or left calls out: these are shown as computation.`],
    [answer.unknown_waits, "Waiting in calls is that of the longest waits alone."],
  ];
  unread.textContent = notes.filter(([count]) => count > 0).map(([, note]) => note).join(" ");
  unread.hidden = unread.textContent === "";
  const known = (of, told) => (of === null ? "" : told(of));
  fill("profile", [
    ["Call", (row) => row.call],
    ["Where", (row) => row.place],
    ["Calls", (row) => known(row.calls, String), true],
    ["Time", (row) => known(row.time_s, duration), true],
    ["Waiting", (row) => duration(row.waiting_s), true],
    ["Bytes", (row) => known(row.bytes, bytes), true],
  ], answer.profile, null,
  cut(answer.profile.length, answer.profile_rows, "rows, those with most time", "Choose less, or calls by their names."));
  // Columns are named as in files: from, until, how many, and their sum.
  const histogram = (id, rows, unit, names, titles, what) => {
    const most = Math.max(...rows.map(([, , count]) => count), 1);
    fill(id, [
      ["From", (row) => amount(row[names[0]], unit), true],
      [titles[0], (row) => String(row[names[2]]), true],
      [titles[1], (row) => amount(row[names[3]], unit), true],
      ["", (row) => "█".repeat(Math.ceil((30 * row[names[2]]) / most))],
    ], rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at]]))));
    document.getElementById(id).dataset.count = String(rows.reduce((all, [, , count]) => all + count, 0));
    document.getElementById(`${id}-title`).textContent = what;
  };
  histogram("durations", answer.durations_s, "s", ["from_s", "until_s", "calls", "time_s"], ["Calls", "Time"], "How long calls take");
  const messages = answer.sizes.reduce((all, [, , count]) => all + count, 0);
  const rate = `${amount(messages / length, "")} a second`;
  const sent = answer.sizes.reduce((all, [, , , sum]) => all + sum, 0);
  const what = messages === 0 ? "Sizes of messages" : `Sizes of messages: ${messages}, ${rate}, ${bytes(sent)}, ${bytes(sent / length)} a second`;
  histogram("sizes", answer.sizes, "B", ["from", "until", "messages", "bytes"], ["Messages", "Bytes"], what);
  fill("waits", [
    ["Time lost", (row) => duration(row.lost_s), true],
    ["When", (row) => moment(row.since_s, length), true],
    ["Who", (row) => who(row.rank, row.thread, row.rank === row.late_rank)],
    ["What", (row) => row.pattern],
    ["Late", (row) => row.late_rank === null ? "" : who(row.late_rank, row.late_thread, row.rank === row.late_rank)],
  ], answer.waits, (row) => {
    const long = Math.max(row.lost_s, 1e-6);
    aim(row.location, row.since_s + row.lost_s / 2);
    change({ from: row.since_s - long, until: row.since_s + 2 * long, ...around(row.location) });
  }, cut(answer.waits.length, answer.waits_in_sight, "waits, the longest", "Choose less to see others."));
}

/** Changes of what is recorded, in what is looked at. */
export async function showChanges() {
  const { from, until, first, last } = state;
  const answer = await ask({ ask: "changes", from_s: from, until_s: until, first, last });
  if (answer === null) return;
  document.getElementById("changed").hidden = answer.count === 0;
  const length = until - from;
  fill("changes", [
    ["When", (row) => moment(row.at_s, length), true],
    ["Who", (row) => who(row.rank, row.thread, true)],
    ["Recorded from then on", (row) => row.change],
  ], answer.changes, (row) => change({ from: row.at_s - length / 20, until: row.at_s + length / 20, ...around(row.location) }),
  cut(answer.changes.length, answer.count, "changes, the first", "Choose less to see others."));
}

/** All about the chosen call. */
export async function showCall() {
  const box = document.getElementById("call");
  if (state.call === null) {
    box.hidden = true;
    if (chain.length > 0) {
      forget();
      draw();
    }
    return;
  }
  const [location, number, at] = state.call;
  const call = await ask({ ask: "call", location, number, at_s: at });
  if (call === null) {
    box.hidden ||= stands("call");
    return;
  }
  const longest = call.waits.reduce((most, one) => (most === null || one.lost_s > most.lost_s ? one : most), null);
  const steps = longest === null ? [] : await follow(location, longest);
  if (steps === null) return;
  if (longest === null) forget();
  draw();
  const region = call.parallel_region;
  const rows = [
    ["Rank", `${call.rank}${call.thread ? `, thread ${call.thread}` : ""} on ${call.host}`],
    ["From", `${moment(call.enter_s, call.leave_s - call.enter_s)}, for ${duration(call.leave_s - call.enter_s)}`],
    ["Called at", call.callpath.join(" › ")],
    ["Parallel region", region && `${region.at[0].split("/").pop()}:${region.at[1]} ${region.at[2]}, by thread ${region.thread} of ${region.threads}`],
    ["Sent", call.sent_bytes ? `${bytes(call.sent_bytes)}${call.to_rank === null ? "" : ` to rank ${call.to_rank}`}` : ""],
    ["Received", call.received_bytes ? `${bytes(call.received_bytes)}${call.from_rank === null ? "" : ` from rank ${call.from_rank}`}` : ""],
    ["Communicator", call.communicator],
    ...call.waits.map((wait) => [
      wait.pattern,
      `${duration(wait.lost_s)}${wait.late_rank === null ? "" : `, for ${who(wait.late_rank, wait.late_thread, wait.late_rank === call.rank)} to enter ${wait.late_call} at ${moment(wait.late_enter_s, wait.lost_s)}`}`,
    ]),
  ];
  if (call.unknown_waits) rows.push(["Waits", "not known: it is none of the longest waits, which alone are kept"]);
  if (steps.length > 1) {
    const goesOn = steps.length === MOST ? ", and so on" : "";
    const isOf = (at, rank) => steps[at]?.rank === rank;
    const names = steps.map(({ rank, thread }, at) => who(rank, thread, isOf(at - 1, rank) || isOf(at + 1, rank)));
    rows.push(["Meanwhile", `${names.join(" waited for ")}${goesOn}`]);
  }
  const roots = (longest?.started_by ?? []).map(([id, share]) => `${id} (${percent(100 * share)})`);
  if (roots.length > 0) rows.push(["Such waits start with", roots.join(", ")]);
  box.dataset.roots = String(roots.length);
  box.dataset.steps = String(steps.length);
  const table = document.createElement("table");
  for (const [name, text] of rows.filter(([, text]) => text)) {
    const row = document.createElement("tr");
    row.append(cell("th", name), cell("td", text));
    table.append(row);
  }
  box.replaceChildren(cell("h2", call.call), table);
  box.hidden = false;
}
