/* Shows an approval card: the complete calls, why they need approval, the buttons, and the endings. */

import { coded, element } from "./markdown.js";
import { pause } from "./stream.js";

const REDRAW_MS = 1000;

/* Fill in the placeholders of a sentence, which comes in the reader's language. */
function fillIn(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/* Draw a card into its list item; the buttons await `answer(approval, choice, reason, card)`. */
export function drawCard(node, item, answer) {
  const card = item.card;
  const openCalls = card.calls.filter((call) => !call.ending);
  const sections = [...node.querySelectorAll("section")];
  // A half-written reason must survive a redraw after another call of the card has ended.
  const oldInputs = new Map(sections.map((section) =>
    [section.dataset.approval, section.querySelector("input")]));
  node.dataset.open = String(openCalls.length);
  node.tabIndex = -1;
  const unfolded = new Set(sections.filter((section) => section.querySelector("details[open]"))
    .map((section) => section.dataset.approval));
  const article = element("article", {}, ...card.calls.map((call) =>
    callSection(call, card, item.id, answer, oldInputs.get(call.approval))));
  for (const details of article.querySelectorAll("details")) {
    details.open = unfolded.has(details.closest("section").dataset.approval);
  }
  article.lang = card.language;
  article.setAttribute("aria-label", openCalls.length ? card.words.is_open : card.words.has_ended);
  if (openCalls.length) article.prepend(cardHeader(card));
  if (openCalls.length > 1) article.append(cardFooter(openCalls, card, item.id, answer));
  const focusedId = node.contains(document.activeElement) ? document.activeElement.id : "";
  node.replaceChildren(article);
  if (focusedId) document.getElementById(focusedId)?.focus();
}

function cardHeader(card) {
  // A timer is no live region, so screen readers do not read the countdown aloud every second.
  const deadline = element("time", { dateTime: card.deadline_at, role: "timer" });
  deadline.dataset.deadline = card.deadline_at;
  deadline.dataset.left = card.words.left;
  deadline.dataset.expired = card.words.time_is_up;
  const at = new Date(card.deadline_at).toLocaleString(card.language);
  deadline.title = fillIn(card.words.denied_at, { at });
  countDown(deadline);
  return element("header", {}, element("h2", {}, card.words.title),
    element("p", { className: "asked" }, `${askedBy(card)} · `, deadline));
}

function askedBy(card) {
  return fillIn(card.words.asked_by, { who: card.asked_by });
}

/* Update the countdown of these deadlines, or of all open ones; called once a second. */
export function countDown(...deadlines) {
  const nodes = deadlines.length ? deadlines : document.querySelectorAll("time[data-deadline]");
  for (const node of nodes) {
    const seconds = Math.max(0, Math.round((Date.parse(node.dataset.deadline) - Date.now()) / 1000));
    const minutes = Math.floor(seconds / 60);
    const time = seconds >= 3600
      ? `${Math.floor(minutes / 60)} h ${minutes % 60} min`
      : `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
    node.textContent = seconds ? fillIn(node.dataset.left, { time }) : node.dataset.expired;
    node.dataset.soon = String(seconds <= 60);
  }
}

function callSection(call, card, cardId, answer, oldInput) {
  const summary = element("p", { className: "call" },
    element("span", { className: "number" }, String(call.number)),
    element("code", {}, call.tool), " ",
    element("span", { className: "summary" }, ...coded(call.summary)));
  const scope = call.scope
    ? [element("p", { className: "because" }, element("span", {}, ...coded(call.scope)))]
    : [];
  const particulars = [
    element("pre", { tabIndex: 0 }, element("code", {}, call.arguments)),
    element("p", { className: "because" }, element("span", {}, ...coded(call.why)),
      element("span", { className: "hash", title: card.words.hash }, call.hash8)),
    ...scope,
  ];
  const section = call.ending
    ? element("section", {}, summary, ...endingNodes(call, card, particulars))
    : element("section", {}, summary, ...particulars,
      answerControls(call, card, cardId, answer, oldInput));
  section.dataset.approval = call.approval;
  // Screen readers name the group with its buttons, whose labels are the same for all calls of a card.
  section.role = "group";
  section.ariaLabel = `${call.number} ${call.tool} ${call.summary}`;
  return section;
}

/* How a call ended, as a line that expands to the complete call. */
function endingNodes({ approval, ending }, card, particulars) {
  const at = new Date(ending.at).toLocaleTimeString(card.language, { hour: "2-digit", minute: "2-digit" });
  const id = `ending-${approval}`;
  const summary = element("summary", { className: "ending", id }, element("strong", {}, ending.said),
    ` · ${at} · ${askedBy(card)}`);
  summary.dataset.how = ending.how;
  const details = element("details", {}, summary, ...particulars);
  return ending.reason ? [details, element("q", { className: "reason" }, ending.reason)] : [details];
}

function answerControls(call, card, cardId, answer, oldInput) {
  const row = element("div", { className: "buttons" });
  const trouble = element("p", { className: "trouble", hidden: true });
  trouble.setAttribute("role", "alert");
  const press = (choice, reason = "") => submitAnswer([row, form], trouble, () =>
    answer(call.approval, choice, reason, cardId));
  const form = reasonForm(call, card, press, oldInput);
  const addButton = (choice, label, className) => {
    if (!card.choices.includes(choice)) return;
    const button = element("button", { type: "button", className, id: `${choice}-${call.approval}` }, label);
    button.dataset.choice = choice;
    button.addEventListener("click", () => press(choice));
    row.append(button);
  };
  addButton("once", card.words.once, "yes");
  addButton("for_a_time", card.words.for_a_time, "");
  addButton("deny", card.words.deny, "no");
  const id = `deny_with_reason-${call.approval}`;
  const toggle = element("button", { type: "button", className: "quiet", id }, card.words.deny_with_reason);
  toggle.dataset.choice = "deny_with_reason";
  toggle.setAttribute("aria-expanded", String(!form.hidden));
  toggle.addEventListener("click", () => {
    form.hidden = !form.hidden;
    toggle.setAttribute("aria-expanded", String(!form.hidden));
    if (!form.hidden) form.querySelector("input").focus();
  });
  row.append(toggle);
  return element("div", { className: "answer" }, row, form, trouble);
}

function reasonForm(call, card, press, oldInput) {
  const input = element("input", {
    type: "text", id: `reason-${call.approval}`, maxLength: 2000, value: oldInput?.value ?? "",
    placeholder: card.words.reason_hint, autocomplete: "off",
  });
  const id = `submit-${call.approval}`;
  const label = element("label", { className: "sr-only", htmlFor: input.id }, card.words.reason);
  const form = element("form", { className: "reason-form", hidden: oldInput?.form?.hidden ?? true },
    label, input, element("button", { type: "submit", className: "no", id }, card.words.deny));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    press("deny", input.value.trim());
  });
  return form;
}

/* The buttons that answer all open calls at once. */
function cardFooter(openCalls, card, cardId, answer) {
  const trouble = element("p", { className: "trouble", hidden: true });
  const row = element("div", { className: "buttons" });
  const addButton = (label, className, choice) => {
    const id = `all-${choice}-${cardId}`;
    const button = element("button", { type: "button", className, id }, label);
    button.dataset.all = choice;
    button.addEventListener("click", () => submitAnswer([row], trouble, async () => {
      for (const call of openCalls) await answer(call.approval, choice, "", cardId);
    }));
    row.append(button);
  };
  addButton(card.words.all_once, "yes", "once");
  addButton(card.words.all_deny, "no", "deny");
  return element("footer", {}, row, trouble);
}

/* Disable the controls until the answer is stored; the redrawn card then has none, so the card itself
   takes the focus. A refused answer redraws nothing: the controls are enabled after a moment. */
async function submitAnswer(containers, trouble, send) {
  const controls = containers.flatMap((container) => [...container.querySelectorAll("button, input")]);
  trouble.closest("li").focus({ preventScroll: true });
  controls.forEach((control) => { control.disabled = true; });
  trouble.hidden = true;
  try {
    await send();
    await pause(REDRAW_MS);
  } catch (error) {
    trouble.textContent = error.message;
    trouble.hidden = false;
  }
  controls.forEach((control) => { control.disabled = false; });
}
