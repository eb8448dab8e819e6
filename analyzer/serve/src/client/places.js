// Positions of ranks and threads, which are others once ranks or threads have come, and their names, which stay.

/** Successive ranks that each have the same threads: ranks, threads, and the first position. */
let rows = [];

/** Takes the ranks and threads of the run; null if there are too many to tell. */
export function know(places) {
  let at = 0;
  rows = (places ?? []).map(([from, until, first, last]) => {
    const row = { from, until, first, each: last - first + 1, at };
    at += (until - from + 1) * row.each;
    return row;
  });
}

/** Whether ranks and threads have names. */
export const areKnown = () => rows.length > 0;

/** The rank and the thread at a position; null if nobody knows. */
function placeAt(position) {
  const row = rows.findLast(({ at }) => at <= position);
  if (!row) return null;
  const rank = row.from + Math.floor((position - row.at) / row.each);
  return rank > row.until ? null : [rank, row.first + ((position - row.at) % row.each)];
}

/** The first and the last position of a rank; null if it has none. */
function ofRank(rank) {
  const own = rows.filter(({ from, until }) => from <= rank && rank <= until);
  const begin = ({ from, each, at }, by) => at + (rank - from + by) * each;
  return own.length === 0 ? null : [begin(own[0], 0), begin(own.at(-1), 1) - 1];
}

/** The position of a thread, by its name as 1.0; null if there is none. */
export function positionOf(name) {
  const [rank, thread] = name.split(".").map(Number);
  const isIt = ({ from, until, first, each }) =>
    from <= rank && rank <= until && first <= thread && thread < first + each;
  const row = rows.find(isIt);
  return row ? row.at + (rank - row.from) * row.each + thread - row.first : null;
}

/** The name of the thread at a position, as 1.0; null if nobody knows. */
export const nameAt = (position) => placeAt(position)?.join(".") ?? null;

/** The name of successive threads: 1-3 of all threads of ranks, 1.0-1.2 of some. Null if nobody knows. */
export function nameOf(first, last) {
  const [begin, end] = [placeAt(first), placeAt(last)];
  if (begin === null || end === null) return null;
  const [isFirst, isLast] = [ofRank(begin[0])[0] === first, ofRank(end[0])[1] === last];
  if (begin[0] !== end[0]) return `${isFirst ? begin[0] : begin.join(".")}-${isLast ? end[0] : end.join(".")}`;
  if (isFirst && isLast) return String(begin[0]);
  return first === last ? begin.join(".") : `${begin.join(".")}-${end.join(".")}`;
}

/** First and last position by such a name; null if there are none. */
export function positionsOf(name) {
  const ends = name.split("-");
  if (!ends.every((one) => /^\d{1,9}(\.\d{1,9})?$/.test(one)) || ends.length > 2) return null;
  const end = (one, at) => (one.includes(".") ? positionOf(one) : ofRank(Number(one))?.[at] ?? null);
  const [first, last] = [end(ends[0], 0), end(ends.at(-1), 1)];
  return first === null || last === null || first > last ? null : [first, last];
}
