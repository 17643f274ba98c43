// Connect: puts a typed key into the lines to copy, and makes the requests that a program would make, showing what came back.

import { call, usd } from "./bench.js";

const field = document.getElementById("c-key");
const setup = document.getElementById("setup");
const originals = new WeakMap();
const PATIENCE_MS = 900_000;

/** The key as it may stand in a command: keys of this server hold nothing that a shell or a file would read otherwise. */
const typed = () => (/^[\w.\-]+$/.test(field?.value.trim() ?? "") ? field.value.trim() : "");

function fillIn() {
  const none = setup?.querySelector("[data-no-key]")?.dataset.noKey;
  if (!none) return;
  for (const code of setup.querySelectorAll("pre code")) {
    if (!originals.has(code)) originals.set(code, code.textContent);
    code.textContent = originals.get(code).replaceAll(none, typed() || none);
  }
}

/** What an answer says, whichever format it is in: its text, or what went wrong. */
function told(body) {
  const parts = [
    body?.error?.message, typeof body?.error === "string" ? body.error : undefined, body?.detail,
    body?.choices?.[0]?.message?.content,
    Array.isArray(body?.content) ? body.content.map((part) => part.text ?? "").join("") : undefined,
    body?.output?.flatMap?.((item) => item.content ?? []).map((part) => part.text ?? "").join(""),
    body?.candidates?.[0]?.content?.parts?.map((part) => part.text ?? "").join(""),
    body?.message?.content,
    body?.result?.tools && `Tools: ${body.result.tools.map((tool) => tool.name).join(", ")}.`,
    Array.isArray(body?.data) ? `${body.data.length} names can be asked for.` : undefined,
  ];
  return parts.find((part) => typeof part === "string" && part.trim()) ?? "";
}

/** An MCP server may answer as an event stream: its last data line is the answer. */
function read(text) {
  const lines = text.split("\n").filter((line) => line.startsWith("data:"));
  try { return JSON.parse(lines.length ? lines.at(-1).slice(5) : text); } catch { return null; }
}

async function make(one, plan) {
  const headers = { accept: "application/json, text/event-stream" };
  const key = field?.value.trim();
  if (key) headers[one.header] = one.before + key;
  if (one.body) headers["content-type"] = "application/json";
  const began = performance.now();
  const answer = await fetch(plan.base + one.path, {
    method: one.method, headers, body: one.body ? JSON.stringify(one.body) : undefined, credentials: "omit", cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const text = await answer.text();
  return { status: answer.status, ok: answer.ok, body: read(text), text, model: answer.headers.get("x-bench-model"), panel: answer.headers.get("x-bench-panel"), seconds: (performance.now() - began) / 1000 };
}

function element(name, text = "", properties = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  return Object.assign(made, properties);
}

function show(line, one, came) {
  line.replaceChildren();
  const head = element("div", "", { className: "row" });
  const mark = element("span", came.status ? String(came.status) : "no answer", { className: "badge" });
  mark.dataset.tone = came.ok ? "good" : "bad";
  head.append(mark, element("code", `${one.method} ${one.path}`), element("span", `${came.seconds.toFixed(1)} s`, { className: "faint small" }));
  line.append(head);
  const said = told(came.body) || came.failure || "";
  if (said) line.append(element("p", said.slice(0, 4000), { className: "text" }));
  if (came.model) line.append(element("p", `Answered by ${decodeURIComponent(came.model)}.`, { className: "soft small" }));
  if (came.status === 401) line.append(element("p", "Type a key above, or make one under Keys.", { className: "soft small" }));
  if (came.text) {
    const details = element("details");
    details.append(element("summary", "The whole answer"), element("pre", came.body ? JSON.stringify(came.body, null, 2).slice(0, 20000) : came.text.slice(0, 20000), { tabIndex: 0 }));
    line.append(details);
  }
}

async function tryIt(button) {
  const plan = JSON.parse(document.getElementById("plan").textContent);
  const list = document.getElementById("tried");
  list.replaceChildren();
  button.disabled = true;
  try {
    for (const one of plan.tries) {
      const line = element("li", "Asking …");
      line.dataset.path = one.path;
      list.append(line);
      const began = performance.now();
      let came;
      try {
        came = await make(one, plan);
      } catch (error) {
        came = { status: 0, ok: false, failure: `No answer: ${error.message}`, seconds: (performance.now() - began) / 1000 };
      }
      if (!line.isConnected) return; // another program was chosen meanwhile
      show(line, one, came);
      if (!came.ok) break;
    }
  } finally {
    button.disabled = false;
    button.focus();
  }
}

/** Says what the try should cost, in place of the general words, where this server can tell. */
async function price() {
  const line = document.getElementById("expected");
  const plan = JSON.parse(document.getElementById("plan")?.textContent ?? "{}");
  if (!line || !plan.priced || !plan.tries.some((one) => one.spends)) return;
  let said;
  try {
    const told = await call("POST", "estimate", plan.priced);
    const nobody = told.seats.every((seat) => seat.status === "skipped");
    if (nobody) said = `It would be refused now: ${told.seats[0]?.reason?.message ?? "nobody can take it"}`;
    else if (told.cost_usd?.typical === null || told.cost_usd?.typical === undefined) said = "What it costs is not known: no price is.";
    else said = `It should cost about ${usd(told.cost_usd.typical)}, at most ${usd(told.cost_usd.most)}${told.unknown.length ? `, and what ${told.unknown.join(", ")} costs, which is not known` : ""}.`;
  } catch (error) {
    if (!error.field && error.status === 404 && error.code === "not_found") return;
    said = `It would be refused now: ${error.message}`;
  }
  if (line.isConnected) line.textContent = said;
}

field?.addEventListener("input", fillIn);
document.addEventListener("htmx:afterSettle", () => { fillIn(); price(); });
document.addEventListener("click", (event) => {
  const button = event.target.closest("#try");
  if (button) tryIt(button);
});
fillIn();
price();
