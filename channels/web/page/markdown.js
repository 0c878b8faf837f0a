/* Renders Markdown: text in, DOM nodes out, built with textContent only, so text never becomes markup.

   `blocks` splits a text into top-level blocks; `block` builds one. A caller that keeps the nodes of
   unchanged blocks can redraw a growing text cheaply, and a selection in it survives. */

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(\S.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}>\s?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:\s+(.*))?$/;
const ROW = /\|/;
const ROW_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const DEEPEST = 8;
/* Some patterns take quadratic time in the length of a line; a longer line is shown as plain text. */
const LONGEST_MARKED = 1000;
/* A cell with more characters does not shrink to a word a line on a phone. */
const LONG_CELL = 40;

/* Split a text into blocks: `{kind, ...}`, each with its `source`. A heading's level is its depth below
   other headings: models begin with any, and skip some. */
export function blocks(text) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const found = [];
  const above = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const from = at;
    const made = oneBlock(lines, at);
    if (made.level) {
      while (above.at(-1) >= made.level) above.pop();
      made.level = above.push(made.level);
    }
    at = made.end;
    found.push({ ...made, source: lines.slice(from, at).join("\n") });
  }
  return found;
}

function oneBlock(lines, at) {
  const line = lines[at];
  if (line.length > LONGEST_MARKED) return paragraph(lines, at);
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return { kind: "heading", level: heading[1].length, text: heading[2].replace(/\s#+\s*$/, ""), end: at + 1 };
  if (RULE.test(line)) return { kind: "rule", end: at + 1 };
  if (QUOTE.test(line)) return quoted(lines, at);
  if (ITEM.test(line)) return listed(lines, at);
  if (isTable(lines, at)) return tabled(lines, at);
  return paragraph(lines, at);
}

function fenced(lines, at, fence) {
  const mark = fence[1];
  const closing = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}\\s*$`);
  let end = at + 1;
  while (end < lines.length && !closing.test(lines[end])) end += 1;
  const text = lines.slice(at + 1, end).join("\n");
  return { kind: "code", text, language: fence[2], end: Math.min(end + 1, lines.length) };
}

function quoted(lines, at) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const text = lines.slice(at, end).map((line) => line.replace(QUOTE, "")).join("\n");
  return { kind: "quote", text, end };
}

function listed(lines, at) {
  const first = ITEM.exec(lines[at]);
  const indent = first[1].length;
  const isOrdered = /\d/.test(first[2]);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const line = lines[end];
    const item = ITEM.exec(line);
    if (item && item[1].length <= indent && !RULE.test(line)) {
      if (/\d/.test(item[2]) !== isOrdered) break;
      items.push([item[3] ?? ""]);
    } else if (!line.trim()) {
      const next = lines[end + 1] ?? "";
      if (!/^\s/.test(next) && !ITEM.test(next)) break;
      items.at(-1).push("");
    } else if (/^\s/.test(line)) {
      items.at(-1).push(line);
    } else if (oneLiner(line) || lines[end - 1].trim() === "") {
      break;
    } else {
      items.at(-1).push(line);
    }
    end += 1;
  }
  const start = isOrdered ? parseInt(first[2], 10) : 1;
  return { kind: "list", isOrdered, start, items: items.map(dedented), end: Math.max(end, at + 1) };
}

function dedented(lines) {
  const rest = lines.slice(1);
  const widths = rest.filter((line) => line.trim()).map((line) => /^ */.exec(line)[0].length);
  const width = widths.length ? Math.min(...widths) : 0;
  return [lines[0], ...rest.map((line) => line.slice(Math.min(width, 4)))].join("\n");
}

function isTable(lines, at) {
  const rule = lines[at + 1] ?? "";
  return ROW.test(lines[at]) && rule.includes("-") && rule.length <= LONGEST_MARKED &&
    ROW_RULE.test(rule);
}

function tabled(lines, at) {
  let end = at + 2;
  while (end < lines.length && ROW.test(lines[end])) end += 1;
  const [head, rule, ...rows] = lines.slice(at, end).map((line) =>
    line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|")));
  const aligns = rule.map((cell) => {
    if (cell.endsWith(":")) return cell.startsWith(":") ? "center" : "right";
    return cell.startsWith(":") ? "left" : "";
  });
  return { kind: "table", head, aligns, rows, end };
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !oneLiner(lines[end])) end += 1;
  return { kind: "paragraph", text: lines.slice(at, end).join("\n"), end };
}

function oneLiner(line) {
  if (line.length > LONGEST_MARKED) return false;
  return FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || RULE.test(line) ||
    /^ {0,3}([-*+]|1[.)])\s/.test(line);
}

/* Build one block. */
export function block(made, depth = 0) {
  switch (made.kind) {
    case "code": {
      const code = element("code", {}, made.text);
      const figure = element("pre", { tabIndex: 0 }, code);
      if (made.language) figure.dataset.language = made.language;
      const copy = element("button", { type: "button", className: "copy", ariaLabel: "Copy", title: "copy" });
      return element("div", { className: "code" }, figure, copy);
    }
    case "heading":
      // The page already has an h1.
      return element(`h${Math.min(made.level + 1, 6)}`, {}, ...inline(made.text));
    case "rule":
      return element("hr");
    case "quote":
      return element("blockquote", {}, ...inside(made.text, depth));
    case "list": {
      const list = element(made.isOrdered ? "ol" : "ul");
      if (made.isOrdered) list.start = made.start;
      for (const item of made.items) list.append(listItem(item, depth));
      return list;
    }
    case "table": {
      const aligned = (column) => (made.aligns[column] ? { align: made.aligns[column] } : {});
      const wide = (cell) => (cell.length > LONG_CELL ? { className: "long" } : {});
      const row = (name) => (cells) => element("tr", {}, ...cells.map((cell, column) =>
        element(name, { ...aligned(column), ...wide(cell) }, ...inline(cell))));
      const table = element("table", {}, element("thead", {}, row("th")(made.head)),
        element("tbody", {}, ...made.rows.map(row("td"))));
      return element("div", { className: "wide", tabIndex: 0 }, table);
    }
    default:
      return element("p", {}, ...inline(made.text));
  }
}

function listItem(text, depth) {
  const parts = inside(text.replace(/^\[[ xX]\](?=\s)/, (box) => (box === "[ ]" ? "☐" : "☑")), depth);
  const isTight = !/\n\s*\n/.test(text) && parts[0]?.tagName === "P";
  return element("li", {}, ...(isTight ? [...parts[0].childNodes, ...parts.slice(1)] : parts));
}

function inside(text, depth) {
  if (depth >= DEEPEST) return inline(text);
  return blocks(text).map((made) => block(made, depth + 1));
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

/* Build the nodes of inline text; within a link there are no others. */
export function inline(text, depth = 0, isInLink = false) {
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > at) nodes.push(...broken(text.slice(at, found.index)));
    nodes.push(...matched(found, depth, isInLink));
    at = found.index + found[0].length;
  }
  if (at < text.length) nodes.push(...broken(text.slice(at)));
  return nodes;
}

function matched(found, depth, isInLink) {
  const groups = found.groups;
  const within = (part, isLabel = isInLink) => (depth < DEEPEST ? inline(part, depth + 1, isLabel) : [part]);
  if (groups.escape) return [groups.escape[1]];
  if (groups.code !== undefined) {
    const code = groups.code;
    return [element("code", {}, /^ .*\S.* $/s.test(code) ? code.slice(1, -1) : code)];
  }
  if (isInLink && (groups.label ?? groups.angle ?? groups.bare)) return [found[0]];
  if (groups.label !== undefined) return linked(groups.target, within(groups.label, true), found[0]);
  if (groups.angle) return linked(groups.angle, [groups.angle], found[0]);
  if (groups.bare) return bareLink(groups.bare);
  if (groups.strong !== undefined) return [element("strong", {}, ...within(groups.strong))];
  if (groups.strike !== undefined) return [element("s", {}, ...within(groups.strike))];
  return [element("em", {}, ...within(groups.soft))];
}

/* A closing bracket at the end belongs to the address only if the address opens it. */
function bareLink(text) {
  let trimmed = text.replace(/[.,;:!?'"*_)\]]+$/, "");
  const opened = trimmed.split("(").length - trimmed.split(")").length;
  const closing = /^\)*/.exec(text.slice(trimmed.length))[0].length;
  trimmed = text.slice(0, trimmed.length + Math.max(0, Math.min(opened, closing)));
  return [...linked(trimmed, [trimmed], trimmed), text.slice(trimmed.length)];
}

const ADDRESSES = /(?:https?:\/\/|www\.)[^\s<>",;)\]]+/gi;

/* The site that an address leads to; empty if it is none. */
function site(address) {
  try {
    return new URL(address.replace(/^www\./i, "https://")).hostname.replace(/^www\./, "");
  } catch {
    return "";
  }
}

/* Link only to these schemes; others could run code or reveal the address of this page. A label that
   names another site is shown with the target, and without a link. */
function linked(target, label, source) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return [source];
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return [source];
  const made = element("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, ...label);
  const named = made.textContent === target ? [] : made.textContent.match(ADDRESSES) ?? [];
  return named.some((one) => site(one) !== site(url.href)) ? [source] : [made];
}

function broken(text) {
  return text.split("\n").flatMap((line, index, lines) => {
    const isLast = index === lines.length - 1;
    const shown = isLast ? line : line.trimEnd().replace(/\\$/, "");
    return index ? [document.createElement("br"), shown] : [shown];
  });
}

/* Show backticked parts of a line as code, the rest as it is. With an unpaired backtick the line is
   left unchanged. */
export function coded(text) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, index) => (index % 2 ? element("code", {}, part) : part));
}

/* Make an element; children are nodes, or strings that become text. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}
