/* Show what stands in the chat: one list item for each, updated in place by its id. */

import { block, blocks, element } from "./markdown.js";
import { drawCard } from "./cards.js";

/* Commands that are done at once; what they have to say comes as a message or not at all. */
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

  /* Show exactly these, in this order; `kept` are ids that stay although they are not among them. */
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

  /* Whether a question of the bot is open. */
  isAsking() {
    return this.log.querySelector(':scope > .card:not([data-open="0"])') !== null;
  }

  /* Whether the chat ends with something that is answered by a turn. */
  owesAnswer() {
    const last = this.log.lastElementChild;
    return Boolean(last) && last.matches(".person:not([data-sending=waiting], [data-sending=refused])") &&
      !QUIET.test(last.querySelector(".body").textContent);
  }

  /* Add an item, or replace what the one of its id shows. */
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

  /* An answer that goes on after its card was answered goes on below it; while it waits for the
     answer it stands above. */
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

  /* Say how the sending of an own message stands; "" when it has arrived. */
  mark(id, state, why = "") {
    const node = this.nodes.get(id);
    if (!node) return;
    node.dataset.sending = state;
    node.querySelector(".why")?.remove();
    if (why) node.append(element("p", { className: "why" }, why));
  }
}

/* Tells whether the text is another than before. */
function drawText(node, item) {
  let body = node.querySelector(":scope > .body");
  if (!body) {
    body = element("div", { className: "body" });
    const who = item.kind === "person" ? "You: " : "Bot: ";
    node.replaceChildren(element("span", { className: "unseen" }, who), body, stamp(item.at));
    body.sources = [];
  }
  node.classList.toggle("draft", Boolean(item.draft));
  // A screen reader reads a draft once, when it has ended.
  node.setAttribute("aria-busy", String(Boolean(item.draft)));
  if (item.kind === "person") {
    if (body.textContent !== item.text) body.textContent = item.text;
    body.hidden = !item.text;
    drawFiles(node, item.files ?? []);
    return false;
  }
  drawReceipts(node, item.receipts ?? []);
  if (item.plain) {
    const news = body.textContent !== item.text;
    if (news) body.replaceChildren(element("p", { className: "plain" }, item.text));
    body.sources = [];
    return news;
  }
  if (item.sent) {
    if (body.textContent !== item.text) body.textContent = item.text;
    body.hidden = !item.text;
    drawSent(node, item);
    return false;
  }
  const made = blocks(item.text);
  const same = made.findIndex((one, index) => one.source !== body.sources[index]);
  const from = same < 0 ? made.length : same;
  while (body.childNodes.length > from) body.lastChild.remove();
  body.append(...made.slice(from).map((one) => block(one)));
  body.sources = made.map((one) => one.source);
  return same >= 0;
}

/* Names only: what a file holds the bot reads, and this page never shows. */
function drawFiles(node, names) {
  node.querySelector(":scope > .files")?.remove();
  if (!names.length) return;
  const shown = names.map((name) => element("li", {}, name || "file"));
  node.querySelector(":scope > .body").after(element("ul", { className: "files" }, ...shown));
}

/* A link that saves a file of the bot's; nothing of it is shown here. */
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
  const shown = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return element("time", { dateTime: at, title: time.toLocaleString() }, shown);
}

/* What an answer proves stands below its text, where no text can stand. */
function drawReceipts(node, receipts) {
  node.querySelector(":scope > .receipts")?.remove();
  if (!receipts.length) return;
  const shown = receipts.map((one) => {
    const badge = element("li", { className: "receipt", title: `${WORDS[one.verdict]}: ${one.token}` }, one.line);
    badge.dataset.verdict = one.verdict;
    return badge;
  });
  node.querySelector(":scope > .body").after(element("ul", { className: "receipts" }, ...shown));
}
