// Draws one message. Text only goes into text nodes; only web links can be opened.

import { element, link } from "./elements.js";
import { renderRich } from "./rich.js";

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

// Offsets of entities count UTF-16 code units, as JavaScript's strings do; outer entities come first.
export function formatted(text, entities) {
  const fragment = document.createDocumentFragment();
  appendFormatted(fragment, text, 0, text.length, [...entities]);
  return fragment;
}

function appendFormatted(parent, text, start, end, entities) {
  let position = start;
  while (entities.length > 0 && entities[0].offset < end) {
    const entity = entities.shift();
    const entityEnd = Math.min(entity.offset + entity.length, end);
    if (entity.offset > position) parent.append(text.slice(position, entity.offset));
    const node = entityElement(entity, text.slice(entity.offset, entityEnd));
    appendFormatted(node, text, entity.offset, entityEnd, entities);
    parent.append(node);
    position = entityEnd;
  }
  if (position < end) parent.append(text.slice(position, end));
}

function entityElement(entity, text) {
  const node = element(TAGS[entity.type] ?? "span", entity.type);
  if (node.tagName === "A") link(node, entity.url ?? text);
  return node;
}

// Draws a message; its buttons call `press` or `reply` of the phone.
export function drawMessage(message, phone) {
  const item = element("li", message.bot ? "bot" : "person");
  const bubble = element("div", "bubble");
  bubble.append(element("p", "name", message.name));
  if (message.reply) {
    bubble.append(element("p", "quoted", `${message.reply.name}: ${message.reply.text}`));
  }
  for (const file of message.files) bubble.append(fileLine(file));
  if (message.rich) {
    bubble.append(renderRich(message.rich));
  } else if (message.text) {
    const body = element("div", "text");
    body.append(formatted(message.text, message.entities));
    bubble.append(body);
  }
  bubble.append(footer(message, phone));
  item.append(bubble);
  for (const row of message.rows) {
    const line = element("div", "buttons");
    for (const cell of row) line.append(keyboardButton(message, cell, phone));
    item.append(line);
  }
  return item;
}

function fileLine(file) {
  const line = element("p", "file");
  if (!file.path) {
    line.textContent = file.name;
    return line;
  }
  const anchor = element("a", "", `${file.kind}: ${file.name}`);
  anchor.href = `files/${file.path}`;
  anchor.download = file.name;
  line.append(anchor);
  return line;
}

function footer(message, phone) {
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
  reply.addEventListener("click", () => phone.reply(message));
  line.append(reply);
  return line;
}

function keyboardButton(message, cell, phone) {
  const button = element("button", cell.style ?? "", cell.text);
  button.type = "button";
  button.disabled = !cell.callback_data;
  button.addEventListener("click", () => phone.press(message, cell.callback_data));
  return button;
}
