// The page of an emulated platform: a phone for each person.

import { element } from "./elements.js";
import { drawMessage } from "./message.js";
import { renderRich } from "./rich.js";

const TOAST_MS = 6000;
const ACTION_SHOWN_MS = 5000;
const FAULT_SHOWN_MS = 1500;
const OFFLINE_DELAY_MS = 1500;
const phones = new Map();
let statusTimer = 0;

async function post(action) {
  const response = await fetch("do", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(action),
  });
  if (!response.ok) throw new Error((await response.json()).error);
}

function isPicture(file) {
  return file.type.startsWith("image/");
}

async function base64(file) {
  let binary = "";
  for (const byte of new Uint8Array(await file.arrayBuffer())) binary += String.fromCharCode(byte);
  return btoa(binary);
}

class Phone {
  constructor(person, room) {
    this.person = person;
    this.chat = person.chat;
    this.drawn = new Map();
    this.replyTo = null;
    this.seenToasts = new Set();
    this.root = document.getElementById("phone").content.firstElementChild.cloneNode(true);
    this.root.querySelector("h2").textContent = person.name;
    this.root.querySelector(".role").textContent = person.role;
    this.list = this.root.querySelector("ol");
    this.field = this.root.querySelector("textarea");
    this.field.setAttribute("aria-label", `Message as ${person.name}`);
    const tabs = this.root.querySelector("nav");
    tabs.setAttribute("aria-label", `Chats of ${person.name}`);
    const chats = [[person.chat, "with the bot"], [room, "Room"]].filter(([id]) => id);
    for (const [id, name] of chats) {
      const tab = element("button", "", name);
      tab.type = "button";
      tab.dataset.chat = id;
      tab.addEventListener("click", () => this.show(id));
      tabs.append(tab);
    }
    this.listen();
  }

  listen() {
    const form = this.root.querySelector("form");
    const file = this.root.querySelector("input");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.send();
    });
    this.root.querySelector(".attach").addEventListener("click", () => file.click());
    file.addEventListener("change", () => this.attach(file));
    this.root.querySelector(".answering button").addEventListener("click", () => this.reply(null));
  }

  show(chat) {
    this.chat = chat;
    this.drawn.clear();
    this.list.replaceChildren();
    this.reply(null);
    if (this.state) this.update(this.state);
  }

  async send() {
    const text = this.field.value;
    if (!text.trim()) return;
    const action = { do: "say", person: this.person.id, chat: this.chat, text };
    if (this.replyTo) action.reply_to = this.replyTo.id;
    const original = this.replyTo;
    this.field.value = "";
    this.reply(null);
    if (await this.act(action) || this.field.value) return;
    this.field.value = text;
    this.reply(original);
  }

  async attach(input) {
    const files = [...input.files];
    input.value = ""; // so that the same file can be chosen again
    const isAlbum = files.length > 1 && files.every(isPicture);
    const sender = { person: this.person.id, chat: this.chat };
    const contents = [];
    for (const file of files) {
      const kind = isPicture(file) ? "photo" : "document";
      contents.push({ kind, name: file.name, media_type: file.type, base64: await base64(file) });
    }
    const actions = isAlbum
      ? [{ do: "album", photos: contents }]
      : contents.map((content) => ({ do: "file", ...content }));
    let caption = this.field.value;
    for (const action of actions) {
      if (!await this.act({ ...sender, ...action, caption })) return;
      // Sent with the first file, even if the next one is refused; a text typed meanwhile stays.
      if (this.field.value === caption) this.field.value = "";
      caption = "";
    }
  }

  press(message, data) {
    return this.act({ do: "press", person: this.person.id, chat: message.chat, message: message.id, data });
  }

  // Makes the next message a reply; null for none.
  reply(message) {
    this.replyTo = message;
    const line = this.root.querySelector(".answering");
    line.hidden = message === null;
    if (message === null) return;
    line.firstElementChild.textContent = `answering ${message.name}: ${message.text}`;
    this.field.focus();
  }

  // Returns whether the emulator took it.
  async act(action) {
    try {
      await post(action);
      return true;
    } catch (error) {
      this.toast(error.message);
      return false;
    }
  }

  toast(text) {
    const line = this.root.querySelector(".toast");
    line.textContent = text;
    line.hidden = false;
    clearTimeout(this.toastTimer);
    this.toastTimer = setTimeout(() => { line.hidden = true; }, TOAST_MS);
  }

  update(state) {
    const isFirst = !this.state;
    this.state = state;
    for (const toast of state.toasts) {
      const isNew = toast.person === this.person.id && !this.seenToasts.has(toast.id);
      this.seenToasts.add(toast.id);
      if (isNew && toast.text && !isFirst) this.toast(toast.text);
    }
    for (const tab of this.root.querySelectorAll("nav button")) {
      tab.setAttribute("aria-pressed", String(tab.dataset.chat === String(this.chat)));
    }
    const chat = state.chats.find(({ id }) => id === this.chat);
    if (chat) this.draw(chat);
  }

  draw(chat) {
    const atEnd = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 80;
    const ids = new Set(chat.messages.map((message) => message.id));
    for (const [id, known] of this.drawn) {
      if (ids.has(id)) continue;
      known.item.remove();
      this.drawn.delete(id);
    }
    this.list.querySelectorAll(".temporary").forEach((item) => item.remove());
    let last = null;
    for (const message of chat.messages) {
      if (message.only && message.only !== this.person.id) continue;
      this.drawMessage(message);
      last = message;
    }
    if (chat.draft !== null) this.drawTemporary("draft", chat.draft || "Thinking…", chat.draft_rich);
    else if (chat.acting) this.drawChatAction(chat.acting);
    if (last?.asks && last.id !== this.lastForcedReply) {
      this.lastForcedReply = last.id;
      this.reply(last);
    }
    if (atEnd) this.list.scrollTop = this.list.scrollHeight;
  }

  drawMessage(message) {
    const json = JSON.stringify(message);
    const known = this.drawn.get(message.id);
    if (known?.json === json) return;
    const item = drawMessage(message, this);
    if (message.sender === this.person.id) item.classList.add("own");
    if (known) known.item.replaceWith(item);
    else this.list.append(item);
    this.drawn.set(message.id, { item, json });
  }

  drawChatAction(action) {
    const item = this.drawTemporary("acting", action === "typing" ? "typing…" : `${action}…`);
    setTimeout(() => item.remove(), ACTION_SHOWN_MS);
  }

  drawTemporary(kind, text, rich = null) {
    const item = element("li", `bot temporary ${kind}`);
    const bubble = element("div", "bubble");
    bubble.append(rich ? renderRich(rich) : element("div", "text", text));
    item.append(bubble);
    this.list.append(item);
    return item;
  }
}

