// Renders a rich message: blocks of the Bot API become elements; text only goes into text nodes.

import { element, link } from "./elements.js";

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

export function renderRich(message) {
  const node = element("div", "rich");
  node.append(...message.blocks.map(renderBlock));
  return node;
}

function renderBlock(block) {
  switch (block.type) {
    case "heading": return styled(`h${block.size}`, block.text);
    case "pre": return styled("pre", block.text);
    case "divider": return element("hr");
    case "mathematical_expression": return element("code", "formula", block.expression);
    case "list": return renderList(block);
    case "table": return renderTable(block);
    case "blockquote": return containing("blockquote", block.blocks);
    case "details": {
      const node = containing("details", block.blocks);
      node.open = block.is_open === true;
      node.prepend(styled("summary", block.summary));
      return node;
    }
    default: return styled("p", block.text ?? "");
  }
}

function containing(tag, blocks) {
  const node = element(tag);
  node.append(...blocks.map(renderBlock));
  return node;
}

function renderList(block) {
  const list = element("ul", "labelled");
  for (const item of block.items) {
    const row = containing("li", item.blocks);
    const box = item.is_checked ? "☑" : "☐";
    row.prepend(element("span", "label", item.has_checkbox ? box : item.label));
    list.append(row);
  }
  return list;
}

function renderTable(block) {
  const table = element("table");
  if (block.caption) table.append(styled("caption", block.caption));
  for (const cells of block.cells) {
    const row = element("tr");
    for (const cell of cells) {
      const node = styled(cell.is_header ? "th" : "td", cell.text ?? "");
      node.classList.add(cell.align);
      node.colSpan = cell.colspan ?? 1;
      node.rowSpan = cell.rowspan ?? 1;
      row.append(node);
    }
    table.append(row);
  }
  return table;
}

function styled(tag, text) {
  const node = element(tag);
  appendText(node, text);
  return node;
}

// Appends a RichText of the Bot API: a string, an object with a text, or a list of these.
function appendText(parent, text) {
  if (typeof text === "string") {
    parent.append(text);
  } else if (Array.isArray(text)) {
    for (const part of text) appendText(parent, part);
  } else {
    const node = element(STYLES[text.type] ?? "span", text.type);
    if (text.type === "url") link(node, text.url);
    appendText(node, text.text ?? text.expression ?? text.alternative_text ?? "");
    parent.append(node);
  }
}
