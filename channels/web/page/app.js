/* The chat page: connects the event stream, the list of items, the composer and the status lines. */

import { countDown } from "./cards.js";
import { guardClicks } from "./click_guard.js";
import { Outbox, postAnswer } from "./client.js";
import { NextFiles } from "./files.js";
import { Items } from "./items.js";
import { coded } from "./markdown.js";
import { clearUnfinished, follow, isLoggedOut, unfinishedKey } from "./stream.js";

const TYPING_MS = 6000;
const TOAST_MS = 5000;
const NEAR_END_PX = 120;
const MAX_TEXT_PX = 260;
/* A hidden page reconnects after this time, so that its title shows whether there is news. */
const HIDDEN_DELAY_MS = 60_000;
const STOP = "/stop";
const TEXT_KEY = unfinishedKey("message");
const FILES_KEY = unfinishedKey("files");

const byId = (id) => document.getElementById(id);
const scroller = byId("scroller");
const textField = byId("text");
const timers = {};

const items = new Items(byId("log"), async (approval, choice, reason, card) => {
  const reply = await postAnswer({ approval, choice, reason, card });
  if (reply.toast) showToast(reply.toast);
});

const outbox = new Outbox({
  acknowledged(message, toast) {
    items.setSendState(itemId(message), "");
    if (toast) showToast(toast);
    showWork();
  },
  refused(message, reason) {
    items.setSendState(itemId(message), "refused", `not sent: ${reason}`);
    putBack(message);
    showWork();
  },
  waiting(message) {
    items.setSendState(itemId(message), "waiting");
    showWork();
  },
  loggedOut() {
    showState("logged out");
    showWork();
  },
});

function itemId(message) {
  return `person/${message.id}`;
}

/* Show an own message before the daemon has it. */
function showUnsent(message) {
  const { text, at, files = [] } = message;
  const names = files.map((file) => file.name);
  items.show({ id: itemId(message), kind: "person", text, at, files: names });
  items.setSendState(itemId(message), "sending");
}

/* --- the event stream ------------------------------------------------------------------------- */

/* Events arrive faster than the screen refreshes, so only the newest state of each item is drawn, once
   per animation frame. */
const undrawn = new Map();

function draw() {
  for (const item of undrawn.values()) items.show(item);
  undrawn.clear();
  updatePage();
}

const handlers = {
  /* Each connection begins with a snapshot. */
  snapshot({ title, items: all }) {
    const newestId = () => byId("log").lastElementChild?.dataset.id;
    const oldNewestId = newestId();
    undrawn.clear();
    isCardDecided = false;
    byId("title").textContent = title;
    setTitle(title);
    items.reset(all, [...outbox.messages.map(itemId), ...refusedIds()]);
    outbox.messages.filter((message) => !items.nodes.has(itemId(message))).forEach(showUnsent);
    if (oldNewestId !== newestId() && byId("connection").dataset.state === "reconnecting") markUnread();
    outbox.retryNow();
    updatePage();
  },
  item(item) {
    if (!undrawn.size) onNextFrame(draw);
    undrawn.set(item.id, item);
    if (item.kind !== "person") setTyping(false);
    isCardDecided = item.kind === "card"
      ? item.card.calls.every((call) => call.ending)
      : isCardDecided && item.draft;
    if (item.kind === "card" || !item.draft) markUnread();
  },
  gone({ id }) {
    undrawn.delete(id);
    items.remove(id);
    updatePage();
  },
  typing() {
    setTyping(true);
    updatePage();
  },
  trouble({ why }) {
    showToast(why);
  },
};

/* Hidden pages get no animation frames, but must be up to date when they are shown again. */
function onNextFrame(callback) {
  if (document.hidden) setTimeout(callback, 0);
  else requestAnimationFrame(callback);
}

function refusedIds() {
  return [...byId("log").querySelectorAll('[data-sending="refused"]')].map((node) => node.dataset.id);
}

const STATE_TEXT = {
  connecting: "connecting",
  connected: "connected",
  reconnecting: "no connection, trying again",
  "logged out": "logged out",
};

