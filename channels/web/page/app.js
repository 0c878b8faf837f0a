/* The chat page: connects the event stream, the list of items, the composer and the status lines. */

import { countDown } from "./cards.js";
import { Items } from "./items.js";
import { Chosen } from "./files.js";
import { coded } from "./markdown.js";
import { Outbox, follow, postAnswer } from "./line.js";
import { guardSliding } from "./sliding.js";
import { halfWritten, status } from "./stream.js";

const TYPING_MS = 6000;
const TOAST_MS = 5000;
const NEAR_PX = 120;
const TALLEST_PX = 260;
const WRITTEN = halfWritten("message");
const CHOSEN = halfWritten("files");

const by = (id) => document.getElementById(id);
const scroller = by("scroller");
const text = by("text");
const timers = {};

const items = new Items(by("log"), async (approval, choice, reason, card) => {
  const said = await postAnswer({ approval, choice, reason, card });
  if (said.toast) toast(said.toast);
});

const outbox = new Outbox({
  acknowledged(message, said) {
    items.mark(ownId(message), "");
    if (said) toast(said);
    showWork();
  },
  refused(message, why) {
    items.mark(ownId(message), "refused", `not sent: ${why}`);
    showWork();
  },
  waiting(message) {
    items.mark(ownId(message), "waiting");
    showWork();
  },
  loggedOut() {
    state("logged out");
    showWork();
  },
});

function ownId(message) {
  return `person/${message.id}`;
}

function echo(message) {
  const files = (message.files ?? []).map((file) => file.name);
  items.show({ id: ownId(message), kind: "person", text: message.text, at: message.at, files });
  items.mark(ownId(message), "sending");
}

/* --- the stream -------------------------------------------------------------------------------- */

/* Events arrive faster than the screen refreshes, so only the newest of each item is drawn, once per
   animation frame. */
const undrawn = new Map();

function draw() {
  for (const item of undrawn.values()) items.show(item);
  undrawn.clear();
  changed();
}

function heard(name, data) {
  if (name === "item") {
    if (!undrawn.size) whenDrawing(draw);
    undrawn.set(data.id, data);
    if (data.kind !== "person") typing(false);
    decided = data.kind === "card" ? data.card.calls.every((call) => call.ending) : decided && data.draft;
    if (data.kind === "card" || !data.draft) notice();
    return;
  }
  if (name === "snapshot") {
    const newest = () => by("log").lastElementChild?.dataset.id;
    const before = newest();
    undrawn.clear();
    decided = false;
    by("title").textContent = data.title;
    settitle(data.title);
    items.reset(data.items, [...outbox.messages.map(ownId), ...refusedIds()]);
    outbox.messages.filter((one) => !items.nodes.has(ownId(one))).forEach(echo);
    if (before !== newest() && by("connection").dataset.state === "reconnecting") notice();
    outbox.hurry();
    changed();
  } else if (name === "gone") {
    undrawn.delete(data.id);
    items.remove(data.id);
    changed();
  } else if (name === "typing") {
    typing(true);
    changed();
  } else if (name === "trouble") {
    toast(data.why);
  }
}

/* A hidden page gets no animation frames, but must be up to date when it is shown again. */
function whenDrawing(act) {
  if (document.hidden) setTimeout(act, 0);
  else requestAnimationFrame(act);
}

function refusedIds() {
  return [...by("log").querySelectorAll('[data-sending="refused"]')].map((node) => node.dataset.id);
}

const SAID = {
  connecting: "connecting",
  connected: "connected",
  reconnecting: "no connection, trying again",
  "logged out": "logged out",
};

function state(name) {
  const line = by("connection");
  if (name === "logged out") outbox.messages.forEach((one) => items.mark(ownId(one), "waiting"));
  if (line.dataset.state === name) return;
  line.dataset.state = name;
  line.textContent = SAID[name];
  const isLoggedOut = name === "logged out";
  by("loggedout").hidden = !isLoggedOut;
  by("logout").hidden = isLoggedOut;
  showWork();
}

/* --- indicators -------------------------------------------------------------------------------- */

/* Note that the daemon reported that it is working, or that this is over. */
function typing(isOn) {
  clearTimeout(timers.typing);
  timers.typing = isOn ? setTimeout(() => typing(false), TYPING_MS) : 0;
  showWork();
}

/* The newest card is decided, and nothing has come since. */
let decided = false;

/* Show whether the bot is working, as far as this page knows: it reported so, or owes an answer, or
   is writing one. */
function showWork() {
  const last = by("log").lastElementChild;
  const isWritten = Boolean(last?.classList.contains("draft"));
  const isThere = by("connection").dataset.state === "connected";
  const isBusy = Boolean(timers.typing) || decided || items.owesAnswer() || items.isWriting();
  const isAtWork = isThere && isBusy;
  by("typing").hidden = !isAtWork || isWritten || items.isAsking();
  const isEmpty = !text.value.trim() && chosen.isEmpty;
  by("send").disabled = chosen.isBusy;
  by("stop").hidden = !(isAtWork && isEmpty);
  by("send").hidden = isAtWork && isEmpty;
}

