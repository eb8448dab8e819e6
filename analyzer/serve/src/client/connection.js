// The conversation with laggard: questions with numbers, answers by number.

/** Questions that views ask again whenever anything else changes. */
const AGAIN = ["alike", "changes", "course", "heat", "line", "sampled", "selection"];
const ENDED = "laggard has ended: start laggard serve again, and open its new address";
const open = new Map();
/** The last of each of these, and what came. */
const kept = new Map();
let socket = null;
let next = 1;
let told = () => {};
let heard = () => {};
let last = null;

/** Calls `tell` with what is wrong, or with "". */
export function onProblem(tell) {
  told = tell;
}

/** Calls `hear` with what the server tells by itself, also with what it told last. */
export function onNews(hear) {
  heard = hear;
  if (last !== null) hear(last);
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
      ready(made);
    };
    made.onmessage = (message) => {
      const { id, answer, error, stopped, news } = JSON.parse(message.data);
      if (news) {
        last = news;
        kept.clear();
        heard(news);
        return;
      }
      const waiting = open.get(id);
      open.delete(id);
      told(error ?? without(answer?.missing));
      if (stopped || error) waiting?.failed(new Error(error ?? "asked anew"));
      else waiting?.ready(answer);
      if (answer && !answer.missing && AGAIN.includes(waiting?.kind)) kept.set(waiting.kind, [waiting.text, message.data]);
    };
    made.onclose = async () => {
      if (socket === made) socket = null;
      failed(new Error("laggard does not answer"));
      for (const { failed: give } of open.values()) give(new Error("closed"));
      open.clear();
      told(isOpen ? ENDED : await refusal());
    };
  });
}

/** The answer to a question; null if there is none, which the page then says. */
export async function ask(question) {
  const [kind, text] = [question.ask, JSON.stringify(question)];
  const before = kept.get(kind);
  if (before?.[0] === text && socket !== null) return JSON.parse(before[1]).answer;
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