function showState(state) {
  const isLoggedOut = state === "logged out";
  if (isLoggedOut) {
    outbox.messages.forEach((message) => items.setSendState(itemId(message), "waiting"));
  }
  const node = byId("connection");
  if (node.dataset.state === state) return;
  node.dataset.state = state;
  node.textContent = STATE_TEXT[state];
  byId("loggedout").hidden = !isLoggedOut;
  byId("logout").hidden = isLoggedOut;
  showWork();
}

/* --- indicators ------------------------------------------------------------------------------- */

/* Note that the daemon reports that it is working, or that it no longer is. */
function setTyping(isOn) {
  clearTimeout(timers.typing);
  timers.typing = isOn ? setTimeout(() => setTyping(false), TYPING_MS) : 0;
  showWork();
}

/* Whether the newest card is decided, and nothing but a draft has come since. */
let isCardDecided = false;

/* Show whether the bot is working, as far as this page knows: it reports so, has a message to answer, or
   is writing an answer. */
function showWork() {
  const last = byId("log").lastElementChild;
  const isDraftLast = Boolean(last?.classList.contains("draft"));
  const isConnected = byId("connection").dataset.state === "connected";
  const isBusy = Boolean(timers.typing) || isCardDecided || items.awaitsAnswer() || items.hasDraft();
  const isAtWork = isConnected && isBusy;
  byId("typing").hidden = !isAtWork || isDraftLast || items.hasOpenCard();
  const isEmpty = !textField.value.trim() && nextFiles.isEmpty;
  const [send, stop] = [byId("send"), byId("stop")];
  const hasFocus = [send, stop].includes(document.activeElement);
  send.disabled = nextFiles.isUploading;
  stop.hidden = !(isAtWork && isEmpty);
  send.hidden = isAtWork && isEmpty;
  if (hasFocus) (send.hidden ? stop : send).focus();
}

function showToast(message) {
  clearTimeout(timers.toast);
  byId("toast").replaceChildren(...coded(message));
  timers.toast = setTimeout(() => byId("toast").replaceChildren(), TOAST_MS);
}

function setTitle(title) {
  document.title = document.hidden && document.title.startsWith("●") ? `● ${title}` : title;
}

function markUnread() {
  if (document.hidden && !document.title.startsWith("●")) document.title = `● ${document.title}`;
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) document.title = document.title.replace(/^● /, "");
  // A browser discards hidden tabs, and phones end their browser, without a later event.
  else storeUnfinished();
});

byId("log").addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    showToast("copied");
  } catch {
    showToast("the browser does not let this page copy");
  }
});

/* --- scrolling: follow the newest item, unless the person reads further up -------------------- */

let isFollowing = true;
let lastScrollTop = 0;

function updatePage() {
  byId("empty").hidden = !items.isEmpty;
  showWork();
  if (isFollowing) scroller.scrollTop = scroller.scrollHeight;
  byId("latest").hidden = isFollowing;
  recheckPointer();
}

/* Scrolling up, however little, ends the following; scrolling down to near the end resumes it. */
function onScroll() {
  const distance = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  isFollowing = distance < (scroller.scrollTop < lastScrollTop ? 1 : NEAR_END_PX);
  lastScrollTop = scroller.scrollTop;
  byId("latest").hidden = isFollowing;
}
scroller.addEventListener("scroll", onScroll, { passive: true });
// Browsers scroll smoothly; an answer that grows before the first step would pull the page back down.
for (const type of ["keydown", "wheel"]) {
  scroller.addEventListener(type, (event) => {
    const isWheelUp = -event.deltaY > Math.abs(event.deltaX);
    const isKeyUp = ["ArrowUp", "PageUp", "Home"].includes(event.key)
      || (event.key === " " && event.shiftKey);
    const isInInput = event.target.tagName === "INPUT";
    if ((isWheelUp || isKeyUp) && !event.ctrlKey && scroller.scrollTop && !isInInput) isFollowing = false;
  }, { passive: true });
}
// For example when a phone is rotated, or its keyboard opens.
new ResizeObserver(() => {
  if (isFollowing) scroller.scrollTop = scroller.scrollHeight;
}).observe(scroller);
byId("latest").addEventListener("click", () => {
  scroller.scrollTop = scroller.scrollHeight;
  scroller.focus({ preventScroll: true }); // the button disappears
});

