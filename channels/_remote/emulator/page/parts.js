// What is drawn with: elements whose texts are only ever text nodes.

export function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

// Opens only where it may: another page, which is told nothing of this one.
export function link(made, target) {
  if (!/^https?:\/\//i.test(target)) return;
  made.href = target;
  made.rel = "noreferrer noopener";
  made.target = "_blank";
}
