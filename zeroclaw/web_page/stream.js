/* Follows an event stream, checks the login, and names the storage of unfinished input; the chat and the
   console share it. */

const RETRY_DELAYS_MS = [500, 1000, 2000, 4000];
const UNFOCUSED_DELAY_MS = 5000;

/* The daemon sends a ping every 15 s. A tunnel that breaks while the computer sleeps or changes its
   network does not close the connection: it only falls silent. */
const MAX_SILENCE_MS = 40_000;
const CHECK_INTERVAL_MS = 1000;
const STATUS_TIMEOUT_MS = 10_000;
const LOGGED_OUT = 401;

/* Follow the event stream at `base` while the page is open, and call `handlers[name]` with the data of
   each event. Every event but `trouble` shows that the page is connected. A hidden page whose stream was
   closed reconnects after `hiddenDelayMs`; with 0, once it is seen. */
export async function follow(base, handlers, onState, hiddenDelayMs) {
  let tries = 0;
  const handler = (name) => [name, (data) => {
    handlers[name](data);
    if (name === "trouble") return;
    tries = 0;
    onState("connected");
  }];
  for (;;) {
    onState(tries ? "reconnecting" : "connecting");
    await connection(`${base}events`, Object.fromEntries(Object.keys(handlers).map(handler)));
    const pageStatus = await pageStatusOf(base);
    if (pageStatus === LOGGED_OUT) {
      onState("logged out");
      do await pauseUntilReturn(); while (await isLoggedOut(base));
      tries = 0;
      continue;
    }
    onState("reconnecting");
    let delay = RETRY_DELAYS_MS[Math.min(tries, RETRY_DELAYS_MS.length - 1)];
    // The daemon closes the oldest stream of a browser with many pages open. A hidden page, or one beside
    // the page in use, leaves its place to the others for a while.
    if (pageStatus && !document.hasFocus()) {
      delay = document.hidden ? hiddenDelayMs : delay + UNFOCUSED_DELAY_MS;
    }
    await pauseUntilReturn(delay);
    tries += 1;
  }
}

/* Resolve when the connection ends or falls silent. The browser's own retries could not detect a lost
   login. */
function connection(url, handlers) {
  return new Promise((resolve) => {
    const source = new EventSource(url);
    let lastEventAt = Infinity; // until the first event: a long conversation may take its time
    // The clock goes on while the computer sleeps or the browser freezes the page; timers do not.
    const check = setInterval(() => {
      if (Date.now() - lastEventAt >= MAX_SILENCE_MS) end();
    }, CHECK_INTERVAL_MS);

    function end() {
      clearInterval(check);
      source.close();
      resolve();
    }

    for (const name of ["ping", ...Object.keys(handlers)]) {
      source.addEventListener(name, (event) => {
        lastEventAt = Date.now();
        handlers[name]?.(JSON.parse(event.data));
      });
    }
    source.addEventListener("error", end);
  });
}

export function pause(milliseconds) {
  return new Promise((resolve) => { setTimeout(resolve, milliseconds); });
}

/* Wait until the time is over, the person returns to this page (perhaps from the tab of a new login link),
   or the computer is online again; without a time, until one of the last two. */
function pauseUntilReturn(milliseconds) {
  return new Promise((resolve) => {
    const listeners = new AbortController();
    const timer = milliseconds && setTimeout(end, milliseconds);

    function end() {
      clearTimeout(timer);
      listeners.abort();
      resolve();
    }

    window.addEventListener("focus", end, listeners);
    window.addEventListener("online", end, listeners);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) end(); }, listeners);
  });
}

/* Resolve to whether this browser is logged out. */
export async function isLoggedOut(base) {
  return await pageStatusOf(base) === LOGGED_OUT;
}

/* Resolve to the daemon's HTTP status for a file of the page; 0 if it does not answer. */
async function pageStatusOf(base) {
  try {
    const signal = AbortSignal.timeout(STATUS_TIMEOUT_MS);
    return (await fetch(`${base}icon.svg`, { method: "HEAD", signal })).status;
  } catch {
    return 0;
  }
}

const UNFINISHED = "zeroclaw-half-written ";

/* The key of this tab's storage for unfinished input on this page. */
export function unfinishedKey(name) {
  return `${UNFINISHED}${name} ${location.pathname}`;
}

/* The key of this tab's storage for messages that are not sent yet. */
export const UNSENT = "zeroclaw-unsent ";

/* Remove the unfinished and unsent input of all pages from this tab, because the person logs out: the
   next one would send it. */
export function clearUnfinished() {
  Object.keys(sessionStorage).filter((key) => key.startsWith(UNFINISHED) || key.startsWith(UNSENT))
    .forEach((key) => sessionStorage.removeItem(key));
}
