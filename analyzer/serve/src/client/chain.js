// From a wait onward: whom the late one waited for meanwhile, and so on, to one that did not wait.

import { ask } from "./connection.js";

/** Steps that are followed. */
export const MOST = 16;
/** The steps from the chosen call: who waited since when until when for whom, which came when. */
export let chain = [];

/** Forgets the chain. */
export function forget() {
  chain = [];
}

/** Follows a wait of a location. Returns the steps, or null if there is no answer. */
export async function follow(location, wait) {
  const steps = [];
  let [at, step] = [location, wait];
  while (step !== null && step.late_location !== null && steps.length < MOST) {
    const { since_s: since, until_s: until, late_location: late, late_enter_s: enter } = step;
    steps.push({ at, since, until, late, enter, rank: step.late_rank, thread: step.late_thread });
    if (steps.some((one) => one.at === late) || enter <= since) break;
    const answer = await ask({ ask: "meanwhile", location: late, from_s: since, until_s: enter });
    if (answer === null) return null;
    // A short wait among much else is not why it came late.
    const next = answer.wait !== null && answer.wait.within_s > 0.5 * (enter - since) ? answer.wait : null;
    [at, step] = [late, next];
  }
  chain = steps;
  return steps;
}
