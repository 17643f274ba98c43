// Verdicts on the spot: useful or not, claims taken from the answer's own words, a note; by mouse or by keys, with names veiled if wished.
import { call } from "./bench.js";
import { say } from "./app.js";
import { bind } from "./keys.js";
import { mark, step, unmark } from "./marks.js";

const SEAT = "article.seat";
let last = null;

// ---- which seat

export const seatsOf = (within = document) => [...within.querySelectorAll(SEAT)].filter((seat) => seat.offsetParent !== null);

export function current() {
  const seat = document.activeElement?.closest(SEAT) ?? (last?.isConnected ? last : null);
  return seat ?? seatsOf()[0] ?? null;
}

export function go(seat) {
  if (!seat) return;
  seat.focus({ preventScroll: true });
  seat.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function become(seat) {
  if (seat === last) return;
  last?.removeAttribute("data-current");
  last = seat;
  seat.dataset.current = "";
}

document.addEventListener("focusin", (event) => { const seat = event.target.closest?.(SEAT); if (seat) become(seat); });

function move(by) {
  const all = seatsOf();
  const at = all.indexOf(current());
  const isHere = document.activeElement?.closest(SEAT);
  go(all[Math.min(all.length - 1, Math.max(0, isHere ? at + by : Math.max(at, 0)))]);
}

// ---- keeping

const lines = (area) => area.value.split("\n").map((line) => line.trim()).filter(Boolean);
const pressed = (form) => form.querySelector('[aria-pressed="true"]')?.value ?? "";

/** Keeps what a seat's form says now. While one is on its way the next waits, and only the newest is sent then. */
export async function keep(form) {
  if (form.benchBusy) { form.benchAgain = true; return; }
  form.benchBusy = true;
  const told = form.querySelector(".verdict-said");
  const useful = pressed(form);
  const [real, wrong] = [lines(form.elements.real), lines(form.elements.false)];
  try {
    await call("POST", "verdict", { call: form.elements.call.value, useful: useful === "" ? null : useful === "true", note: form.elements.note.value, real, false: wrong });
    const parts = [useful === "true" ? "useful" : useful === "false" ? "not useful" : "", real.length ? `${real.length} real` : "", wrong.length ? `${wrong.length} false` : ""];
    told.textContent = `Kept: ${parts.filter(Boolean).join(", ")}.`;
    told.dataset.tone = "good";
    form.dataset.judged = "";
    form.querySelector(".wrong")?.remove();
    showClaims(form.closest(SEAT));
    form.dispatchEvent(new CustomEvent("bench:judged", { bubbles: true }));
  } catch (error) {
    told.textContent = error.message;
    told.dataset.tone = "bad";
  } finally {
    form.benchBusy = false;
    if (form.benchAgain) { form.benchAgain = false; keep(form); }
  }
}

export function judge(seat, useful) {
  const form = seat?.querySelector("form[data-judge]");
  if (!form || form.hidden) return false;
  for (const button of form.querySelectorAll("[aria-pressed]")) button.setAttribute("aria-pressed", String(button.value === useful));
  form.querySelector("[data-keep]").value = useful;
  form.dispatchEvent(new CustomEvent("bench:said", { bubbles: true }));
  keep(form);
  return true;
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form[data-judge]")) return;
  event.preventDefault();
  if (event.submitter?.matches("[aria-pressed]")) judge(form.closest(SEAT), event.submitter.value);
  else keep(form);
});

document.addEventListener("keydown", (event) => { // a note is kept without leaving it
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.closest("form[data-judge]")) { event.preventDefault(); keep(event.target.form); }
});

// ---- claims

function selected() {
  const selection = getSelection();
  if (!selection?.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  const within = range.commonAncestorContainer.nodeType === Node.TEXT_NODE ? range.commonAncestorContainer.parentElement : range.commonAncestorContainer;
  const answer = within.closest("[data-answer]");
  const form = answer?.closest(SEAT)?.querySelector("form[data-judge]");
  const text = selection.toString().replace(/\s+/g, " ").trim();
  return form && !form.hidden && text ? { answer, form, text, range } : null;
}

export function claim(kind) {
  const said = selected();
  if (!said) { say("Select some of an answer's text first, or step through its sentences with . and ,", "plain"); return; }
  const { form, text } = said;
  const other = form.elements[kind === "real" ? "false" : "real"];
  other.value = lines(other).filter((line) => line !== text).join("\n");
  const area = form.elements[kind];
  if (!lines(area).includes(text)) area.value = [...lines(area), text].join("\n");
  form.querySelector("details").open = true;
  getSelection().collapseToEnd();
  bar.hidden = true;
  keep(form);
}

/** Shows in the answer which of its words were judged. */
export function showClaims(seat) {
  const answer = seat?.querySelector("[data-answer]");
  const form = seat?.querySelector("form[data-judge]");
  if (!answer || !form) return;
  unmark(answer, "mark[data-verdict]");
  for (const kind of ["real", "false"]) for (const line of lines(form.elements[kind])) mark(answer, line, { verdict: kind });
}

const bar = document.createElement("div");
bar.className = "claim-bar";
bar.hidden = true;
bar.setAttribute("role", "toolbar");
bar.setAttribute("aria-label", "Judge the selected text");
for (const [kind, label] of [["real", "Real"], ["false", "False"]]) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small";
  button.dataset.claim = kind;
  button.textContent = label;
  const key = document.createElement("kbd");
  key.textContent = kind === "real" ? "r" : "f";
  button.append(" ", key);
  bar.append(button);
}
bar.addEventListener("mousedown", (event) => event.preventDefault()); // the selection stays
bar.addEventListener("click", (event) => { const button = event.target.closest("[data-claim]"); if (button) claim(button.dataset.claim); });

