/* Guards buttons that move under the pointer.

   A click must not answer a call whose button has just moved under the pointer because the page changed:
   the first such click is ignored, and the page says so. A mouse reports its position before it clicks.
   A finger does not, so a tapped button must have been in its place for a moment. */

const TOLERANCE_PX = 10;
/* Firefox ignores clicks in a dialog that came up less than a second ago, Chromium half a second (read 2026-11). */
const MIN_VISIBLE_MS = 1000;
const REASON = "this has only just appeared here; press again if you mean it";

/* Guard the buttons that match `selector`; return a function to be called after each change of the page.

   `nameOf(button)` differs for two buttons with different effects; `refuse(button, reason)` shows why a
   click was ignored. */
export function guardClicks(selector, nameOf, refuse) {
  let pointer = null;
  let nameUnderPointer = "";
  let movedAt = null; // where the pointer was when another button moved under it
  let tappedAt = null;
  let positions = new Map(); // of each button by name, and since when it is there

  function findUnderPointer() {
    const button = pointer && document.elementFromPoint(pointer.x, pointer.y)?.closest(selector);
    return button ? nameOf(button) : "";
  }

  function recordPositions(changedAt) {
    positions = new Map([...document.querySelectorAll(selector)].map((button) => {
      const name = nameOf(button);
      const { x, y } = button.getBoundingClientRect();
      const old = positions.get(name);
      const hasMoved = !old || Math.hypot(x - old.x, y - old.y) > TOLERANCE_PX;
      return [name, { x, y, since: hasMoved ? changedAt ?? old?.since ?? -Infinity : old.since }];
    }));
  }

  for (const type of ["pointermove", "pointerdown"]) {
    document.addEventListener(type, (event) => {
      const isMouse = event.pointerType === "mouse";
      pointer = isMouse ? { x: event.clientX, y: event.clientY } : null;
      nameUnderPointer = findUnderPointer();
      const isNear = pointer && movedAt
        && Math.hypot(pointer.x - movedAt.x, pointer.y - movedAt.y) <= TOLERANCE_PX;
      if (!isNear) movedAt = null;
      if (type === "pointerdown") tappedAt = isMouse ? null : performance.now();
    }, { passive: true });
  }
  for (const type of ["scroll", "resize"]) {
    window.addEventListener(type, () => {
      nameUnderPointer = findUnderPointer();
      recordPositions();
    }, { passive: true, capture: true });
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest(selector);
    if (!button || !event.detail) return; // keys have no position
    const position = positions.get(nameOf(button));
    const isTooSoon = tappedAt !== null && position && tappedAt - position.since < MIN_VISIBLE_MS;
    if (!movedAt && !isTooSoon) return;
    movedAt = null;
    if (position) position.since = -Infinity;
    event.preventDefault();
    event.stopPropagation();
    refuse(button, REASON);
  }, { capture: true });

  recordPositions();
  return () => {
    const before = nameUnderPointer;
    nameUnderPointer = findUnderPointer();
    if (nameUnderPointer && nameUnderPointer !== before) movedAt = pointer;
    recordPositions(performance.now());
  };
}
