// What the admin's own pages do in the browser: copy a command, narrow a long list, tick all that is shown. All of them work without it, only less quickly.

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy).textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers give the clipboard to secure pages only; over plain http the text is selected instead.
    window.getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    button.textContent = "Selected";
    return;
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

document.addEventListener("input", (event) => {
  const field = event.target.closest("[data-narrows]");
  if (!field) return;
  const wanted = field.value.trim().toLowerCase();
  for (const row of document.querySelectorAll(`#${field.dataset.narrows} tbody tr`)) {
    row.hidden = wanted !== "" && !row.dataset.name.toLowerCase().includes(wanted);
  }
});

document.addEventListener("change", (event) => {
  const box = event.target.closest("[data-ticks]");
  if (!box) return;
  for (const other of document.querySelectorAll(`#${box.dataset.ticks} tbody tr:not([hidden], .is-taken) input[type=checkbox]:not(:disabled)`)) {
    other.checked = box.checked;
  }
});