function showStatus(state) {
  document.title = document.querySelector("h1").textContent = `${state.platform}, emulated`;
  const line = document.getElementById("bot");
  line.dataset.state = state.polled ? "online" : "offline";
  const { username } = state.bot;
  const name = username.includes("@") ? username : `@${username}`; // an e-mail address has one
  line.textContent = state.polled ? `${name} is here` : "no bot asks for messages";
  const counts = [`${state.calls} ${state.calls === 1 ? "call" : "calls"}`];
  if (state.refused) counts.push(`${state.refused} too many`);
  if (state.waiting) counts.push(`${state.waiting} updates wait`);
  document.getElementById("trouble").hidden = state.platform === "E-mail";
  document.getElementById("counts").textContent = counts.join(" · ");
}

function update(state) {
  for (const person of state.people) {
    if (phones.has(person.id)) continue;
    const phone = new Phone(person, state.room);
    phones.set(person.id, phone);
    document.getElementById("phones").append(phone.root);
  }
  showStatus(state);
  for (const phone of phones.values()) phone.update(state);
}

// Debounces "offline": a polling bot is disconnected for an instant between two polls.
function updateDebounced(state) {
  clearTimeout(statusTimer);
  if (state.polled || phones.size === 0) update(state);
  else {
    for (const phone of phones.values()) phone.update(state);
    statusTimer = setTimeout(() => showStatus(state), OFFLINE_DELAY_MS);
  }
}

const faultField = document.querySelector("#trouble select");
faultField.addEventListener("change", async () => {
  if (faultField.value) await post({ do: "fail", how: faultField.value });
  setTimeout(() => { faultField.value = ""; }, FAULT_SHOWN_MS);
});

const events = new EventSource("events");
events.addEventListener("message", (event) => updateDebounced(JSON.parse(event.data)));
events.addEventListener("error", () => {
  const line = document.getElementById("bot");
  line.dataset.state = "offline";
  line.textContent = "the emulator has ended";
});
