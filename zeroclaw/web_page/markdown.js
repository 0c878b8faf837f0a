/* Renders Markdown: text in, DOM nodes out, built with textContent only, so text never becomes markup.

   `parseBlocks` splits a text into top-level blocks; `appendBlocks` builds them. A caller that keeps the
   nodes of unchanged blocks can redraw a growing text cheaply, and a selection in it survives. */

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(\S.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}>\s?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:\s+(.*))?$/;
const ROW = /\|/;
const ROW_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const MAX_DEPTH = 8;
/* Some patterns take quadratic time in the length of a line; a longer line is shown as plain text. */
const MAX_MARKUP_LINE = 1000;
/* A longer cell keeps a width of several words on a phone. */
const LONG_CELL_CHARS = 40;

/* Split a text into blocks: `{kind, ...}`, each with its `source`. A heading's level is its depth below
   other headings, because models begin with any level, and skip some. */
export function parseBlocks(text) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const blocks = [];
  const outerLevels = [];
  let start = 0;
  while (start < lines.length) {
    if (!lines[start].trim()) {
      start += 1;
      continue;
    }
    const block = parseBlock(lines, start);
    if (block.level) {
      while (outerLevels.at(-1) >= block.level) outerLevels.pop();
      block.level = outerLevels.push(block.level);
    }
    blocks.push({ ...block, source: lines.slice(start, block.end).join("\n") });
    start = block.end;
  }
  return blocks;
}

