/* Guards buttons that move under the pointer.

   A click must not answer a call whose button has only just come to stand under the pointer, because the
   page has changed: the first such click is ignored, and says so. A mouse shows where it rests before it
   clicks. A finger does not, so a button that it taps has to have stood there for a moment. */

const NEAR_PX = 10;
/* Firefox ignores clicks in a dialog that came up less than a second ago, Chromium half a second (read 2026-11). */
const SEEN_MS = 1000;
const SLID = "this has just come to stand here; press again if you mean it";

/* Guard the buttons that match `selector`; return a function to be called after each change of the page.

   `nameOf(button)` differs for two buttons with different effects; `refuse(button, why)` shows why a click
   was ignored. */
export function guardSliding(selector, nameOf, refuse) {
  let pointer = null;
  let under = "";
  let slid = null;
  let tappedAt = null;
  let places = new Map(); // of each button by name: where it stands, and since when

  function underPointer() {
    const button = pointer && document.elementFromPoint(pointer.x, pointer.y)?.closest(selector);
    return button ? nameOf(button) : "";
  }

  function locate(newSince) {
    places = new Map([...document.querySelectorAll(selector)].map((button) => {
      const name = nameOf(button);
      const { x, y } = button.getBoundingClientRect();
      const was = places.get(name);
      const hasMoved = !was || Math.hypot(x - was.x, y - was.y) > NEAR_PX;
      return [name, { x, y, since: hasMoved ? newSince ?? was?.since ?? -Infinity : was.since }];
    }));
  }

  for (const kind of ["pointermove", "pointerdown"]) {
    document.addEventListener(kind, (event) => {
      const isMouse = event.pointerType === "mouse";
      pointer = isMouse ? { x: event.clientX, y: event.clientY } : null;
      under = underPointer();
      if (slid && !(pointer && Math.hypot(pointer.x - slid.x, pointer.y - slid.y) <= NEAR_PX)) slid = null;
      if (kind === "pointerdown") tappedAt = isMouse ? null : performance.now();
    }, { passive: true });
  }
  for (const kind of ["scroll", "resize"]) {
    window.addEventListener(kind, () => {
      under = underPointer();
      locate();
    }, { passive: true, capture: true });
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest(selector);
    if (!button || !event.detail) return; // keys have no position
    const place = places.get(nameOf(button));
    const isSudden = tappedAt !== null && place && tappedAt - place.since < SEEN_MS;
    if (!slid && !isSudden) return;
    slid = null;
    if (place) place.since = -Infinity;
    event.preventDefault();
    event.stopPropagation();
    refuse(button, SLID);
  }, { capture: true });

  locate();
  return () => {
    const before = under;
    under = underPointer();
    if (under && under !== before) slid = pointer;
    locate(performance.now());
  };
}
