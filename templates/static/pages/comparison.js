// Marks what a comparison quotes in the answers, and leads from a claim to its words.
import { call } from "./bench.js";
import { confirmed, say } from "./app.js";
import { go } from "./judge.js";
import { mark, unmark } from "./marks.js";

export function markAll(within = document) {
  unmark(within, "mark[data-kind]");
  for (const link of within.querySelectorAll("[data-jump]")) {
    const answer = document.getElementById(link.dataset.jump)?.querySelector("[data-answer]");
    if (answer) link.benchMarks = mark(answer, link.dataset.quote, { kind: link.dataset.kind });
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-jump]");
  if (!link) return;
  event.preventDefault();
  go(document.getElementById(link.dataset.jump));
  for (const lit of document.querySelectorAll("mark[data-lit]")) delete lit.dataset.lit;
  const marks = (link.benchMarks ?? []).filter((made) => made.isConnected);
  for (const made of marks) made.dataset.lit = "";
  marks[0]?.scrollIntoView({ block: "center" });
});

/** Has a merger compare a panel's answers, and draws what it found. `address` is the panel's own page. */
export async function compare(panel, address, button) {
  const place = document.getElementById("comparison-place");
  if (place.firstElementChild && !(await confirmed("Compare once more? The comparison that is here is replaced, and the merger is paid again."))) return;
  button.disabled = true;
  const label = button.lastChild.data;
  button.lastChild.data = "A merger reads the answers…";
  try {
    await call("POST", `panels/${panel}/compare`, {});
    const part = new DOMParser().parseFromString(await (await fetch(address, { headers: { "HX-Request": "true" } })).text(), "text/html");
    place.replaceChildren(...part.getElementById("comparison-place").childNodes);
    markAll();
    place.querySelector("#comparison")?.focus();
    say("The claims are marked in the answers and listed below them.");
  } catch (error) {
    say(error.message, "bad");
  } finally {
    button.disabled = false;
    button.lastChild.data = label;
  }
}