function parseBlock(lines, start) {
  const line = lines[start];
  if (line.length > MAX_MARKUP_LINE) return parseParagraph(lines, start);
  const fence = FENCE.exec(line);
  if (fence) return parseFence(lines, start, fence);
  const heading = HEADING.exec(line);
  if (heading) {
    const text = heading[2].replace(/\s#+\s*$/, "");
    return { kind: "heading", level: heading[1].length, text, end: start + 1 };
  }
  if (RULE.test(line)) return { kind: "rule", end: start + 1 };
  if (QUOTE.test(line)) return parseQuote(lines, start);
  if (ITEM.test(line)) return parseList(lines, start);
  if (isTable(lines, start)) return parseTable(lines, start);
  return parseParagraph(lines, start);
}

function parseFence(lines, start, [, indent, mark, language]) {
  const closing = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}\\s*$`);
  let end = start + 1;
  while (end < lines.length && !closing.test(lines[end])) end += 1;
  const text = lines.slice(start + 1, end).map((line) => unindent(line, indent.length)).join("\n");
  return { kind: "code", text, language, end: Math.min(end + 1, lines.length) };
}

function parseQuote(lines, start) {
  let end = start;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const text = lines.slice(start, end).map((line) => line.replace(QUOTE, "")).join("\n");
  return { kind: "quote", text, end };
}

function parseList(lines, start) {
  const first = ITEM.exec(lines[start]);
  const indent = first[1].length;
  const isOrdered = /\d/.test(first[2]);
  const items = [];
  let end = start;
  while (end < lines.length) {
    const line = lines[end];
    const item = ITEM.exec(line);
    const isOfKind = item && /\d/.test(item[2]) === isOrdered;
    if (item && item[1].length <= indent + isOfKind && !RULE.test(line)) {
      if (!isOfKind) break;
      const text = item[3] ?? "";
      items.push([" ".repeat(line.length - text.length) + text]); // as far in as the lines that follow
    } else if (!line.trim()) {
      const next = lines[end + 1] ?? "";
      if (!/^\s/.test(next) && !ITEM.test(next)) break;
      items.at(-1).push("");
    } else if (/^\s/.test(line)) {
      items.at(-1).push(line);
    } else if (interruptsParagraph(line) || lines[end - 1].trim() === "") {
      break;
    } else {
      items.at(-1).push(line);
    }
    end += 1;
  }
  const firstNumber = isOrdered ? parseInt(first[2], 10) : 1;
  return { kind: "list", isOrdered, firstNumber, items: items.map(dedent), end: Math.max(end, start + 1) };
}

/* Join the lines of an item without their common indentation. Models indent the lines below an item by up
   to four spaces, whatever the width of its mark; below the mark of an inner item, only the width of its own
   mark counts. */
function dedent([first, ...rest]) {
  const most = ITEM.test(first) ? indentOf(first) : 4;
  const widths = rest.filter((line) => line.trim()).map(indentOf);
  const width = widths.reduce((least, each) => Math.min(least, each), most);
  return [first.trimStart(), ...rest.map((line) => unindent(line, width))].join("\n");
}

function indentOf(line) {
  return /^ */.exec(line)[0].length;
}

/* Remove up to `width` spaces from the beginning of a line. */
function unindent(line, width) {
  return line.slice(Math.min(width, indentOf(line)));
}

function isTable(lines, start) {
  const rule = lines[start + 1] ?? "";
  return ROW.test(lines[start]) && rule.includes("-") && rule.length <= MAX_MARKUP_LINE &&
    ROW_RULE.test(rule);
}

function parseTable(lines, start) {
  let end = start + 2;
  while (end < lines.length && ROW.test(lines[end])) end += 1;
  const [head, rule, ...rows] = lines.slice(start, end).map((line) =>
    line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|")));
  const aligns = rule.map((cell) => {
    if (cell.endsWith(":")) return cell.startsWith(":") ? "center" : "right";
    return cell.startsWith(":") ? "left" : "";
  });
  return { kind: "table", head, aligns, rows, end };
}

function parseParagraph(lines, start) {
  let end = start + 1;
  while (end < lines.length && lines[end].trim() && !interruptsParagraph(lines[end])) end += 1;
  return { kind: "paragraph", text: lines.slice(start, end).join("\n"), end };
}

function interruptsParagraph(line) {
  if (line.length > MAX_MARKUP_LINE) return false;
  return FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || RULE.test(line) ||
    /^ {0,3}([-*+]|1[.)])\s/.test(line);
}

/* Append the nodes of top-level blocks; each has the direction of its own script. */
export function appendBlocks(parent, blocks) {
  for (const block of blocks) parent.append(Object.assign(renderBlock(block), { dir: "auto" }));
}

/* Build one block. */
export function renderBlock(block, depth = 0) {
  switch (block.kind) {
    case "code": {
      const code = element("code", {}, block.text);
      const pre = element("pre", { tabIndex: 0 }, code);
      if (block.language) pre.dataset.language = block.language;
      const copy = element("button", { type: "button", className: "copy", ariaLabel: "Copy", title: "copy" });
      return element("div", { className: "code" }, pre, copy);
    }
    case "heading":
      // The page already has an h1.
      return element(`h${Math.min(block.level + 1, 6)}`, {}, renderInline(block.text));
    case "rule":
      return element("hr");
    case "quote":
      return element("blockquote", {}, renderNested(block.text, depth));
    case "list": {
      const list = element(block.isOrdered ? "ol" : "ul");
      if (block.isOrdered) list.start = block.firstNumber;
      for (const item of block.items) list.append(renderListItem(item, depth));
      return list;
    }
    case "table": {
      const aligned = (column) => (block.aligns[column] ? { align: block.aligns[column] } : {});
      const long = (cell) => (cell.length > LONG_CELL_CHARS ? { className: "long" } : {});
      const row = (name) => (cells) => element("tr", {}, cells.map((cell, column) =>
        element(name, { ...aligned(column), ...long(cell) }, renderInline(cell))));
      const table = element("table", {}, element("thead", {}, row("th")(block.head)),
        element("tbody", {}, block.rows.map(row("td"))));
      return element("div", { className: "wide", tabIndex: 0 }, table);
    }
    default:
      return element("p", {}, renderInline(block.text));
  }
}

function renderListItem(text, depth) {
  const parts = renderNested(text.replace(/^\[[ xX]\](?=\s)/, (box) => (box === "[ ]" ? "☐" : "☑")), depth);
  const isTight = !/\n\s*\n/.test(text) && parts[0]?.tagName === "P";
  return element("li", {}, isTight ? [...parts[0].childNodes, ...parts.slice(1)] : parts);
}

function renderNested(text, depth) {
  if (depth >= MAX_DEPTH) return renderInline(text);
  return parseBlocks(text).map((block) => renderBlock(block, depth + 1));
}

/* --- within a line ---------------------------------------------------------------------------- */

const INLINE = new RegExp(
  [
    "(?<escape>\\\\[!-/:-@[-`{-~])",
    "(?<ticks>`{1,20})(?<code>[^`]|[^`][\\s\\S]{0,5000}?[^`])\\k<ticks>(?!`)",
    "\\[(?<label>(?:[^\\[\\]\\\\]|\\\\.){1,500})\\]\\((?<target>(?:[^\\s()<>]|\\([^\\s()<>]{0,500}\\)){1,2000})\\)",
    "<(?<angle>(?:https?:\\/\\/|mailto:)[^\\s<>]{1,2000})>",
    "(?<bare>https?:\\/\\/[^\\s<>`]{1,2000})",
    "(?<strongMark>\\*\\*|(?<!\\w)__)(?=\\S)(?<strong>(?:(?!\\k<strongMark>)[\\s\\S]){1,5000}?\\S?)(?<=\\S)\\k<strongMark>",
    "(?<strikeMark>~~)(?=\\S)(?<strike>[^~]{1,2000})~~",
    "(?<softMark>\\*|(?<!\\w)_)(?=\\S)(?<soft>(?:(?!\\k<softMark>)[\\s\\S]){1,5000}?)(?<=\\S)\\k<softMark>(?!\\w)",
  ].join("|"),
  "g",
);

