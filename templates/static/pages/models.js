// The list of models: choosing several, and saying how many a filter leaves.

import { say } from "./app.js";

function count(form) {
  const boxes = [...form.querySelectorAll("input[name=models]")];
  const chosen = boxes.filter((box) => box.checked).length;
  const most = Number(form.dataset.most);
  const label = form.querySelector("[data-chosen-count]");
  label.textContent = chosen ? `${chosen} chosen` : "Tick models to act on several at once.";
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
  const form = document.querySelector("[data-choose]");
  if (form) count(form);
}

document.addEventListener("change", (event) => {
  const form = event.target.closest("[data-choose]");
  if (!form) return;
  if (event.target.matches("[data-choose-all]")) for (const box of form.querySelectorAll("input[name=models]")) box.checked = event.target.checked;
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
