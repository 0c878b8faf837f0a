/* Shows an approval card: the whole calls, why they need approval, the buttons, and the endings. */

import { element, coded } from "./markdown.js";

/* Fill in a sentence of the card, which comes in the reader's language. */
function filled(words, facts) {
  return words.replace(/\{(\w+)\}/g, (_, name) => facts[name]);
}

/* Draw a card into its list item; the buttons await `answer(approval, choice, reason, card)`. */
export function drawCard(node, item, answer) {
  const card = item.card;
  const open = card.calls.filter((call) => !call.ending);
  // A half-written reason must survive a redraw after another call of the card has ended.
  const written = new Map([...node.querySelectorAll("section")].map((one) =>
    [one.dataset.approval, one.querySelector("input")]));
  node.dataset.open = String(open.length);
  node.tabIndex = -1;
  const unfolded = new Set([...node.querySelectorAll("section:has(details[open])")].map((one) =>
    one.dataset.approval));
  const panel = element("article", {},
    ...card.calls.map((call) => section(call, card, item.id, answer, written.get(call.approval))));
  for (const one of panel.querySelectorAll("details")) {
    one.open = unfolded.has(one.closest("section").dataset.approval);
  }
  panel.lang = card.language;
  panel.setAttribute("aria-label", open.length ? card.words.is_open : card.words.has_ended);
  if (open.length) panel.prepend(head(card));
  if (open.length > 1) panel.append(all(open, card, item.id, answer));
  const focused = node.contains(document.activeElement) ? document.activeElement.id : "";
  node.replaceChildren(panel);
  if (focused) document.getElementById(focused)?.focus();
}

function head(card) {
  const left = element("time", { dateTime: card.deadline_at });
  left.dataset.deadline = card.deadline_at;
  left.dataset.left = card.words.left;
  left.dataset.over = card.words.time_is_up;
  const at = new Date(card.deadline_at).toLocaleString(card.language);
  left.title = filled(card.words.denied_at, { at });
  countDown(left);
  return element("header", {}, element("h2", {}, card.words.title),
    element("p", { className: "asked" }, `${askedBy(card)} · `, left));
}

function askedBy(card) {
  return filled(card.words.asked_by, { who: card.asked_by });
}

/* Update the countdown of every open deadline; called once a second. */
export function countDown(...lines) {
  const found = lines.length ? lines : document.querySelectorAll("time[data-deadline]");
  for (const line of found) {
    const seconds = Math.max(0, Math.round((Date.parse(line.dataset.deadline) - Date.now()) / 1000));
    const minutes = Math.floor(seconds / 60);
    const time = seconds >= 3600
      ? `${Math.floor(minutes / 60)} h ${minutes % 60} min`
      : `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
    line.textContent = seconds ? filled(line.dataset.left, { time }) : line.dataset.over;
    line.dataset.soon = String(seconds <= 60);
  }
}

function section(call, card, id, answer, written) {
  const summary = element("p", { className: "call" },
    element("span", { className: "number" }, String(call.number)),
    element("code", {}, call.tool), " ",
    element("span", { className: "summary" }, ...coded(call.summary)));
  const whole = [
    element("pre", { tabIndex: 0 }, element("code", {}, call.arguments)),
    element("p", { className: "because" }, element("span", {}, ...coded(call.why)),
      element("span", { className: "hash", title: card.words.hash }, call.hash8)),
    ...(call.scope ? [element("p", { className: "because" }, element("span", {}, ...coded(call.scope)))] : []),
  ];
  const made = call.ending
    ? element("section", {}, summary, ...ending(call.ending, card, whole))
    : element("section", {}, summary, ...whole, buttons(call, card, id, answer, written));
  made.dataset.approval = call.approval;
  // Read aloud with its buttons, which all calls of a card have alike.
  made.role = "group";
  made.ariaLabel = `${call.number} ${call.tool} ${call.summary}`;
  return made;
}

/* How a call ended, as a line that expands to the whole call. */
function ending(ended, card, whole) {
  const at = new Date(ended.at).toLocaleTimeString(card.language, { hour: "2-digit", minute: "2-digit" });
  const line = element("summary", { className: "ending" }, element("strong", {}, ended.said),
    ` · ${at} · ${askedBy(card)}`);
  line.dataset.how = ended.how;
  const folded = element("details", {}, line, ...whole);
  return ended.reason ? [folded, element("q", { className: "reason" }, ended.reason)] : [folded];
}

function buttons(call, card, id, answer, written) {
  const row = element("div", { className: "buttons" });
  const trouble = element("p", { className: "trouble", hidden: true });
  trouble.setAttribute("role", "alert");
  const press = (choice, reason = "") => pressed([row, because], trouble, () =>
    answer(call.approval, choice, reason, id));
  const because = reasonLine(call, card, press, written);
  const add = (choice, label, className) => {
    if (!card.choices.includes(choice)) return;
    const made = element("button", { type: "button", className, id: `${choice}-${call.approval}` }, label);
    made.dataset.choice = choice;
    made.addEventListener("click", () => press(choice));
    row.append(made);
  };
  add("once", card.words.once, "yes");
  add("for_a_time", card.words.for_a_time, "");
  add("deny", card.words.deny, "no");
  const more = element("button", { type: "button", className: "quiet" }, card.words.deny_with_reason);
  more.dataset.choice = "deny_with_reason";
  more.setAttribute("aria-expanded", String(!because.hidden));
  more.addEventListener("click", () => {
    because.hidden = !because.hidden;
    more.setAttribute("aria-expanded", String(!because.hidden));
    if (!because.hidden) because.querySelector("input").focus();
  });
  row.append(more);
  return element("div", { className: "answer" }, row, because, trouble);
}

function reasonLine(call, card, press, written) {
  const field = element("input", {
    type: "text", id: `reason-${call.approval}`, maxLength: 2000, value: written?.value ?? "",
    placeholder: card.words.reason_hint, autocomplete: "off",
  });
  const label = element("label", { className: "unseen", htmlFor: field.id }, card.words.reason);
  const made = element("form", { className: "because-not", hidden: written?.form?.hidden ?? true },
    label, field, element("button", { type: "submit", className: "no" }, card.words.deny));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    press("deny", field.value.trim());
  });
  return made;
}

function all(open, card, id, answer) {
  const trouble = element("p", { className: "trouble", hidden: true });
  const row = element("div", { className: "buttons" });
  const add = (label, className, choice) => {
    const made = element("button", { type: "button", className }, label);
    made.dataset.all = choice;
    made.addEventListener("click", () => pressed([row], trouble, async () => {
      for (const call of open) await answer(call.approval, choice, "", id);
    }));
    row.append(made);
  };
  add(card.words.all_once, "yes", "once");
  add(card.words.all_deny, "no", "deny");
  return element("footer", {}, row, trouble);
}

/* Disable the controls until the answer is stored; the redrawn card then removes them, so the card itself
   takes the focus. */
async function pressed(holders, trouble, act) {
  const controls = holders.flatMap((one) => [...one.querySelectorAll("button, input")]);
  trouble.closest("li").focus({ preventScroll: true });
  controls.forEach((one) => { one.disabled = true; });
  trouble.hidden = true;
  try {
    await act();
  } catch (error) {
    trouble.textContent = error.message;
    trouble.hidden = false;
    controls.forEach((one) => { one.disabled = false; });
  }
}