function toast(said) {
  clearTimeout(timers.toast);
  by("toast").replaceChildren(...coded(said));
  timers.toast = setTimeout(() => by("toast").replaceChildren(), TOAST_MS);
}

function settitle(title) {
  document.title = document.hidden && document.title.startsWith("●") ? `● ${title}` : title;
}

function notice() {
  if (document.hidden && !document.title.startsWith("●")) document.title = `● ${document.title}`;
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) document.title = document.title.replace(/^● /, "");
});

by("log").addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    toast("copied");
  } catch {
    toast("the browser does not let this page copy");
  }
});

/* --- scrolling: follow the newest item, unless the person reads further up ----------------------- */

let isFollowing = true;
let top = 0;

function changed() {
  by("empty").hidden = !items.isEmpty;
  showWork();
  if (isFollowing) scroller.scrollTop = scroller.scrollHeight;
  by("latest").hidden = isFollowing;
  moved();
}

/* Scrolling up, however little, ends the following; coming near the end begins it again. */
function scrolled() {
  const left = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  isFollowing = left < (scroller.scrollTop < top ? 1 : NEAR_PX);
  top = scroller.scrollTop;
  by("latest").hidden = isFollowing;
}
scroller.addEventListener("scroll", scrolled, { passive: true });
// Browsers scroll smoothly; an answer that grows before the first step of it would end it.
for (const kind of ["keydown", "wheel"]) {
  scroller.addEventListener(kind, (event) => {
    const isUp = -event.deltaY > Math.abs(event.deltaX) || ["ArrowUp", "PageUp", "Home"].includes(event.key)
      || (event.key === " " && event.shiftKey);
    if (isUp && !event.ctrlKey && scroller.scrollTop && event.target.tagName !== "INPUT") isFollowing = false;
  }, { passive: true });
}
// For example when a phone is rotated, or its keyboard opens.
new ResizeObserver(() => {
  if (isFollowing) scroller.scrollTop = scroller.scrollHeight;
}).observe(scroller);
by("latest").addEventListener("click", () => { scroller.scrollTop = scroller.scrollHeight; });

/* --- buttons that move under the pointer ---------------------------------------------------------- */

function nameOf(button) {
  const call = button.closest("section")?.dataset.approval;
  return `${call ?? button.closest("li").dataset.id} ${button.textContent}`;
}

const moved = guardSliding(".card button", nameOf, (_button, why) => toast(why));

/* --- the composer -------------------------------------------------------------------------------- */

function fit() {
  text.style.height = "auto";
  text.style.height = `${Math.min(text.scrollHeight, TALLEST_PX)}px`;
}

const chosen = new Chosen(by("chosen"), () => showWork());

function submit() {
  if (chosen.isBusy || (!text.value.trim() && chosen.isEmpty)) return;
  echo(outbox.add(text.value, chosen.take()));
  text.value = "";
  fit();
  isFollowing = true;
  changed();
}

by("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
  text.focus();
});

by("stop").addEventListener("click", () => {
  echo(outbox.add("/stop"));
  isFollowing = true;
  changed();
  text.focus();
});

// Who logs out leaves no words behind in this tab; `pagehide` stores what is here then.
by("logout").addEventListener("submit", () => {
  text.value = "";
  chosen.files = [];
});

by("attach").addEventListener("click", () => by("files").click());
by("files").addEventListener("change", () => {
  chosen.add(by("files").files);
  by("files").value = "";
  text.focus();
});
text.addEventListener("paste", (event) => {
  if (!event.clipboardData.files.length) return;
  event.preventDefault();
  chosen.add(event.clipboardData.files);
});
document.addEventListener("dragover", (event) => {
  if (event.dataTransfer.types.includes("Files")) event.preventDefault();
});
document.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  chosen.add(event.dataTransfer.files);
  text.focus();
});

text.addEventListener("input", () => {
  fit();
  showWork();
});
const touch = matchMedia("(pointer: coarse)");
text.addEventListener("keydown", (event) => {
  // While an input method composes a word (Japanese, for example), Enter ends the word. Safari tells
  // of the word's end before the key, whose code is then the one of a key that went to the method.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  // The keyboard on a screen has no Shift with Enter.
  if (touch.matches && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  submit();
});

/* --- going away and coming back ------------------------------------------------------------------- */

text.value = sessionStorage.getItem(WRITTEN) ?? "";
chosen.files = JSON.parse(sessionStorage.getItem(CHOSEN) ?? "[]");
chosen.show();
fit();
window.addEventListener("pagehide", () => {
  try {
    sessionStorage.setItem(CHOSEN, JSON.stringify(chosen.ready));
    sessionStorage.setItem(WRITTEN, text.value);
  } catch {
    sessionStorage.removeItem(WRITTEN); // too large
  }
});
// Safari keeps a page to go back to, as it was, also after logging out on the next one.
window.addEventListener("pageshow", async (event) => {
  if (event.persisted && await status("./") === 401) location.reload();
});

setInterval(() => countDown(), 1000);
outbox.messages.forEach(echo);
void follow({ heard, state });
