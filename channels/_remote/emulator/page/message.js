// Draws one message. Text only goes into text nodes; only web links can be opened.

import { element, link } from "./parts.js";
import { rich } from "./rich.js";

const TAGS = {
  bold: "strong",
  italic: "em",
  underline: "u",
  strikethrough: "s",
  spoiler: "span",
  blockquote: "blockquote",
  expandable_blockquote: "blockquote",
  code: "code",
  pre: "pre",
  text_link: "a",
  url: "a",
};

// Entities are counted in UTF-16 code units, as JavaScript's strings are, outer ones first.
export function formatted(text, entities) {
  const fragment = document.createDocumentFragment();
  fill(fragment, text, 0, text.length, [...entities]);
  return fragment;
}

function fill(parent, text, from, to, entities) {
  let at = from;
  while (entities.length > 0 && entities[0].offset < to) {
    const one = entities.shift();
    const end = Math.min(one.offset + one.length, to);
    if (one.offset > at) parent.append(text.slice(at, one.offset));
    const inside = marked(one, text.slice(one.offset, end));
    fill(inside, text, one.offset, end, entities);
    parent.append(inside);
    at = end;
  }
  if (at < to) parent.append(text.slice(at, to));
}

function marked(entity, said) {
  const made = element(TAGS[entity.type] ?? "span", entity.type);
  if (made.tagName === "A") link(made, entity.url ?? said);
  return made;
}

// Draws a message; calls `act` when the person presses a button or replies.
export function draw(message, act) {
  const item = element("li", message.bot ? "bot" : "person");
  const bubble = element("div", "bubble");
  bubble.append(element("p", "name", message.name));
  if (message.reply) {
    bubble.append(element("p", "quoted", `${message.reply.name}: ${message.reply.text}`));
  }
  for (const file of message.files) bubble.append(attached(file));
  if (message.rich) {
    bubble.append(rich(message.rich));
  } else if (message.text) {
    const body = element("div", "text");
    body.append(formatted(message.text, message.entities));
    bubble.append(body);
  }
  bubble.append(foot(message, act));
  item.append(bubble);
  for (const row of message.rows) {
    const line = element("div", "buttons");
    for (const cell of row) line.append(button(message, cell, act));
    item.append(line);
  }
  return item;
}

function attached(file) {
  const line = element("p", "file");
  if (!file.path) {
    line.textContent = file.name;
    return line;
  }
  const link = element("a", "", `${file.kind}: ${file.name}`);
  link.href = `files/${file.path}`;
  link.download = file.name;
  line.append(link);
  return line;
}

function foot(message, act) {
  const line = element("div", "foot");
  const time = element("time", "", new Date(message.date * 1000).toLocaleTimeString());
  line.append(time);
  if (message.earlier.length > 0) {
    const edited = element("span", "edited", `edited ${message.earlier.length}×`);
    edited.title = message.earlier.slice(-3).join("\n—\n");
    line.append(edited);
  }
  const reply = element("button", "reply", "reply");
  reply.type = "button";
  reply.addEventListener("click", () => act.reply(message));
  line.append(reply);
  return line;
}

function button(message, cell, act) {
  const made = element("button", cell.style ?? "", cell.text);
  made.type = "button";
  made.disabled = !cell.callback_data;
  made.addEventListener("click", () => act.press(message, cell.callback_data));
  return made;
}
