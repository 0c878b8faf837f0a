/* Follows an event stream, checks the login, and names the storage of unfinished input; the chat and the
   console share it. */

/* The daemon sends a ping every 15 s. A tunnel that breaks while the computer sleeps or changes its
   network does not close the connection: it only falls silent. */
const MAX_SILENCE_MS = 40_000;
const CHECK_INTERVAL_MS = 1000;
const STATUS_TIMEOUT_MS = 10_000;

/* Call `handlers[name]` with the data of each event; resolve when the connection ends or falls silent.
   The browser's own retries could not detect a lost login. */
export function connection(url, handlers) {
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
export function pauseUntilReturn(milliseconds) {
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

/* Resolve to the daemon's HTTP status for a URL; 0 if it does not answer. */
export async function status(url) {
  try {
    return (await fetch(url, { method: "HEAD", signal: AbortSignal.timeout(STATUS_TIMEOUT_MS) })).status;
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
