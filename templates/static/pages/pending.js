// Pending verdicts: one key judges, and the next answer that waits comes by itself.
import { say } from "./app.js";
import { drawAll } from "./answers.js";
import { go, showClaims } from "./judge.js";

const waits = (seat) => seat.querySelector("form[data-judge]:not([data-judged])") !== null;

document.addEventListener("bench:said", (event) => {
  const here = event.target.closest("article.seat");
  const all = [...document.querySelectorAll("article.seat")];
  const at = all.indexOf(here);
  const next = [...all.slice(at + 1), ...all.slice(0, at)].find(waits);
  if (next) { go(next); return; }
  say("All of these are judged.");
  document.getElementById("more")?.focus();
});

document.addEventListener("bench:veil", (event) => {
  const address = new URL(location);
  if (event.detail) address.searchParams.set("blind", "1"); else address.searchParams.delete("blind");
  history.replaceState(history.state, "", address);
  for (const link of document.querySelectorAll("#more, [data-pass-over]")) {
    const to = new URL(link.href);
    if (event.detail) to.searchParams.set("blind", "1"); else to.searchParams.delete("blind");
    link.href = to;
  }
});

drawAll(document);
document.querySelectorAll("article.seat").forEach(showClaims);
const first = [...document.querySelectorAll("article.seat")].find(waits);
if (first && !location.hash) first.focus({ preventScroll: true });
