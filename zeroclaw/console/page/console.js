/* The script of the console: refreshes the page, counts deadlines down, draws Markdown, shows times in the
   reader's time zone, and sends forms without leaving the page. The daemon renders all content; without this
   script the page is complete, but does not update itself. */

import { guardClicks } from "./click_guard.js";
import { appendBlocks, parseBlocks } from "./markdown.js";
import { clearUnfinished, follow, isLoggedOut, pause } from "./stream.js";

const REQUEST_TIMEOUT_MS = 60_000;
/* The pause between two requests for the page, however often it changes. */
const REFRESH_PAUSE_MS = 1500;
const STATE_TEXT = {
  connecting: "connecting",
  connected: "live",
  reconnecting: "no connection, trying again",
  "logged out": "logged out: run `zeroclaw status` for a new link",
};

const byId = (id) => document.getElementById(id);
const root = document.querySelector('link[rel="stylesheet"]').href.replace(/[^/]*$/, "");

/* --- texts ------------------------------------------------------------------------------------ */

function drawMarkdown() {
  for (const text of document.querySelectorAll("p.markdown")) {
    const drawn = document.createDocumentFragment();
    appendBlocks(drawn, parseBlocks(text.textContent));
    text.replaceWith(drawn);
  }
}

/* --- times ------------------------------------------------------------------------------------ */

function showLocalTimes(node) {
  for (const time of node.querySelectorAll("time:not([data-deadline])")) {
    const at = new Date(time.dateTime);
    const isToday = at.toDateString() === new Date().toDateString();
    time.textContent = isToday
      ? at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
      : at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    time.title = at.toLocaleString();
  }
}

function countDown() {
  for (const time of document.querySelectorAll("time[data-deadline]")) {
    const seconds = Math.max(0, Math.round((Date.parse(time.dataset.deadline) - Date.now()) / 1000));
    const minutes = Math.floor(seconds / 60);
    const left = minutes >= 60
      ? `${Math.floor(minutes / 60)} h ${minutes % 60} min left`
      : `${minutes}:${String(seconds % 60).padStart(2, "0")} left`;
    const text = seconds ? left : "time is up";
    if (time.textContent !== text) time.textContent = text;
    time.dataset.soon = String(seconds <= 60);
    time.title = new Date(time.dataset.deadline).toLocaleString();
  }
}

/* --- refresh: replace changed parts, keep those in use -------------------------------------- */

/* The newest version of each part that the daemon sent. */
const received = new WeakMap();

function recordReceived(node) {
  for (const part of node.querySelectorAll("main > *, section > *, ul > *, ol > *, [id]")) {
    received.set(part, part.outerHTML);
  }
}

/* Whether the reader is typing in a part, has typed there, or reads there why a form was not sent. */
function isInUse(part) {
  const fields = [...part.querySelectorAll("input:not([type=hidden]), textarea")];
  return part.querySelector(".trouble:not([hidden])") !== null
    || fields.some((field) => field === document.activeElement || field.value !== field.defaultValue);
}

/* Merge the children of `fresh` into `old`, matched by id, or by position if they have none; lists
   are merged row by row. */
function mergeChildren(old, fresh) {
  const oldById = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let next = old.firstElementChild;
  for (const child of [...fresh.children]) {
    const isSameKind = next && !next.id && next.tagName === child.tagName;
    const match = child.id ? oldById.get(child.id) : isSameKind && next;
    const merged = match ? mergeNode(match, child) : child;
    if (match && match === next) next = merged.nextElementSibling;
    else if (merged !== next) old.insertBefore(merged, next);
  }
  while (next) {
    const following = next.nextElementSibling;
    next.remove();
    next = following;
  }
}

/* Update `old` to `fresh` unless it is in use; return the node that is now on the page. */
function mergeNode(old, fresh) {
  if (received.get(old) === fresh.outerHTML) return old;
  const isContainer = fresh.matches("main, section, ul, ol") && old.tagName === fresh.tagName;
  if (isContainer) {
    received.set(old, fresh.outerHTML);
    mergeChildren(old, fresh);
    return old;
  }
  if (isInUse(old)) return old;
  for (const details of old.querySelectorAll("details[open][id]")) {
    const same = fresh.querySelector(`#${CSS.escape(details.id)}`);
    if (same) same.open = true;
  }
  const focusedPath = old.contains(document.activeElement) ? pathTo(old, document.activeElement) : null;
  recordReceived(fresh);
  received.set(fresh, fresh.outerHTML.replace(/ open=""/g, ""));
  old.replaceWith(fresh);
  if (focusedPath) nodeAt(fresh, focusedPath)?.focus();
  return fresh;
}

