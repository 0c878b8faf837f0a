/* The files of the next message: chosen, dropped or pasted, and uploaded at once. */

import { upload } from "./line.js";
import { element } from "./markdown.js";

export class Chosen {
  constructor(list, changed) {
    this.list = list;
    this.changed = changed;
    this.files = [];
  }

  /* The files that have been uploaded for the next message. */
  get ready() {
    return this.files.filter((one) => one.state === "ready");
  }

  /* Whether no file has been uploaded for the next message. */
  get isEmpty() {
    return !this.ready.length;
  }

  /* Whether an upload is running; the message has to wait for it. */
  get isBusy() {
    return this.files.some((one) => one.state === "sending");
  }

  add(files) {
    for (const file of files) {
      const one = { id: crypto.randomUUID(), name: file.name, type: file.type, size: file.size };
      this.files.push({ ...one, state: "sending", why: "" });
      void this.send(one.id, file);
    }
    this.show();
  }

  /* Take the uploaded files for a message; refused ones stay in the list with the reason. */
  take() {
    const ready = this.ready;
    this.files = this.files.filter((one) => one.state !== "ready");
    this.show();
    return ready.map(({ id, name, type, size }) => ({ id, name, type, size }));
  }

  async send(id, file) {
    let state = "ready";
    let why = "";
    try {
      await upload(id, file);
    } catch (error) {
      state = "refused";
      why = error.message;
    }
    this.files = this.files.map((one) => (one.id === id ? { ...one, state, why } : one));
    this.show();
  }

  drop(id) {
    this.files = this.files.filter((one) => one.id !== id);
    this.show();
  }

  show() {
    this.list.replaceChildren(...this.files.map((one) => {
      const away = element("button", { type: "button", ariaLabel: `Remove ${one.name}` }, "×");
      away.addEventListener("click", () => this.drop(one.id));
      const why = one.why ? `: ${one.why}` : "";
      const node = element("li", {}, element("span", {}, `${one.name}${why}`), away);
      node.dataset.state = one.state;
      return node;
    }));
    this.list.hidden = !this.files.length;
    this.changed();
  }
}
