/* Guards buttons that move under the pointer.

   A click must not answer a call whose button has only just come to stand under the pointer, because the
   page has changed: the first such click is ignored, and says so. */

const NEAR_PX = 10;
const SLID = "this has just come to stand here; press again if you mean it";

/* Guard the buttons that match `selector`; return a function to be called after each change of the page.

   `nameOf(button)` differs for two buttons with different effects; `refuse(button, why)` shows why a click
   was ignored. */
export function guardSliding(selector, nameOf, refuse) {
  let pointer = null;
  let under = "";
  let slid = null;

  function underPointer() {
    const button = pointer && document.elementFromPoint(pointer.x, pointer.y)?.closest(selector);
    return button ? nameOf(button) : "";
  }

  for (const kind of ["pointermove", "pointerdown"]) {
    document.addEventListener(kind, (event) => {
      pointer = { x: event.clientX, y: event.clientY };
      under = underPointer();
      if (slid && Math.hypot(pointer.x - slid.x, pointer.y - slid.y) > NEAR_PX) slid = null;
    }, { passive: true });
  }
  document.addEventListener("scroll", () => { under = underPointer(); }, { passive: true, capture: true });

  document.addEventListener("click", (event) => {
    const button = event.target.closest(selector);
    if (!slid || !button || !event.detail) return; // keys have no position
    slid = null;
    event.preventDefault();
    event.stopPropagation();
    refuse(button, SLID);
  }, { capture: true });

  return () => {
    const before = under;
    under = underPointer();
    if (under && under !== before) slid = pointer;
  };
}