/* --- buttons that move under the pointer ------------------------------------------------------ */

function nameOf(button) {
  const approval = button.closest("section")?.dataset.approval;
  return `${approval ?? button.closest("li").dataset.id} ${button.textContent}`;
}

const recheckPointer = guardClicks(".card button", nameOf, (_button, reason) => showToast(reason));

/* --- the composer ----------------------------------------------------------------------------- */

function fitHeight() {
  textField.style.height = "auto";
  textField.style.height = `${Math.min(textField.scrollHeight, MAX_TEXT_PX)}px`;
}

/* Let a person change a refused message and send it again; the list would lose it at a reload. */
function putBack({ text, files = [] }) {
  if (textField.value || text === STOP) return;
  setText(text);
  nextFiles.putBack(files);
}

function setText(text) {
  textField.value = text;
  storeUnfinished();
  fitHeight();
}

const nextFiles = new NextFiles(byId("chosen"), textField, () => showWork());

function submit() {
  if (nextFiles.isUploading) {
    showToast("a file is still being uploaded");
    return;
  }
  if (!textField.value.trim() && nextFiles.isEmpty) return;
  showUnsent(outbox.add(textField.value, nextFiles.take()));
  setText(""); // a crashed tab must not restore what has been sent
  isFollowing = true;
  updatePage();
}

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
  textField.focus();
});

byId("stop").addEventListener("click", () => {
  showUnsent(outbox.add(STOP));
  isFollowing = true;
  updatePage();
  textField.focus();
});

// Logging out leaves no text behind in this tab; `pagehide` stores whatever is in the composer.
byId("logout").addEventListener("submit", () => {
  outbox.messages = [];
  clearUnfinished();
  textField.value = "";
  nextFiles.files = [];
});

byId("attach").addEventListener("click", () => byId("files").click());
byId("files").addEventListener("change", () => {
  nextFiles.add(byId("files").files);
  byId("files").value = "";
  textField.focus();
});
textField.addEventListener("paste", (event) => {
  const { files: pasted, types } = event.clipboardData;
  // Spreadsheets and word processors add a picture of the text. A copied file has no HTML, a copied
  // picture no plain text.
  const isFormattedText = types.includes("text/plain") && types.includes("text/html");
  if (!pasted.length || isFormattedText) return;
  event.preventDefault();
  nextFiles.add(pasted);
});
document.addEventListener("dragover", (event) => {
  if (event.dataTransfer.types.includes("Files")) event.preventDefault();
});
document.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  nextFiles.add(event.dataTransfer.files);
  textField.focus();
});

textField.addEventListener("input", () => {
  fitHeight();
  showWork();
});
const touchScreen = matchMedia("(pointer: coarse)");
textField.addEventListener("keydown", (event) => {
  // While an input method composes a word (Japanese, for example), Enter ends the word. Safari reports the
  // end of the word before the key, with the key code of a key that the input method handled.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  // On-screen keyboards have no Shift with Enter.
  if (touchScreen.matches && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  submit();
});

/* --- leaving the page and coming back --------------------------------------------------------- */

textField.value = sessionStorage.getItem(TEXT_KEY) ?? "";
nextFiles.files = JSON.parse(sessionStorage.getItem(FILES_KEY) ?? "[]");
nextFiles.draw();
fitHeight();

function storeUnfinished() {
  try {
    sessionStorage.setItem(FILES_KEY, JSON.stringify(nextFiles.stored));
    sessionStorage.setItem(TEXT_KEY, textField.value);
  } catch {
    sessionStorage.removeItem(TEXT_KEY); // too large
  }
}
window.addEventListener("pagehide", storeUnfinished);
// Safari restores a page as it was when the person goes back, even after logging out on the next page.
window.addEventListener("pageshow", async (event) => {
  if (event.persisted && await isLoggedOut("./")) location.reload();
});

setInterval(() => countDown(), 1000);
outbox.messages.forEach(showUnsent);
void follow("./", handlers, showState, HIDDEN_DELAY_MS);