/* The path from a node to a descendant: the position of each element among its siblings. */
function pathTo(ancestor, descendant) {
  const path = [];
  for (let node = descendant; node !== ancestor; node = node.parentElement) {
    path.unshift([...node.parentElement.children].indexOf(node));
  }
  return path;
}

function nodeAt(ancestor, path) {
  return path.reduce((node, position) => node?.children[position], ancestor);
}

/* Update the page; `isResult` says that it comes from a form of this page. */
function showPage(html, { isResult }) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  if (!fresh.querySelector("main")) return;
  // The result of a form stays until the next form.
  if (!isResult) received.set(byId("result"), fresh.getElementById("result").outerHTML);
  mergeChildren(byId("sections"), fresh.getElementById("sections"));
  mergeChildren(byId("main"), fresh.querySelector("main"));
  // A restarted daemon has a new token; forms that were not replaced need it too.
  const token = fresh.querySelector("input[name=token]")?.value;
  for (const input of document.querySelectorAll("input[name=token]")) input.value = token ?? input.value;
  document.title = fresh.title;
  drawMarkdown();
  showLocalTimes(document);
  countDown();
  recheckPointer();
}

/* --- buttons that move under the pointer ------------------------------------------------------ */

const recheckPointer = guardClicks(
  "main form:has(.trouble) button",
  (button) => `${button.closest("[id]").id} ${button.textContent}`,
  (button, reason) => showTrouble(button.form, reason),
);

/* Show in a form why it was not sent. */
function showTrouble(form, reason) {
  const trouble = form.querySelector(".trouble");
  trouble.textContent = reason;
  trouble.hidden = false;
}

/* --- requests --------------------------------------------------------------------------------- */

let isRefreshing = false;
let isRefreshWanted = false;

async function refresh() {
  if (byId("answer")) return; // explaining also queries the tool, so only the button does it
  isRefreshWanted = true;
  if (isRefreshing || document.hidden) return;
  isRefreshing = true;
  while (isRefreshWanted) {
    isRefreshWanted = false;
    try {
      const response = await fetch(location.href.replace(/([?&])result=[^&]*&?/, "$1"), {
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      });
      if (response.ok || response.status === 404) showPage(await response.text(), { isResult: false });
    } catch {
      break; // the connection status shows the failure
    }
    await pause(REFRESH_PAUSE_MS);
  }
  isRefreshing = false;
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) void refresh();
});
// Safari restores a page as it was when the person goes back, even after logging out on the next page.
window.addEventListener("pageshow", async (event) => {
  if (event.persisted && await isLoggedOut(root)) location.reload();
});

/* --- forms ------------------------------------------------------------------------------------ */

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.id === "logout") clearUnfinished();
  if (form.method !== "post" || form.id === "logout") return;
  event.preventDefault();
  void sendForm(form, new URLSearchParams(new FormData(form, event.submitter)));
});

const UNREACHABLE = "the daemon can't be reached; press again when the page is live";

async function sendForm(form, fields) {
  const controls = [...(form.closest("li") ?? form).querySelectorAll("button, input")];
  controls.forEach((control) => { control.disabled = true; });
  form.querySelector(".trouble").hidden = true;
  try {
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const response = await fetch(form.action, { method: "POST", body: fields, signal });
    const text = await response.text();
    if (response.status === 401) throw new Error(STATE_TEXT["logged out"]);
    if (!response.ok && response.status !== 404) throw new Error(text);
    for (const control of controls) if (control.type === "text") control.value = control.defaultValue;
    showPage(text, { isResult: true });
    if (!form.isConnected) byId("main").focus({ preventScroll: true });
  } catch (error) {
    // Errors of fetch itself have the browser's wording, which does not help.
    const isUnreachable = error instanceof TypeError || error instanceof DOMException;
    showTrouble(form, isUnreachable ? UNREACHABLE : error.message);
  }
  controls.forEach((control) => { control.disabled = false; });
}

/* --- event stream ----------------------------------------------------------------------------- */

function showState(state) {
  const node = byId("connection");
  node.hidden = false;
  if (node.dataset.state === state && node.textContent) return;
  node.dataset.state = state;
  node.textContent = STATE_TEXT[state];
}

recordReceived(document.body);
document.querySelector("#sections [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
drawMarkdown();
showLocalTimes(document);
countDown();
setInterval(countDown, 1000);
void follow(root, { changed: () => void refresh() }, showState, 0);
