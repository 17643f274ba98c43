// Files and images that go with a prompt: chosen, dragged or pasted; texts fenced with their names, images as they are.
import { bytes, element } from "./bench.js";

const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const LARGE = 10_000_000;
const LANGUAGES = { py: "python", js: "javascript", ts: "typescript", rs: "rust", rb: "ruby", sh: "bash", yml: "yaml", md: "markdown", cs: "csharp", kt: "kotlin", h: "c", hpp: "cpp", cc: "cpp" };

export class Attachments {
  /** `changed` is called whenever there are others; `wrong` with a text that says what could not be taken. */
  constructor({ drop, input, list, area, changed, wrong }) {
    Object.assign(this, { list, changed, wrong, files: [] });
    input.addEventListener("change", () => { this.take(input.files); input.value = ""; });
    const stop = (event) => { if ([...event.dataTransfer.types].includes("Files")) { event.preventDefault(); drop.toggleAttribute("data-over", event.type === "dragover"); } };
    for (const place of [drop, area]) {
      place.addEventListener("dragover", stop);
      place.addEventListener("dragleave", stop);
      place.addEventListener("drop", (event) => { stop(event); if (event.dataTransfer.files.length) this.take(event.dataTransfer.files); });
    }
    area.addEventListener("paste", (event) => { if (event.clipboardData.files.length) { event.preventDefault(); this.take(event.clipboardData.files); } });
    list.addEventListener("click", (event) => {
      const button = event.target.closest("[data-remove]");
      if (!button) return;
      this.files.splice([...list.children].indexOf(button.closest("li")), 1);
      this.show();
      (list.querySelector("[data-remove]") ?? input).focus();
    });
  }

  async take(files) {
    this.wrong("");
    for (const file of [...files]) {
      const name = (file.name || "pasted").replace(/[\r\n`]/g, " ");
      if (file.size > LARGE) { this.wrong(`${name} has ${bytes(file.size)}; at most ${bytes(LARGE)} are taken.`); continue; }
      if (IMAGES.has(file.type)) { this.files.push({ name, size: file.size, kind: "image", data: await dataUrl(file) }); continue; }
      const text = await textOf(file);
      if (text === null) this.wrong(`${name} is neither text nor an image (PNG, JPEG, GIF, WebP) and was left out.`);
      else this.files.push({ name, size: file.size, kind: "text", text });
    }
    this.show();
  }

  show() {
    this.list.replaceChildren(...this.files.map((file) => element("li", { class: "chip" }, element("bdi", { class: "name" }, file.name), element("span", { class: "faint" }, bytes(file.size)),
      element("button", { type: "button", class: "ghost small icon-only", "data-remove": true, "aria-label": `Take ${file.name} away`, title: "Take away" }, "×"))));
    this.changed();
  }

  get texts() { return this.files.filter((file) => file.kind === "text"); }
  get images() { return this.files.filter((file) => file.kind === "image"); }
}

async function textOf(file) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\0") ? null : text;
  } catch { return null; }
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** Fences a text with its file's name, in more backticks than stand in it. */
export function fenced(name, text) {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  const ending = /\.([A-Za-z0-9]+)$/.exec(name)?.[1].toLowerCase() ?? "";
  return `File ${name}:\n${fence}${LANGUAGES[ending] ?? ending}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

/** The text as it is sent: the prompt, then each file. */
export function whole(prompt, texts) {
  return [prompt, ...texts.map((file) => fenced(file.name, file.text))].filter((part) => part.trim()).join("\n\n");
}

export function content(prompt, texts, images) {
  const text = whole(prompt, texts);
  if (!images.length) return text;
  return [...(text ? [{ type: "text", text }] : []), ...images.map((file) => ({ type: "image_url", image_url: { url: file.data } }))];
}
