// Calls the bench's own API as the person who is signed in, and writes figures as the pages do.

export const api = document.querySelector('meta[name="bench-api"]')?.content ?? "/bench/";
const token = JSON.parse(document.body.getAttribute("hx-headers") ?? "{}")["X-CSRFToken"] ?? "";
export const headers = { "Content-Type": "application/json", "X-CSRFToken": token };
const KEPT_ALIVE = 60_000; // what a browser takes along when its page is left

/** The API said no. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.message ?? `The server answered ${status}.`);
    this.status = status;
    this.code = problem.code ?? "error";
    this.field = problem.field ?? "";
    this.seats = problem.seats ?? [];
  }
}

/** Reads why an answer is none. */
export async function refusal(answer) {
  let problem = {};
  try { problem = await answer.json(); } catch { /* a proxy's page says nothing to us */ }
  return new Refused(answer.status, problem);
}

export async function call(method, path, body, signal) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const answer = await fetch(api + path, { method, headers, body: text, signal, keepalive: method === "POST" && (text ?? "").length < KEPT_ALIVE && !signal });
  if (!answer.ok) throw await refusal(answer);
  return answer.status === 204 ? null : answer.json();
}

export function usd(value) {
  if (value === null || value === undefined) return "–";
  const amount = Number(value);
  if (!Number.isFinite(amount)) return "–";
  if (amount === 0) return "$0";
  if (amount >= 1) return `$${amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  const places = Math.min(10, Math.max(2, 2 - Math.floor(Math.log10(amount))));
  const text = amount.toFixed(places).replace(/0+$/, "");
  return `$${(text.split(".")[1] ?? "").length >= 2 ? text : amount.toFixed(2)}`;
}

export function count(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, by, unit] of [[1e9, 1e9, "B"], [1e6, 1e6, "M"], [1e4, 1e3, "k"]]) {
    if (value >= size) return `${(value / by).toFixed(1).replace(/\.0$/, "")}${unit}`;
  }
  return Math.round(value).toLocaleString("en");
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  return value < 60 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

export function bytes(value) {
  if (value < 1000) return `${value} bytes`;
  return value < 1e6 ? `${(value / 1000).toFixed(1).replace(/\.0$/, "")} kB` : `${(value / 1e6).toFixed(1)} MB`;
}

/** What a browser keeps for this page's next visit; where it keeps nothing, nothing is lost. */
export const memory = {
  get(name) { try { return localStorage.getItem(`bench-${name}`); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(`bench-${name}`, value); } catch { /* holds for this page then */ } },
};

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}
