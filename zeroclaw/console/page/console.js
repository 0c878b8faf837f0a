/* The script of the console: refreshes the page, counts deadlines down, shows times in the reader's
   time zone, and sends forms without leaving the page. The daemon renders everything that is shown;
   without this file the page is complete, but does not update itself. */

import { guardSliding } from "./sliding.js";
import { connection, forgetHalfWritten, pause, status, waited } from "./stream.js";

const WAITS_MS = [500, 1000, 2000, 4000, 8000];
const ANSWERS_MS = 60_000;
/* Pause between two requests for the page, however often something changes. */
const PAUSE_MS = 1500;
const BESIDE_MS = 5000;
const SAID = {
  connecting: "connecting",
  connected: "live",
  reconnecting: "no connection, trying again",
  "logged out": "logged out: run `zeroclaw status` for a new link",
};

const by = (id) => document.getElementById(id);
const root = document.querySelector('link[rel="stylesheet"]').href.replace(/\/[^/]*$/, "");

/* --- times -------------------------------------------------------------------------------------- */

function local(node) {
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
    const said = seconds ? left : "time is up";
    if (time.textContent !== said) time.textContent = said;
    time.dataset.soon = String(seconds <= 60);
    time.title = new Date(time.dataset.deadline).toLocaleString();
  }
}

/* --- refresh: replaces changed parts, keeps those in use ------------------------------------------ */

/* The newest version that the daemon sent of each part. */
const sent = new WeakMap();

function remember(node) {
  for (const part of node.querySelectorAll("main > *, section > *, ul > *, ol > *, [id]")) {
    sent.set(part, part.outerHTML);
  }
}

/* Whether the reader is typing in a part, or has typed there. */
function isWrittenIn(part) {
  const fields = [...part.querySelectorAll("input:not([type=hidden]), textarea")];
  return fields.some((one) => one === document.activeElement || one.value !== one.defaultValue);
}

/* Merge the children of `fresh` into `old`, matched by id, or by position if they have none; lists
   are refreshed row by row. */
function renew(old, fresh) {
  const known = new Map([...old.children].filter((one) => one.id).map((one) => [one.id, one]));
  let place = old.firstElementChild;
  for (const child of [...fresh.children]) {
    const isLike = place && !place.id && place.tagName === child.tagName;
    const here = child.id ? known.get(child.id) : isLike && place;
    const kept = here ? renewed(here, child) : child;
    if (here && here === place) place = kept.nextElementSibling;
    else if (kept !== place) old.insertBefore(kept, place);
  }
  while (place) {
    const next = place.nextElementSibling;
    place.remove();
    place = next;
  }
}

function renewed(here, child) {
  if (sent.get(here) === child.outerHTML) return here;
  const rows = child.matches("main, section, ul, ol") && here.tagName === child.tagName;
  if (rows) {
    sent.set(here, child.outerHTML);
    renew(here, child);
    return here;
  }
  if (isWrittenIn(here)) return here;
  for (const folded of here.querySelectorAll("details[open][id]")) {
    const same = child.querySelector(`#${CSS.escape(folded.id)}`);
    if (same) same.open = true;
  }
  const focused = here.contains(document.activeElement) ? path(here, document.activeElement) : null;
  remember(child);
  sent.set(child, child.outerHTML.replace(/ open=""/g, ""));
  here.replaceWith(child);
  if (focused) follow(child, focused)?.focus();
  return child;
}

function path(from, to) {
  const steps = [];
  for (let node = to; node !== from; node = node.parentElement) {
    steps.unshift([...node.parentElement.children].indexOf(node));
  }
  return steps;
}

function follow(from, steps) {
  return steps.reduce((node, step) => node?.children[step], from);
}

function show(text, { isOwn }) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  if (!fresh.querySelector("main")) return;
  const said = by("told");
  // The result of a form stays until the next form.
  if (!isOwn) sent.set(said, fresh.getElementById("told").outerHTML);
  renew(by("sections"), fresh.getElementById("sections"));
  renew(by("main"), fresh.querySelector("main"));
  // A restarted daemon has a new token; forms that were kept need it too.
  const token = fresh.querySelector("input[name=token]")?.value;
  for (const one of document.querySelectorAll("input[name=token]")) one.value = token ?? one.value;
  document.title = fresh.title;
  local(document);
  countDown();
  moved();
}

