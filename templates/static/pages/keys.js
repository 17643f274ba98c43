// Single keys: what they do, their list, and the switch that turns them off (WCAG 2.1.4).
import { element, memory } from "./bench.js";

const bindings = [];
const NAMES = { ArrowRight: "→", ArrowLeft: "←", ArrowUp: "↑", ArrowDown: "↓" };
const TYPING = "input, textarea, select, [contenteditable], dialog";

export function bind(keys, label, run) {
  bindings.push({ keys, label, run });
}

const areOn = () => memory.get("keys") !== "off";

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest?.(TYPING) || !areOn()) return;
  if (event.key.startsWith("Arrow") && event.target.closest?.("pre, table, .table-wrap")) return; // these scroll by arrows
  const binding = bindings.find((one) => one.keys.includes(event.key));
  if (binding && binding.run(event) !== false) event.preventDefault();
});

function show() {
  const dialog = document.getElementById("shortcuts");
  if (!dialog || dialog.open) return;
  const list = dialog.querySelector("[data-keys]");
  list.replaceChildren(...bindings.flatMap(({ keys, label }) => {
    const term = element("dt");
    keys.forEach((key, i) => term.append(i ? " " : "", element("kbd", {}, NAMES[key] ?? key)));
    return [term, element("dd", {}, label)];
  }));
  dialog.querySelector("[data-keys-on]").checked = areOn();
  dialog.showModal();
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-keys-on]")) memory.set("keys", event.target.checked ? "on" : "off");
});
document.addEventListener("click", (event) => { if (event.target.closest("[data-shortcuts]")) show(); });
for (const button of document.querySelectorAll("[data-shortcuts]")) button.hidden = false;
bind(["?"], "This list", show);
