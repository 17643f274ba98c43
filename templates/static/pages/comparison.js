// Marks what a comparison quotes in the answers, and leads from a claim to its words.
import { call, element } from "./bench.js";
import { say } from "./app.js";
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

/** Asks who is to compare. Gives an alias, "" for the collection's own merger, null for nobody. */
async function reader(isAgain) {
  const dialog = document.getElementById("comparing");
  const select = dialog.querySelector("select");
  dialog.querySelector("[data-replaces]").hidden = !isAgain;
  dialog.returnValue = "";
  const closed = new Promise((over) => { dialog.addEventListener("close", over, { once: true }); });
  dialog.showModal();
  if (select.options.length === 1) {
    call("GET", "models?limit=500&status=active").then(
      ({ data }) => select.append(...data.map(({ alias }) => element("option", { value: alias }, alias))),
      () => { /* the collection's merger is still there to be chosen */ },
    );
  }
  await closed;
  return dialog.returnValue === "yes" ? select.value : null;
}

/** Has a merger compare a panel's answers, and draws what it found. `address` is the panel's own page. */
export async function compare(panel, address, button) {
  const place = document.getElementById("comparison-place");
  const by = await reader(place.firstElementChild !== null);
  if (by === null) return;
  button.disabled = true;
  const label = button.lastChild.data;
  button.lastChild.data = "A merger reads the answers…";
  try {
    await call("POST", `panels/${panel}/compare`, by ? { with: by } : {});
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