/* --- buttons that move under the pointer -------------------------------------------------------- */

const moved = guardSliding(
  "main form:has(.trouble) button",
  (button) => `${button.closest("[id]").id} ${button.textContent}`,
  (button, why) => refuse(button.form, why),
);

/* Say in a form why it was not sent. */
function refuse(form, why) {
  const trouble = form.querySelector(".trouble");
  trouble.textContent = why;
  trouble.hidden = false;
}

/* --- requests ----------------------------------------------------------------------------------- */

let isAsking = false;
let isWanted = false;

async function look() {
  if (by("answer")) return; // explaining also queries the tool, so only the button does it
  isWanted = true;
  if (isAsking || document.hidden) return;
  isAsking = true;
  while (isWanted) {
    isWanted = false;
    try {
      const answer = await fetch(location.href.replace(/([?&])told=[^&]*&?/, "$1"), {
        signal: AbortSignal.timeout(ANSWERS_MS),
      });
      if (answer.ok || answer.status === 404) show(await answer.text(), { isOwn: false });
    } catch {
      break; // the connection status shows the failure
    }
    await pause(PAUSE_MS);
  }
  isAsking = false;
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) void look();
});
// Safari keeps a page to go back to, as it was, also after logging out on the next one.
window.addEventListener("pageshow", async (event) => {
  if (event.persisted && await isLoggedOut()) location.reload();
});

/* --- forms -------------------------------------------------------------------------------------- */

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.id === "logout") forgetHalfWritten();
  if (form.method !== "post" || form.id === "logout") return;
  event.preventDefault();
  void send(form, new URLSearchParams(new FormData(form, event.submitter)));
});

const UNREACHED = "the daemon can't be reached; press again when the page is live";

async function send(form, fields) {
  const controls = [...(form.closest("li") ?? form).querySelectorAll("button, input")];
  controls.forEach((one) => { one.disabled = true; });
  form.querySelector(".trouble").hidden = true;
  try {
    const signal = AbortSignal.timeout(ANSWERS_MS);
    const answer = await fetch(form.action, { method: "POST", body: fields, signal });
    const text = await answer.text();
    if (!answer.ok && answer.status !== 404) throw new Error(answer.status === 401 ? SAID["logged out"] : text);
    for (const one of controls) if (one.type === "text") one.value = one.defaultValue;
    show(text, { isOwn: true });
    if (!form.isConnected) by("main").focus({ preventScroll: true });
  } catch (error) {
    // Errors of fetch itself have the browser's wording, which does not help.
    refuse(form, error instanceof TypeError || error instanceof DOMException ? UNREACHED : error.message);
  }
  controls.forEach((one) => { one.disabled = false; });
}

/* --- event stream ------------------------------------------------------------------------------- */

function state(name) {
  const line = by("connection");
  line.hidden = false;
  if (line.dataset.state === name && line.textContent) return;
  line.dataset.state = name;
  line.textContent = SAID[name];
}

async function listen() {
  let tries = 0;
  for (;;) {
    state(tries ? "reconnecting" : "connecting");
    await connection(`${root}/events`, {
      changed() {
        tries = 0;
        state("connected");
        void look();
      },
    });
    if (await isLoggedOut()) {
      state("logged out");
      return;
    }
    state("reconnecting");
    // The daemon ends the oldest stream of a browser with many pages open.
    const wait = (document.hasFocus() ? 0 : BESIDE_MS) + WAITS_MS[Math.min(tries, WAITS_MS.length - 1)];
    await waited(document.hidden ? 0 : wait);
    tries += 1;
  }
}

async function isLoggedOut() {
  return await status(`${root}/icon.svg`) === 401;
}

remember(document.body);
document.querySelector("#sections [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
local(document);
countDown();
setInterval(countDown, 1000);
void listen();
