/* Follows an event stream and asks for the login; the chat and the console do both alike. */

/* The daemon sends a ping every 15 s. A tunnel that was lost while the computer slept, or changed its
   network, ends nothing: it only falls silent. */
const SILENT_MS = 40_000;
const ANSWERS_MS = 10_000;

/* Call `heard[name]` with the data of each event, and resolve when the connection ends or falls silent.
   The browser's own retries could not detect a lost login. */
export function connection(address, heard) {
  return new Promise((resolve) => {
    const source = new EventSource(address);
    let silence = 0; // begins with the first event: a long conversation may take its time

    function end() {
      clearTimeout(silence);
      source.close();
      resolve();
    }

    for (const name of ["ping", ...Object.keys(heard)]) {
      source.addEventListener(name, (event) => {
        clearTimeout(silence);
        silence = setTimeout(end, SILENT_MS);
        heard[name]?.(JSON.parse(event.data));
      });
    }
    source.addEventListener("error", end);
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
