/* Shows the chat's items: one list element each, updated in place by id. */

import { block, blocks, coded, element } from "./markdown.js";
import { drawCard } from "./cards.js";

/* Commands that start no turn; they reply with a message or not at all. */
const QUIET = /^\s*\/(?!(?:tool|retry)\b)[a-z][\w-]*(?:\s|$)/i;
const WORDS = { valid: "receipt checked", earlier: "receipt of an earlier run" };

export class Items {
  constructor(log, answer) {
    this.log = log;
    this.answer = answer;
    this.nodes = new Map();
  }

  get isEmpty() {
    return this.nodes.size === 0;
  }

  /* Show exactly these items, in this order, and leave those with an id in `kept`. */
  reset(items, kept) {
    const standing = new Set([...items.map((item) => item.id), ...kept]);
    for (const id of [...this.nodes.keys()]) if (!standing.has(id)) this.remove(id);
    for (const item of items) {
      this.show(item);
      this.log.append(this.nodes.get(item.id));
    }
    for (const draft of this.log.querySelectorAll(":scope > .draft")) this.place(draft);
    for (const id of kept) {
      if (this.nodes.has(id) && !items.some((item) => item.id === id)) {
        this.log.append(this.nodes.get(id));
      }
    }
  }

  /* Whether an answer is being written. */
  isWriting() {
    return this.log.querySelector(":scope > .draft") !== null;
  }

  /* Whether an approval card is open. */
  isAsking() {
    return this.log.querySelector(':scope > .card:not([data-open="0"])') !== null;
  }

  /* Whether the last item is a message that a turn will answer. */
  owesAnswer() {
    const last = this.log.lastElementChild;
    return Boolean(last) && last.matches(".person:not([data-sending=waiting], [data-sending=refused])") &&
      !QUIET.test(last.querySelector(".body").textContent);
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
      const isNews = drawText(node, item);
      if (wasDraft && isNews) this.place(node);
    }
  }

  /* Place a growing answer: below cards that are decided, above cards that are still open. */
  place(node) {
    const after = [...this.log.children].slice([...this.log.children].indexOf(node) + 1);
    after.findLast((one) => one.matches('.card[data-open="0"]'))?.after(node);
    while (node.matches(".draft") && node.previousElementSibling?.matches('.card:not([data-open="0"])')) {
      node.previousElementSibling.before(node);
    }
  }

  remove(id) {
    this.nodes.get(id)?.remove();
    this.nodes.delete(id);
  }

  /* Show the sending state of one of the person's messages; "" once the daemon has it. */
  mark(id, state, why = "") {
    const node = this.nodes.get(id);
    if (!node) return;
    node.dataset.sending = state;
    node.querySelector(".why")?.remove();
    if (why) node.append(element("p", { className: "why" }, why));
  }
}

/* Draw an item's text; returns whether it changed. */
function drawText(node, item) {
  let body = node.querySelector(":scope > .body");
  if (!body) {
    body = element("div", { className: "body", dir: item.kind === "person" ? "auto" : "" });
    const who = item.kind === "person" ? "You: " : "Bot: ";
    node.replaceChildren(element("span", { className: "unseen" }, who), body, stamp(item.at));
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
    const news = body.textContent !== item.text;
    if (news) body.replaceChildren(element("p", { className: "plain", dir: "auto" }, item.text));
    body.sources = [];
    if (item.sent) drawSent(node, item);
    return news;
  }
  const made = blocks(item.text);
  const same = made.findIndex((one, index) => one.source !== body.sources[index]);
  const from = same < 0 ? made.length : same;
  while (body.childNodes.length > from) body.lastChild.remove();
  body.append(...made.slice(from).map((one) => Object.assign(block(one), { dir: "auto" })));
  body.sources = made.map((one) => one.source);
  return same >= 0;
}

/* List the names of a message's files; the page never shows their content. */
function drawFiles(node, names) {
  node.querySelector(":scope > .files")?.remove();
  if (!names.length) return;
  const shown = names.map((name) => element("li", {}, name || "file"));
  node.querySelector(":scope > .body").after(element("ul", { className: "files" }, ...shown));
}

/* Show a download link for a file of the bot's; the page never shows its content. */
function drawSent(node, item) {
  if (node.querySelector(":scope > .files")) return;
  const link = element("a", { href: `sent/${encodeURIComponent(item.id)}`, download: item.sent.name },
    item.sent.name);
  const shown = element("li", {}, link, element("span", { className: "size" }, size(item.sent.size)));
  node.querySelector(":scope > .body").after(element("ul", { className: "files" }, shown));
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function stamp(at) {
  const time = new Date(at);
  const isToday = time.toDateString() === new Date().toDateString();
  const shown = isToday
    ? time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
    : time.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  return element("time", { dateTime: at, title: time.toLocaleString() }, shown);
}

/* List an answer's receipts below its text, in an element that no answer's text can imitate. */
function drawReceipts(node, receipts) {
  node.querySelector(":scope > .receipts")?.remove();
  if (!receipts.length) return;
  const shown = receipts.map((one) => {
    const badge = element("li", { className: "receipt", title: `${WORDS[one.verdict]}: ${one.token}` }, ...coded(one.line));
    badge.dataset.verdict = one.verdict;
    return badge;
  });
  node.querySelector(":scope > .body").after(element("ul", { className: "receipts" }, ...shown));
}
