/* Talks to the daemon: posts until acknowledged, and follows the event stream. */

import { connection, pause, status, waited } from "./stream.js";

const EVENTS = ["snapshot", "item", "gone", "typing", "trouble"];
const WAITS_MS = [500, 1000, 2000, 4000, 8000];
const HIDDEN_MS = 60_000;
const BESIDE_MS = 5000;
/* A little longer than the daemon waits for the next piece of a body. */
const POSTS_MS = 150_000;
/* In bytes a millisecond: 64 kbit/s, less than a phone has at the edge of its network. */
const SLOWEST = 8;
/* Of this chat: the next page of the same tab may be that of another. */
const KEPT = `zeroclaw-unsent ${location.pathname}`;

export class Refused extends Error {}
export class LoggedOut extends Refused {
  constructor() {
    super("you are logged out");
  }
}

/* Post once; a body of so many bytes has its time, and is then sent again, from the beginning. Throws
   `Refused` if a retry is pointless, another error if one may help. */
async function post(path, body, bytes, headers = {}) {
  const signal = AbortSignal.timeout(POSTS_MS + bytes / SLOWEST);
  const answer = await fetch(path, { method: "POST", headers, body, signal });
  if (answer.status === 401) throw new LoggedOut();
  if (answer.ok) return answer;
  const isJson = answer.headers.get("content-type")?.startsWith("application/json");
  const why = isJson ? (await answer.json()).error : await answer.text();
  if (answer.status < 500) throw new Refused(why || `refused (${answer.status})`);
  throw new Error(why || `not now (${answer.status})`);
}

/* Return the daemon's answer; a portal or a login page in between answers 200 to everything. */
async function postJson(path, value) {
  const body = JSON.stringify(value);
  const answer = await post(path, body, body.length, { "content-type": "application/json" });
  return answer.json();
}

/* Retry for a while; then throw an error that says `why`. */
async function retried(act, why) {
  for (const wait of WAITS_MS) {
    try {
      return await act();
    } catch (error) {
      if (error instanceof Refused) throw error;
      await pause(wait);
    }
  }
  throw new Error(why);
}

/* Upload a file under an id made by the page. */
export function upload(id, file) {
  return retried(() => post(`files/${id}`, file, file.size), "no connection");
}

/* Post an answer to an approval request; each try has the same id. */
export function postAnswer(answer) {
  const body = { id: crypto.randomUUID(), ...answer };
  return retried(() => postJson("answers", body), "no connection; nothing was answered yet");
}

/* Unacknowledged messages, sent in order and one at a time. They survive a reload of the page and the
   end of the login. Their ids never change, so the daemon takes each message once. */
export class Outbox {
  constructor({ acknowledged, refused, waiting, loggedOut }) {
    this.told = { acknowledged, refused, waiting, loggedOut };
    this.messages = stored();
    this.wake = () => {};
    this.isRunning = false;
  }

  add(text, files = []) {
    const message = { id: crypto.randomUUID(), text, files, at: new Date().toISOString() };
    this.messages.push(message);
    this.keep();
    void this.run();
    return message;
  }

  /* Retry at once, because the connection is back. */
  hurry() {
    this.wake();
    void this.run();
  }

  async run() {
    if (this.isRunning) return;
    this.isRunning = true;
    let tries = 0;
    while (this.messages.length) {
      const message = this.messages[0];
      try {
        const { id, text, files = [] } = message;
        const said = await postJson("messages", { id, text, files });
        this.drop(message);
        this.told.acknowledged(message, said.toast);
        tries = 0;
      } catch (error) {
        if (error instanceof LoggedOut) {
          this.told.loggedOut();
          break;
        }
        if (error instanceof Refused) {
          this.drop(message);
          this.told.refused(message, error.message);
          continue;
        }
        this.told.waiting(message);
        const woken = new Promise((resolve) => { this.wake = resolve; });
        await Promise.race([woken, pause(WAITS_MS[Math.min(tries, WAITS_MS.length - 1)])]);
        tries += 1;
      }
    }
    this.isRunning = false;
  }

  drop(message) {
    this.messages = this.messages.filter((one) => one.id !== message.id);
    this.keep();
  }

  keep() {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(this.messages));
    } catch {
      // Too large for the session storage: a reload loses the unacknowledged messages.
      sessionStorage.removeItem(KEPT);
    }
  }
}

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
  } catch {
    return [];
  }
}

/* Follow the event stream while the page is open; each connection begins with a snapshot. */
export async function follow({ heard, state }) {
  let tries = 0;
  for (;;) {
    state(tries ? "reconnecting" : "connecting");
    const hear = (name) => [name, (data) => {
      if (name !== "trouble") tries = 0;
      heard(name, data);
      if (name === "snapshot") state("connected");
    }];
    await connection("events", Object.fromEntries(EVENTS.map(hear)));
    const answered = await status("./");
    if (answered === 401) {
      state("logged out");
      do await waited(); while (await status("./") === 401);
      tries = 0;
      continue;
    }
    state("reconnecting");
    // The daemon ends the oldest stream of a browser with many pages open. One that is out of sight, or
    // beside the page in use, leaves its place to others for a while, and then looks whether something
    // came, which its title says.
    const idle = document.hidden ? HIDDEN_MS : BESIDE_MS;
    await waited((answered && !document.hasFocus() ? idle : 0) + WAITS_MS[Math.min(tries, 3)]);
    tries += 1;
  }
}
