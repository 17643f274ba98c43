// One run while it goes: its events say that something is new, and the page's own part is read anew, once a second at most.

import { say } from "./app.js";

const EVERY_MS = 1000, FIRST_PAGE = 25;
const KINDS = ["RunQueued", "PhaseStarted", "PhaseCompleted", "MaterializeTaskResult", "RunHalting", "RunFinished", "LimitWarning", "TaskRetried", "TaskErrored", "CostUpdated", "Log"];
const LAST = "RunFinished"; // of every run, however it ended
let source = null, timer = 0, lookedAt = 0;

const part = () => document.getElementById("live");

/** Reads the part that changes, soon. */
function soon() {
  if (timer) return;
  timer = setTimeout(look, Math.max(0, EVERY_MS - (performance.now() - lookedAt)));
}

async function look() {
  timer = 0;
  lookedAt = performance.now();
  const here = part();
  let fresh = null;
  try {
    const answer = await fetch(location.pathname, { headers: { "HX-Request": "true" } });
    if (answer.ok) fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
  } catch { /* the server may be starting anew: the next event tells */ }
  if (!fresh) return;
  const open = here.querySelector("#log")?.open, read = here.querySelector("#log-list")?.scrollTop, focused = document.activeElement?.id;
  if (fresh.querySelector("#log")) fresh.querySelector("#log").open = open;
  here.replaceWith(fresh);
  if (read) fresh.querySelector("#log-list").scrollTop = read;
  freshTasks();
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  if (!("events" in fresh.dataset)) over(fresh);
}

/** While the first page of tasks is not full, the list grows with the run, as it is filtered. */
function freshTasks() {
  const list = document.getElementById("task-list"), form = document.querySelector("#tasks form");
  if (list && form && list.querySelectorAll("tbody tr").length < FIRST_PAGE && !list.contains(document.activeElement)) window.htmx?.trigger(form, "input");
}

/** The run has ended: the rest of the page, which does not change while it goes, is drawn anew. */
function over(fresh) {
  source?.close();
  source = null;
  document.getElementById("told").textContent = fresh.dataset.told;
  say(`The run is ${fresh.dataset.status}.`, fresh.dataset.status === "ok" ? "good" : "warn");
  if (!document.activeElement || document.activeElement === document.body) setTimeout(() => location.reload(), 1500);
}

function follow() {
  const here = part();
  if (!here || !("events" in here.dataset)) return;
  source = new EventSource(here.dataset.events);
  for (const kind of KINDS) source.addEventListener(kind, () => { soon(); if (kind === LAST) source?.close(); });
  source.addEventListener("error", () => { if (source?.readyState === EventSource.CLOSED) { setTimeout(follow, 5000); soon(); } });
}

follow();
window.addEventListener("pagehide", () => source?.close());
