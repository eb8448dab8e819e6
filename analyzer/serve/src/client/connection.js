// The conversation with laggard: questions with numbers, answers by number.

import { asked, tell } from "./problems.js";
import { run } from "./state.js";

/** Questions that views ask again whenever anything else changes. */
const AGAIN = ["alike", "changes", "course", "heat", "line", "sampled", "selection"];
const ENDED = "laggard has ended: start laggard serve again, and open its new address";
const open = new Map();
/** The last of each of these, and what came. */
const kept = new Map();
let socket = null;
let next = 1;
let heard = () => {};
let goesOn = () => {};
let last = null;

/** Calls `hear` with what the server tells by itself, and told last, and `goOn` with a later run's number. */
export function onNews(hear, goOn) {
  [heard, goesOn] = [hear, goOn];
  if (last === null) return;
  hear(last);
  goOn(last.number);
}

/** Whose parts an answer lacks. */
function without(missing) {
  const texts = (missing ?? []).map(({ ranks, agents, why }) => `agent ${agents} (${ranks}): ${why}`);
  return texts.length === 0 ? "" : `Something is missing. ${texts.join("; ")}`;
}

/** Why no conversation began: a browser does not tell, but the server tells who asks without one. */
async function refusal() {
  const answer = await fetch("ask").catch(() => null);
  if (answer === null || answer.status === 404) return ENDED;
  return answer.status === 503 ? answer.text() : "laggard does not answer: load this page again";
}

function connect() {
  const address = new URL("ask", document.baseURI);
  address.protocol = address.protocol.replace("http", "ws");
  address.hash = "";
  return new Promise((ready, failed) => {
    const made = new WebSocket(address);
    let isOpen = false;
    made.onopen = () => {
      isOpen = true;
      tell("connection", "");
      ready(made);
    };
    made.onmessage = (message) => {
      const { id, number, answer, error, stopped, news } = JSON.parse(message.data);
      if (news) {
        last = news;
        heard(news);
        goesOn(news.number);
        return;
      }
      const waiting = open.get(id);
      open.delete(id);
      if (waiting?.kind === "overview" && answer) answer.number = number;
      // Positions are those of another run.
      else if (waiting && waiting.kind !== "overview" && number !== undefined && number !== run.number) {
        waiting.failed(new Error("of another run"));
        goesOn(number);
        return;
      }
      if (!stopped) tell(waiting?.kind ?? "", error ?? without(answer?.missing));
      if (stopped || error) waiting?.failed(new Error(error ?? "asked anew"));
      else waiting?.ready(answer);
      if (answer && !answer.missing && AGAIN.includes(waiting?.kind)) kept.set(waiting.kind, [waiting.text, message.data]);
    };
    made.onclose = async () => {
      if (socket === made) socket = null;
      failed(new Error("laggard does not answer"));
      for (const { failed: give } of open.values()) give(new Error("closed"));
      open.clear();
      tell("connection", isOpen ? ENDED : await refusal());
    };
  });
}

/** The answer to a question; null if there is none, which the page then says. */
export async function ask(question) {
  const [kind, text] = [question.ask, `${run.number} ${JSON.stringify(question)}`];
  const before = kept.get(kind);
  if (before?.[0] === text && socket !== null) {
    tell(kind, "");
    return JSON.parse(before[1]).answer;
  }
  asked(kind);
  try {
    if (socket === null || (socket instanceof WebSocket && socket.readyState > 1)) {
      socket = null;
      connecting ??= connect();
      socket = await connecting;
      connecting = null;
    }
    const id = next;
    next += 1;
    return await new Promise((ready, failed) => {
      open.set(id, { ready, failed, kind, text });
      socket.send(JSON.stringify({ id, ...question }));
    });
  } catch {
    connecting = null;
    return null;
  }
}

let connecting = null;