/* Build the children of inline text for `element`; a link contains no other links. */
export function renderInline(text, depth = 0, isInLink = false) {
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > end) nodes.push(withLineBreaks(text.slice(end, match.index)));
    nodes.push(renderMatch(match, depth, isInLink));
    end = match.index + match[0].length;
  }
  if (end < text.length) nodes.push(withLineBreaks(text.slice(end)));
  return nodes;
}

function renderMatch(match, depth, isInLink) {
  const groups = match.groups;
  const nested = (part, isLabel = isInLink) =>
    (depth < MAX_DEPTH ? renderInline(part, depth + 1, isLabel) : [part]);
  if (groups.escape) return [groups.escape[1]];
  if (groups.code !== undefined) {
    const code = groups.code;
    return [element("code", {}, /^ .*\S.* $/s.test(code) ? code.slice(1, -1) : code)];
  }
  if (isInLink && (groups.label ?? groups.angle ?? groups.bare)) return [match[0]];
  if (groups.label !== undefined) return link(groups.target, nested(groups.label, true), match[0]);
  if (groups.angle) return link(groups.angle, [groups.angle], match[0]);
  if (groups.bare) return bareLink(groups.bare);
  if (groups.strong !== undefined) return [element("strong", {}, nested(groups.strong))];
  if (groups.strike !== undefined) return [element("s", {}, nested(groups.strike))];
  return [element("em", {}, nested(groups.soft))];
}

/* A closing parenthesis at the end belongs to the URL only if the URL contains the opening one. */
function bareLink(text) {
  let url = text.replace(/[.,;:!?'"*_)\]]+$/, "");
  const unclosed = url.split("(").length - url.split(")").length;
  const closing = /^\)*/.exec(text.slice(url.length))[0].length;
  url = text.slice(0, url.length + Math.max(0, Math.min(unclosed, closing)));
  return [...link(url, [url], url), text.slice(url.length)];
}

const URLS = /(?:https?:\/\/|www\.)[^\s<>",;)\]]+/gi;

/* The host of a URL without `www.`; empty if the text is no URL. */
function siteOf(text) {
  try {
    return new URL(text.replace(/^www\./i, "https://")).hostname.replace(/^www\./, "");
  } catch {
    return "";
  }
}

/* Link only to these schemes; others could run code or reveal the URL of this page. A label that names
   another site is shown as its source, with the target and without a link. */
function link(target, label, source) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return [source];
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return [source];
  const anchor = element("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, label);
  const named = anchor.textContent === target ? [] : anchor.textContent.match(URLS) ?? [];
  return named.some((name) => siteOf(name) !== siteOf(url.href)) ? [source] : [anchor];
}

function withLineBreaks(text) {
  return text.split("\n").flatMap((line, index, lines) => {
    const isLast = index === lines.length - 1;
    const content = isLast ? line : line.trimEnd().replace(/\\$/, "");
    return index ? [document.createElement("br"), content] : [content];
  });
}

/* Show backticked parts of a line as code, the rest as it is. With an unpaired backtick the line is
   left unchanged. */
export function coded(text) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, index) => (index % 2 ? element("code", {}, part) : part));
}

/* Make an element; children are nodes, strings that become text, or lists of those. */
export function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  Object.assign(node, properties);
  // One by one: as arguments of one call, the parts of a long text could be too many.
  for (const child of children.flat(Infinity)) node.append(child);
  return node;
}
