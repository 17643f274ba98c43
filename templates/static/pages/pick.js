// Lists to tick models in: how many are ticked stands on the button, a list drawn anew keeps what was ticked before, and is told aloud.

let kept = new Map();

const boxes = (form) => [...form.querySelectorAll('input[name="pick"]:not([type="hidden"])')];

/** Says on the button how many are ticked, and takes it away from whoever ticked none. */
function count(form) {
  const ticked = boxes(form).filter((box) => box.checked).length + form.querySelectorAll('input[name="pick"][type="hidden"]').length;
  for (const place of form.querySelectorAll("[data-ticked]")) place.textContent = ticked ? `${ticked} model${ticked === 1 ? "" : "s"}` : "models";
  for (const button of form.querySelectorAll("[data-needs-tick]")) button.disabled = !ticked;
  const all = form.querySelector("[data-tick-all]");
  if (all) {
    const shown = boxes(form).filter((box) => !box.closest("tr")?.hidden);
    all.hidden = !shown.length;
    all.checked = shown.length > 0 && shown.every((box) => box.checked);
    all.indeterminate = !all.checked && shown.some((box) => box.checked);
  }
}

function forms(within = document) { return within.querySelectorAll("form[data-picks]"); }

document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-picks]");
  if (!form) return;
  if (event.target.matches("[data-tick-all]")) {
    for (const box of boxes(form)) if (!box.closest("tr")?.hidden) box.checked = event.target.checked;
  }
  count(form);
});

// A filter in the page itself: rows that do not fit are hidden, what is ticked stays ticked.
document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-filter]")) return;
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  const form = event.target.closest("form[data-picks]");
  let left = 0;
  for (const row of form.querySelectorAll("tr[data-name]")) {
    row.hidden = !words.every((word) => row.dataset.name.includes(word));
    if (!row.hidden) left += 1;
  }
  const told = document.getElementById("told");
  if (told) told.textContent = `${left} shown`;
  count(form);
});

// Enter in that filter must not send the form.
document.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.matches("[data-filter]")) event.preventDefault(); });

// What was ticked and is in the new list no more goes on as a hidden field: a filter is no change of mind.
document.addEventListener("htmx:beforeSwap", (event) => {
  for (const form of forms()) {
    for (const box of form.querySelectorAll('input[name="pick"]')) {
      if (box.type === "hidden" || box.checked) kept.set(box.value, true); else kept.delete(box.value);
    }
  }
});
document.addEventListener("htmx:afterSwap", () => {
  for (const form of forms()) {
    const there = new Set();
    for (const box of boxes(form)) {
      there.add(box.value);
      if (kept.has(box.value)) box.checked = true;
    }
    for (const value of kept.keys()) {
      if (there.has(value) || form.querySelector(`input[type="hidden"][value="${CSS.escape(value)}"]`)) continue;
      const field = document.createElement("input");
      field.type = "hidden";
      field.name = "pick";
      field.value = value;
      form.append(field);
    }
    count(form);
  }
  const line = document.getElementById("told");
  const said = document.querySelector("#list [data-told]");
  if (line && said) line.textContent = said.dataset.told;
});

for (const form of forms()) count(form);
