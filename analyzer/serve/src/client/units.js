// Numbers for people.

/** Seconds with a unit, three digits. */
export function duration(seconds) {
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  for (const [unit, factor] of [["s", 1], ["ms", 1e3], ["µs", 1e6]]) {
    if (size * factor >= 1) return `${Number((seconds * factor).toPrecision(3))} ${unit}`;
  }
  return `${Number((seconds * 1e9).toPrecision(3))} ns`;
}

/** A moment, with as many digits as a stretch of this length needs. */
export function moment(seconds, length) {
  const digits = Math.min(9, Math.max(0, 2 - Math.floor(Math.log10(length))));
  return `${seconds.toFixed(digits)} s`;
}

export function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let at = 0;
  while (count >= 1000 && at < units.length - 1) [count, at] = [count / 1000, at + 1];
  return `${Number(count.toPrecision(3))} ${units[at]}`;
}

/** Round moments in a stretch, at most so many. */
export function ticks(from, until, most) {
  const rough = (until - from) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  const found = [];
  for (let n = Math.ceil(from / step); n * step <= until; n += 1) found.push(n * step);
  return found;
}

/** A rank, or a thread of it: also the first one if threads of that rank are told apart. */
export function who(rank, thread, areApart = false) {
  return thread === null || (thread === 0 && !areApart) ? `rank ${rank}` : `thread ${thread} of rank ${rank}`;
}

/** An amount with a unit: s, B, or a number of something. */
export function amount(value, unit) {
  if (unit === "s") return duration(value);
  return unit === "B" ? bytes(value) : String(Number(value.toPrecision(3)));
}

/** The name of the colour of what was answered. */
export function colourOf({ metric, unit }, { kinds }) {
  if (kinds.includes(metric)) return metric;
  if (unit === "s") return "waiting";
  return metric.startsWith("counter:") || metric === "samples" ? "computation" : "communication";
}

/** What a list says that is cut: how much of all it has, and where the rest is. Nothing if it has all. */
export function cut(told, all, what, rest) {
  return told < all ? `${told} of ${all} ${what}. ${rest}` : "";
}
