/* Posts to the daemon until it acknowledges. */

import { UNSENT, pause } from "./stream.js";

const RETRY_DELAYS_MS = [500, 1000, 2000, 4000, 8000];
/* A little longer than the daemon waits for the next piece of a body. */
const POST_TIMEOUT_MS = 150_000;
/* A request that is older than this when the page reconnects was lost with the old connection. */
const STALE_POST_MS = 10_000;
/* 64 kbit/s, less than a phone has at the edge of its network. */
const MIN_BYTES_PER_MS = 8;
/* A proxy in between says these: the request took too long, came too early, or was one of too many. */
const TRY_AGAIN = new Set([408, 425, 429]);
/* Of this chat: the next page of the same tab may be that of another. */
const STORAGE_KEY = `${UNSENT}${location.pathname}`;

export class Refused extends Error {}
/* The daemon itself says why it can't do this now. */
class NotNow extends Error {}
export class LoggedOut extends Refused {
  constructor() {
    super("you are logged out");
  }
}

/* Post once; the timeout grows with the size of the body. Throws `Refused` if a retry is pointless,
   `NotNow` or another error if one may help. */
async function post(path, body, bytes, headers = {}) {
  const signal = AbortSignal.timeout(POST_TIMEOUT_MS + bytes / MIN_BYTES_PER_MS);
  const response = await fetch(path, { method: "POST", headers, body, signal });
  if (response.status === 401) throw new LoggedOut();
  if (response.ok) return response;
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  const reason = isJson ? (await response.json()).error : await response.text();
  if (response.status < 500 && !TRY_AGAIN.has(response.status)) {
    throw new Refused(reason || `refused (${response.status})`);
  }
  throw isJson ? new NotNow(reason) : new Error(`not now (${response.status})`);
}

/* Return the daemon's reply. Parsing fails for a captive portal or a login page in between, which
   answers 200 to everything. */
async function postJson(path, value) {
  const body = JSON.stringify(value);
  const response = await post(path, body, body.length, { "content-type": "application/json" });
  return response.json();
}

/* Retry for a while; then throw an error with the daemon's reason, or with this one if it gave none. */
async function withRetries(attempt, ownReason) {
  let reason;
  for (const delay of RETRY_DELAYS_MS) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof Refused) throw error;
      reason = error instanceof NotNow ? error.message : ownReason;
      await pause(delay);
    }
  }
  throw new Error(reason);
}

/* Upload a file under an id made by the page. */
export function upload(id, file) {
  const attempt = async () => (await post(`files/${id}`, file, file.size)).json();
  return withRetries(attempt, "no connection");
}

/* Post an answer to an approval request; each try has the same id. */
export function postAnswer(answer) {
  const body = { id: crypto.randomUUID(), ...answer };
  return withRetries(() => postJson("answers", body), "no connection; press again when it is back");
}

/* Unacknowledged messages, sent in order and one at a time. They survive a reload of the page and the
   end of the login. Their ids never change, so the daemon takes each message once. */
export class Outbox {
  constructor({ acknowledged, refused, waiting, loggedOut }) {
    this.callbacks = { acknowledged, refused, waiting, loggedOut };
    this.messages = storedMessages();
    this.wake = () => {};
    this.abandonStale = () => {};
    this.isRunning = false;
  }

  add(text, files = []) {
    const message = { id: crypto.randomUUID(), text, files, at: new Date().toISOString() };
    this.messages.push(message);
    this.store();
    void this.run();
    return message;
  }

  /* Retry at once, because the connection is back; a lost request gets no reply and no error. */
  retryNow() {
    this.wake();
    this.abandonStale();
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
        const staleAt = Date.now() + STALE_POST_MS + 4 * text.length / MIN_BYTES_PER_MS;
        const abandoned = new Promise((_, reject) => {
          this.abandonStale = () => { if (Date.now() > staleAt) reject(new Error("no reply")); };
        });
        const reply = await Promise.race([postJson("messages", { id, text, files }), abandoned]);
        this.remove(message);
        this.callbacks.acknowledged(message, reply.toast);
        tries = 0;
      } catch (error) {
        if (!this.messages.includes(message)) continue; // the person logs out, and leaves no text behind
        if (error instanceof LoggedOut) {
          this.callbacks.loggedOut();
          break;
        }
        if (error instanceof Refused) {
          this.remove(message);
          this.callbacks.refused(message, error.message);
          continue;
        }
        this.callbacks.waiting(message);
        const woken = new Promise((resolve) => { this.wake = resolve; });
        const delay = RETRY_DELAYS_MS[Math.min(tries, RETRY_DELAYS_MS.length - 1)];
        await Promise.race([woken, pause(delay)]);
        tries += 1;
      }
    }
    this.isRunning = false;
  }

  remove(message) {
    this.messages = this.messages.filter(({ id }) => id !== message.id);
    this.store();
  }

  store() {
    try {
      sessionStorage.setItem(STORAGE_KEY, JSON.stringify(this.messages));
    } catch {
      // Too large for the session storage: a reload loses the unacknowledged messages.
      sessionStorage.removeItem(STORAGE_KEY);
    }
  }
}

function storedMessages() {
  try {
    return JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "[]");
  } catch {
    return [];
  }
}
