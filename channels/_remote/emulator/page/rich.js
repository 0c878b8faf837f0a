// Draws a rich message: blocks of the Bot API become elements; text only goes into text nodes.

import { element, link } from "./parts.js";

const STYLES = {
  bold: "strong",
  italic: "em",
  underline: "u",
  strikethrough: "s",
  code: "code",
  marked: "mark",
  subscript: "sub",
  superscript: "sup",
  url: "a",
};

export function rich(message) {
  const made = element("div", "rich");
  made.append(...message.blocks.map(block));
  return made;
}

function block(one) {
  switch (one.type) {
    case "heading": return styled(`h${one.size}`, one.text);
    case "pre": return styled("pre", one.text);
    case "divider": return element("hr");
    case "mathematical_expression": return element("code", "formula", one.expression);
    case "list": return list(one);
    case "table": return table(one);
    case "blockquote": return around("blockquote", one.blocks);
    case "details": {
      const made = around("details", one.blocks);
      made.open = one.is_open === true;
      made.prepend(styled("summary", one.summary));
      return made;
    }
    default: return styled("p", one.text ?? "");
  }
}

function around(tag, blocks) {
  const made = element(tag);
  made.append(...blocks.map(block));
  return made;
}

function list(one) {
  const made = element("ul", "labelled");
  for (const item of one.items) {
    const line = around("li", item.blocks);
    const box = item.is_checked ? "☑" : "☐";
    line.prepend(element("span", "label", item.has_checkbox ? box : item.label));
    made.append(line);
  }
  return made;
}

function table(one) {
  const made = element("table");
  if (one.caption) made.append(styled("caption", one.caption));
  for (const row of one.cells) {
    const line = element("tr");
    for (const cell of row) {
      const drawn = styled(cell.is_header ? "th" : "td", cell.text ?? "");
      drawn.classList.add(cell.align);
      drawn.colSpan = cell.colspan ?? 1;
      drawn.rowSpan = cell.rowspan ?? 1;
      line.append(drawn);
    }
    made.append(line);
  }
  return made;
}

function styled(tag, text) {
  const made = element(tag);
  fill(made, text);
  return made;
}

// Appends a RichText of the Bot API: a string, an object with a text, or a list of these.
function fill(parent, text) {
  if (typeof text === "string") {
    parent.append(text);
  } else if (Array.isArray(text)) {
    for (const one of text) fill(parent, one);
  } else {
    const made = element(STYLES[text.type] ?? "span", text.type);
    if (text.type === "url") link(made, text.url);
    fill(made, text.text ?? text.expression ?? text.alternative_text ?? "");
    parent.append(made);
  }
}