document.addEventListener("selectionchange", () => {
  const said = selected();
  if (!said) { if (!bar.contains(document.activeElement)) bar.hidden = true; return; }
  if (bar.previousElementSibling !== said.answer) said.answer.after(bar); // next in the order of Tab
  const box = said.range.getBoundingClientRect();
  bar.hidden = false;
  bar.style.top = `${Math.max(8, Math.min(innerHeight - 50, box.bottom + 6))}px`;
  bar.style.left = `${Math.max(8, Math.min(innerWidth - bar.offsetWidth - 8, box.left))}px`;
  become(said.answer.closest(SEAT));
});
document.addEventListener("scroll", () => { bar.hidden = true; }, { capture: true, passive: true });

// ---- who said it

const blindable = () => document.querySelectorAll("[data-blindable]");
const turned = (seat) => [...seat.dataset.call].reverse().join("");
export const isVeiled = () => [...blindable()].some((part) => "blind" in part.dataset);

/** Puts seats into an order that tells nothing: their ids' last characters are drawn by lot. */
export function shuffle(within) {
  for (const seats of within.querySelectorAll(".seats")) {
    const all = [...seats.querySelectorAll(SEAT)];
    const key = (seat) => (seat.dataset.kind === "merger" ? "!" : "") + turned(seat);
    all.sort((one, other) => (key(one) < key(other) ? -1 : 1));
    const focused = document.activeElement;
    seats.append(...all);
    if (focused?.closest?.(".seats") === seats) focused.focus({ preventScroll: true });
  }
}

export function veil(on) {
  for (const part of blindable()) {
    if (on) { shuffle(part); part.dataset.blind = ""; } else delete part.dataset.blind;
  }
  for (const button of document.querySelectorAll("[data-blind-switch]")) button.setAttribute("aria-pressed", String(on));
}

function toggle() {
  const on = !isVeiled();
  veil(on);
  document.dispatchEvent(new CustomEvent("bench:veil", { detail: on }));
  say(on ? "Who said what is hidden until all is judged." : "Names are shown.", "plain");
}

document.addEventListener("click", (event) => { if (event.target.closest("[data-blind-switch]")) toggle(); });
document.addEventListener("bench:judged", (event) => unveil(event.target.closest("[data-blindable]")));

/** Shows the names once all that can be judged is judged. */
export function unveil(part) {
  if (!part || !("blind" in part.dataset) || part.hasAttribute("data-asking") || part.querySelector("form[data-judge]:not([data-judged], [hidden])")) return;
  delete part.dataset.blind;
  for (const button of document.querySelectorAll("[data-blind-switch]")) button.setAttribute("aria-pressed", String(isVeiled()));
  say("All is judged: names are shown.", "plain");
}

for (const button of document.querySelectorAll("[data-blind-switch]")) button.hidden = false;

// ---- keys

bind(["j", "ArrowRight"], "Next answer", () => move(1));
bind(["k", "ArrowLeft"], "Answer before", () => move(-1));
bind(["u"], "Useful", () => judge(current(), "true"));
bind(["n"], "Not useful", () => judge(current(), "false"));
bind([".", ">"], "Select the next sentence; > adds it", (event) => { const answer = current()?.querySelector("[data-answer]"); return answer ? step(answer, 1, event.key === ">") : false; });
bind([",", "<"], "Select the sentence before; < adds it", (event) => { const answer = current()?.querySelector("[data-answer]"); return answer ? step(answer, -1, event.key === "<") : false; });
bind(["r"], "The selected text is real", () => claim("real"));
bind(["f"], "The selected text is false", () => claim("false"));
bind(["m"], "Write a note; Ctrl Enter keeps it", () => {
  const form = current()?.querySelector("form[data-judge]:not([hidden])");
  if (!form) return false;
  form.querySelector("details").open = true;
  form.elements.note.focus();
  return true;
});
bind(["c"], "Copy the answer", () => { const button = current()?.querySelector("[data-copy-answer]:not([hidden])"); button?.click(); return Boolean(button); });
if (document.querySelector("[data-blind-switch]")) bind(["b"], "Hide or show who said what", toggle);
