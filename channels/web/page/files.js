/* The files of the next message: chosen, dropped or pasted, and uploaded at once. */

import { upload } from "./client.js";
import { element } from "./markdown.js";

export class NextFiles {
  constructor(list, textField, onChange) {
    this.list = list;
    this.textField = textField;
    this.onChange = onChange;
    this.files = [];
  }

  /* The files that have been uploaded. */
  get ready() {
    return this.files.filter((file) => file.state === "ready");
  }

  /* The files as the next load of the page shows them; it can't go on with an upload. */
  get stored() {
    const lost = { state: "refused", reason: "the page was left before it was uploaded; choose it again" };
    return this.files.map((file) => (file.state === "sending" ? { ...file, ...lost } : file));
  }

  /* Whether no file has been uploaded. */
  get isEmpty() {
    return !this.ready.length;
  }

  /* Whether an upload is running; the message has to wait for it. */
  get isUploading() {
    return this.files.some((file) => file.state === "sending");
  }

  add(files) {
    for (const file of files) {
      const id = crypto.randomUUID();
      const { name, type, size } = file;
      this.files.push({ id, name, type, size, state: "sending", reason: "" });
      void this.upload(id, file);
    }
    this.draw();
  }

  /* Take the uploaded files for a message; refused ones stay in the list with the reason. */
  take() {
    const ready = this.ready;
    this.files = this.files.filter((file) => file.state !== "ready");
    this.draw();
    return ready.map(({ id, name, type, size }) => ({ id, name, type, size }));
  }

  /* Take back the files of a message that was refused. */
  putBack(files) {
    this.files.unshift(...files.map((file) => ({ ...file, state: "ready", reason: "" })));
    this.draw();
  }

  async upload(id, content) {
    let state = "ready";
    let reason = "";
    try {
      await upload(id, content);
    } catch (error) {
      state = "refused";
      reason = error.message;
    }
    this.files = this.files.map((file) => (file.id === id ? { ...file, state, reason } : file));
    this.draw();
  }

  remove(id) {
    this.files = this.files.filter((file) => file.id !== id);
    this.draw();
  }

  draw() {
    const focused = [...this.list.querySelectorAll("button")].indexOf(document.activeElement);
    this.list.replaceChildren(...this.files.map((file) => {
      const button = element("button", { type: "button", ariaLabel: `Remove ${file.name}` }, "×");
      button.addEventListener("click", () => this.remove(file.id));
      const reason = file.reason ? `: ${file.reason}` : "";
      const item = element("li", {}, element("span", {}, `${file.name}${reason}`), button);
      item.dataset.state = file.state;
      return item;
    }));
    this.list.hidden = !this.files.length;
    if (focused >= 0) {
      const buttons = [...this.list.querySelectorAll("button")];
      (buttons[focused] ?? buttons.at(-1) ?? this.textField).focus();
    }
    this.onChange();
  }
}
