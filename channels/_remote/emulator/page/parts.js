// Helpers to make elements; text only goes into text nodes.

export function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

// Makes a link to a web page, without a referrer; other targets are left without a link.
export function link(made, target) {
  if (!/^https?:\/\//i.test(target)) return;
  made.href = target;
  made.rel = "noreferrer noopener";
  made.target = "_blank";
}
