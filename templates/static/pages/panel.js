// One panel's page: draws its answers, follows it while it runs, stops it, judges and compares.
import { call } from "./bench.js";
import { say } from "./app.js";
import { drawAll } from "./answers.js";
import { compare, markAll } from "./comparison.js";
import { showClaims } from "./judge.js";
import { bind } from "./keys.js";

const EVERY_MS = 1200;
const panel = document.getElementById("panel");
const compareButton = document.querySelector("[data-compare]");

function dress() {
  drawAll(document);
  for (const seat of document.querySelectorAll("article.seat")) if (!seat.querySelector("mark[data-verdict]")) showClaims(seat);
  markAll();
  if (compareButton) compareButton.hidden = document.querySelectorAll(".seat:not([data-kind=merger]) [data-answer]").length < 2 || "underWay" in panel.dataset;
}

async function look() {
  let part = null;
  try {
    const answer = await fetch(location.pathname + location.search, { headers: { "HX-Request": "true" } });
    if (answer.ok) part = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("panel");
  } catch { /* the server may be starting anew: the next look tells */ }
  if (part) take(part);
  if ("underWay" in panel.dataset) setTimeout(look, EVERY_MS);
}

/** Takes over what changed and leaves alone what somebody may be reading or writing in. */
function take(part) {
  const seats = document.getElementById("seats");
  for (const fresh of [...part.querySelectorAll("article.seat")]) {
    const here = document.getElementById(fresh.id);
    if (!here) seats.append(fresh);
    else if (here.dataset.status !== fresh.dataset.status) {
      const focused = here.contains(document.activeElement);
      here.replaceWith(fresh);
      if (focused) fresh.focus({ preventScroll: true });
    }
  }
  if (!("underWay" in part.dataset)) {
    delete panel.dataset.underWay;
    document.getElementById("under-way")?.remove();
    for (const id of ["panel-head", "calls"]) document.getElementById(id).replaceWith(part.querySelector(`#${id}`));
    for (const later of document.querySelectorAll("[data-when-over]")) later.hidden = false;
    say("The panel is over.", "plain");
  }
  dress();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-stop-panel], [data-stop-seat], [data-compare]");
  if (!button) return;
  if (button.matches("[data-compare]")) { compare(panel.dataset.panel, location.pathname, button); return; }
  button.disabled = true;
  const path = button.matches("[data-stop-panel]") ? `panels/${panel.dataset.panel}/cancel` : `calls/${button.closest(".seat").dataset.call}/cancel`;
  try { await call("POST", path, {}); } catch (error) { if (error.code !== "already_over") { say(error.message, "bad"); button.disabled = false; } }
});

document.addEventListener("bench:veil", (event) => {
  const address = new URL(location);
  if (event.detail) address.searchParams.set("blind", "1"); else address.searchParams.delete("blind");
  history.replaceState(history.state, "", address);
});

for (const button of document.querySelectorAll("[data-stop-panel], [data-stop-seat]")) button.hidden = false;
bind(["s"], "Stop this answer, while it is written", () => { const button = document.activeElement?.closest(".seat")?.querySelector("[data-stop-seat]:not([hidden])"); button?.click(); return Boolean(button); });
dress();
if ("underWay" in panel.dataset) setTimeout(look, EVERY_MS);
