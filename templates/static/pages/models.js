// Lists: choosing several rows, and saying how many a filter leaves. A form's data-choose names its boxes, data-idle says what stands there while none is ticked.

import { say } from "./app.js";

const boxesOf = (form) => [...form.querySelectorAll(`input[name=${form.dataset.choose || "models"}]:not(:disabled)`)];

function count(form) {
  const boxes = boxesOf(form);
  const chosen = boxes.filter((box) => box.checked).length;
  const most = Number(form.dataset.most);
  const label = form.querySelector("[data-chosen-count]");
  if (!label) return;
  label.textContent = chosen ? `${chosen} chosen` : form.dataset.idle ?? "Tick models to act on several at once.";
  for (const button of form.querySelectorAll("[data-needs]")) {
    const needs = Number(button.dataset.needs);
    button.disabled = chosen < needs || (needs === 2 && chosen > most);
    button.title = needs === 2 ? `Choose 2 to ${most}` : "";
  }
  const all = form.querySelector("[data-choose-all]");
  all.hidden = false;
  all.checked = chosen === boxes.length;
  all.indeterminate = chosen > 0 && chosen < boxes.length;
}

function ready() {
  for (const form of document.querySelectorAll("[data-choose]")) count(form);
}

document.addEventListener("change", (event) => {
  const form = event.target.closest("[data-choose]");
  if (!form) return;
  if (event.target.matches("[data-choose-all]")) for (const box of boxesOf(form)) box.checked = event.target.checked;
  count(form);
});

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "list") return;
  ready();
  document.getElementById("told").textContent = event.target.querySelector("[data-told]")?.dataset.told ?? "";
});
document.addEventListener("htmx:sendError", () => say("The server did not answer. Try again.", "bad"));
window.addEventListener("pageshow", ready);
ready();
