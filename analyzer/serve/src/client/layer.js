// What lies over the time line, if it is wanted: it may take a while to be made.

import { ask } from "./connection.js";
import { state } from "./state.js";

const AGAIN = 250;

/** A layer by its name, which is that of the question, of the choice and of the box. `prepare` gets each answer. */
export function layer(name, prepare = () => {}) {
  const box = document.getElementById(name);
  const note = document.getElementById(`${name}-note`);
  let shown = null;
  let latest = 0;
  return {
    /** Asks for it where the time line is; `draw` draws that again. */
    async show(question, draw) {
      box.checked = state[name];
      latest += 1;
      const mine = latest;
      let answer = null;
      while (state[name] && question !== null) {
        answer = await ask({ ...question, ask: name });
        if (mine !== latest) return;
        if (answer === null || answer.is_made || answer.why !== "") break;
        note.textContent = "is looked for";
        await new Promise((done) => setTimeout(done, AGAIN));
        if (mine !== latest) return;
      }
      note.textContent = answer?.why ?? "";
      shown = answer?.is_made ? answer : null;
      prepare(shown);
      draw();
    },
    /** It, if it is of this stretch. */
    of({ from_s, until_s }) {
      return shown?.from_s === from_s && shown.until_s === until_s ? shown : null;
    },
  };
}
