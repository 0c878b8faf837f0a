/* Shows the chat's items: one list element each, updated in place by id. */

import { appendBlocks, coded, element, parseBlocks } from "./markdown.js";
import { drawCard } from "./cards.js";

/* Commands that start no turn; they reply with a message or not at all. */
const QUIET_COMMAND = /^\s*\/(?!(?:tool|retry)\b)[a-z][\w-]*(?:\s|$)/i;
const VERDICT_TEXT = { valid: "receipt checked", earlier: "receipt of an earlier run" };

export class Items {
  constructor(log, answer) {
    this.log = log;
    this.answer = answer;
    this.nodes = new Map();
  }

  get isEmpty() {
    return this.nodes.size === 0;
  }

  /* Show exactly these items, in this order, and after them the nodes with an id in `keptIds`. */
  reset(items, keptIds) {
    const ids = new Set([...items.map((item) => item.id), ...keptIds]);
    for (const id of [...this.nodes.keys()]) if (!ids.has(id)) this.remove(id);
    for (const item of items) this.show(item);
    const focused = document.activeElement;
    // A node that moves loses its focus, its selection and its scroll position, so only those in a wrong
    // place are moved.
    let next = this.log.firstElementChild;
    for (const node of [...ids].map((id) => this.nodes.get(id)).filter(Boolean)) {
      if (node === next) next = node.nextElementSibling;
      else this.log.insertBefore(node, next);
    }
    for (const draft of this.log.querySelectorAll(":scope > .draft")) this.placeDraft(draft);
    if (focused !== document.activeElement) focused.focus({ preventScroll: true });
  }

  /* Whether an answer is being written. */
  hasDraft() {
    return this.log.querySelector(":scope > .draft") !== null;
  }

  /* Whether an approval card is open. */
  hasOpenCard() {
    return this.log.querySelector(':scope > .card:not([data-open="0"])') !== null;
  }

  /* Whether the last item is a message that a turn will answer. */
  awaitsAnswer() {
    const last = this.log.lastElementChild;
    return Boolean(last) && last.matches(".person:not([data-sending=waiting], [data-sending=refused])") &&
      !QUIET_COMMAND.test(last.querySelector(".body").textContent);
  }

  /* Add an item, or update the one with the same id. */
  show(item) {
    let node = this.nodes.get(item.id);
    if (!node) {
      node = element("li", { className: item.kind });
      node.dataset.id = item.id;
      this.nodes.set(item.id, node);
      this.log.append(node);
    }
    if (item.kind === "card") {
      drawCard(node, item, this.answer);
    } else {
      const wasDraft = node.classList.contains("draft");
      const hasChanged = drawText(node, item);
      if (wasDraft && hasChanged) this.placeDraft(node);
    }
  }

  /* Place a growing answer: below cards that are decided, above cards that are still open. */
  placeDraft(node) {
    const nodes = [...this.log.children];
    const later = nodes.slice(nodes.indexOf(node) + 1);
    later.findLast((other) => other.matches('.card[data-open="0"]'))?.after(node);
    while (node.matches(".draft") && node.previousElementSibling?.matches('.card:not([data-open="0"])')) {
      node.previousElementSibling.before(node);
    }
  }

  remove(id) {
    this.nodes.get(id)?.remove();
    this.nodes.delete(id);
  }

  /* Show the send state of one of the person's messages; "" once the daemon has it. */
  setSendState(id, state, reason = "") {
    const node = this.nodes.get(id);
    if (!node) return;
    node.dataset.sending = state;
    node.querySelector(".why")?.remove();
    if (reason) node.append(element("p", { className: "why" }, reason));
  }
}

/* Draw an item's text; returns whether it changed. */
function drawText(node, item) {
  let body = node.querySelector(":scope > .body");
  if (!body) {
    body = element("div", { className: "body", dir: item.kind === "person" ? "auto" : "" });
    const sender = item.kind === "person" ? "You: " : "Bot: ";
    const label = element("span", { className: "sr-only" }, sender);
    node.replaceChildren(label, body, timestamp(item.at));
    body.sources = [];
  }
  node.classList.toggle("draft", Boolean(item.draft));
  // Screen readers should read a draft once, when it is complete.
  node.setAttribute("aria-busy", String(Boolean(item.draft)));
  body.hidden = !item.text;
  if (item.kind === "person") {
    if (body.textContent !== item.text) body.textContent = item.text;
    drawFiles(node, item.files ?? []);
    return false;
  }
  drawReceipts(node, item.receipts ?? []);
  if (item.plain || item.sent) {
    const hasChanged = body.textContent !== item.text;
    if (hasChanged) body.replaceChildren(element("p", { className: "plain", dir: "auto" }, item.text));
    body.sources = [];
    if (item.sent) drawSent(node, item);
    return hasChanged;
  }
  const blocks = parseBlocks(item.text);
  const firstChanged = blocks.findIndex((block, index) => block.source !== body.sources[index]);
  const start = firstChanged < 0 ? blocks.length : firstChanged;
  while (body.childNodes.length > start) body.lastChild.remove();
  appendBlocks(body, blocks.slice(start));
  body.sources = blocks.map((block) => block.source);
  return firstChanged >= 0;
}

/* List the names of a message's files; the page never shows their content. */
function drawFiles(node, names) {
  node.querySelector(":scope > .files")?.remove();
  if (!names.length) return;
  const rows = names.map((name) => element("li", {}, name || "file"));
  node.querySelector(":scope > .body").after(element("ul", { className: "files" }, ...rows));
}

/* Show a download link for a file from the bot; the page never shows its content. */
function drawSent(node, item) {
  if (node.querySelector(":scope > .files")) return;
  const link = element("a", { href: `sent/${encodeURIComponent(item.id)}`, download: item.sent.name },
    item.sent.name);
  const row = element("li", {}, link, element("span", { className: "size" }, sizeText(item.sent.size)));
  node.querySelector(":scope > .body").after(element("ul", { className: "files" }, row));
}

function sizeText(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function timestamp(at) {
  const time = new Date(at);
  const isToday = time.toDateString() === new Date().toDateString();
  const label = isToday
    ? time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
    : time.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  return element("time", { dateTime: at, title: time.toLocaleString() }, label);
}

/* List an answer's receipts below its text, in an element that the text of an answer can't imitate. */
function drawReceipts(node, receipts) {
  node.querySelector(":scope > .receipts")?.remove();
  if (!receipts.length) return;
  const badges = receipts.map((receipt) => {
    const title = `${VERDICT_TEXT[receipt.verdict]}: ${receipt.token}`;
    const badge = element("li", { className: "receipt", title }, ...coded(receipt.line));
    badge.dataset.verdict = receipt.verdict;
    return badge;
  });
  node.querySelector(":scope > .body").after(element("ul", { className: "receipts" }, ...badges));
}
