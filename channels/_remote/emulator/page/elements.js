// Makes elements; text only goes into text nodes.

export function element(tag, className = "", text = "") {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text) node.textContent = text;
  return node;
}

// Turns an anchor into a link to a web page, without a referrer; other targets get no link.
export function link(anchor, target) {
  if (!/^https?:\/\//i.test(target)) return;
  anchor.href = target;
  anchor.rel = "noreferrer noopener";
  anchor.target = "_blank";
}
