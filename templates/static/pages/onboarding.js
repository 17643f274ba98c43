// A batch while it goes on: what is open stays open when the part is drawn anew, and it is told aloud now and then, not every two seconds.

const QUIET_MS = 10_000;
let open = new Set();
let told = "";
let toldAt = 0;

const opened = () => new Set([...document.querySelectorAll("#batch details[open]")].map((details) => details.dataset.of));

document.addEventListener("htmx:beforeSwap", () => { open = opened(); });
document.addEventListener("htmx:afterSwap", () => {
  for (const details of document.querySelectorAll("#batch details")) if (open.has(details.dataset.of)) details.open = true;
  const batch = document.getElementById("batch");
  const line = document.getElementById("told");
  if (!batch || !line) return;
  const isOver = "over" in batch.dataset;
  if (batch.dataset.told !== told && (isOver || performance.now() - toldAt > QUIET_MS)) {
    told = batch.dataset.told;
    toldAt = performance.now();
    line.textContent = isOver ? `Finished: ${told}` : told;
  }
});
