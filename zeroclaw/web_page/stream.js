/* Follows an event stream, asks for the login, and keeps what is half written; the chat and the console
   do all of it alike. */

/* The daemon sends a ping every 15 s. A tunnel that was lost while the computer slept, or changed its
   network, ends nothing: it only falls silent. */
const SILENT_MS = 40_000;
const LOOKS_MS = 1000;
const ANSWERS_MS = 10_000;

/* Call `heard[name]` with the data of each event, and resolve when the connection ends or falls silent.
   The browser's own retries could not detect a lost login. */
export function connection(address, heard) {
  return new Promise((resolve) => {
    const source = new EventSource(address);
    let heardAt = Infinity; // until the first event: a long conversation may take its time
    // The clock goes on while the computer sleeps, or the browser freezes the page; timers stand still.
    const looks = setInterval(() => { if (Date.now() - heardAt >= SILENT_MS) end(); }, LOOKS_MS);

    function end() {
      clearInterval(looks);
      source.close();
      resolve();
    }

    for (const name of ["ping", ...Object.keys(heard)]) {
      source.addEventListener(name, (event) => {
        heardAt = Date.now();
        heard[name]?.(JSON.parse(event.data));
      });
    }
    source.addEventListener("error", end);
  });
}

export function pause(milliseconds) {
  return new Promise((resolve) => { setTimeout(resolve, milliseconds); });
}

/* Wait, but only until the person returns to this page, maybe from the tab of a new login link, or the
   computer to its network; without a time, until then. */
export function waited(milliseconds) {
  return new Promise((resolve) => {
    const over = new AbortController();
    const timer = milliseconds && setTimeout(end, milliseconds);

    function end() {
      clearTimeout(timer);
      over.abort();
      resolve();
    }

    window.addEventListener("focus", end, over);
    window.addEventListener("online", end, over);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) end(); }, over);
  });
}

/* Resolve to the daemon's status for an address; 0 if it does not answer. */
export async function status(address) {
  try {
    return (await fetch(address, { method: "HEAD", signal: AbortSignal.timeout(ANSWERS_MS) })).status;
  } catch {
    return 0;
  }
}

const HALF_WRITTEN = "zeroclaw-half-written ";

/* The key of this tab's storage for what is half written on this page. */
export function halfWritten(name) {
  return `${HALF_WRITTEN}${name} ${location.pathname}`;
}

/* Who logs out leaves no words behind in this tab, whichever page they were written on. */
export function forgetHalfWritten() {
  Object.keys(sessionStorage).filter((key) => key.startsWith(HALF_WRITTEN))
    .forEach((key) => sessionStorage.removeItem(key));
}
