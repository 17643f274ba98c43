// Seats that write at this moment: each in its column, with its time, tokens, cost and state.
import { call, count, seconds, usd } from "./bench.js";
import { say } from "./app.js";
import { Growing } from "./answers.js";
import { shuffle } from "./judge.js";

const TONES = { ok: "good", partial: "warn", truncated: "warn", skipped: "warn", cancelled: "warn", waiting: "warn", rate_limited: "warn", no_credit: "warn", running: "busy" };
const ANSWERED = ["ok", "partial", "truncated"];
const ID = /^[A-Za-z0-9_]+$/;
const letter = (n) => (n >= 26 ? letter(Math.floor(n / 26) - 1) : "") + String.fromCharCode(65 + (n % 26));
const turned = (id) => [...id].reverse().join("");

export function badge(element, status) {
  element.textContent = status.replace("_", " ");
  element.dataset.tone = TONES[status] ?? "bad";
}

class Seat {
  constructor(said, template) {
    if (!ID.test(said.call)) throw new Error("no id");
    this.element = template.content.firstElementChild.cloneNode(true);
    for (const part of [this.element, ...this.element.querySelectorAll("*")]) {
      for (const { name, value } of [...part.attributes]) if (value.includes("CALL")) part.setAttribute(name, value.replace("CALL", said.call));
    }
    this.form = this.element.querySelector("form[data-judge]");
    if (this.form) this.form.hidden = true;
    this.part = (name) => this.element.querySelector(`[data-${name}]`);
    this.growing = new Growing(this.part("answer"));
    this.characters = 0;
    this.began = performance.now();
    this.begin(said);
  }

  get isOver() { return !["running", "waiting"].includes(this.element.dataset.status); }

  begin(said) {
    this.call = said.call;
    this.position = said.position ?? 0;
    this.kind = said.seat;
    this.element.dataset.kind = said.seat;
    this.part("model").textContent = said.model;
    const kind = this.part("kind-said");
    kind.hidden = said.seat === "member";
    kind.textContent = said.seat;
    if (this.element.dataset.status === "waiting" && said.status === "running") this.began = performance.now();
    this.state(said.status, said.error);
  }

  state(status, error) {
    this.element.dataset.status = status;
    badge(this.part("state"), status);
    this.part("state").classList.toggle("busy-dot", status === "running");
    const line = this.element.querySelector(".seat-error");
    line.hidden = !error;
    if (error) { this.part("code").textContent = error.code ?? ""; this.part("message").textContent = error.message ?? ""; }
    this.part("stop-seat").hidden = this.isOver;
  }

  delta(said) {
    if (said.reasoning) {
      this.element.querySelector(".thinking").hidden = false;
      this.part("reasoning").append(said.reasoning);
    }
    if (said.text) this.growing.add(said.text);
    this.characters += (said.text ?? said.reasoning ?? "").length;
  }

  tick() {
    if (this.isOver) return;
    this.part("time").textContent = seconds((performance.now() - this.began) / 1000);
    if (this.characters) this.part("tokens").textContent = `about ${count(Math.ceil(this.characters / 4))} out`;
  }

  end(said) {
    this.begin(said);
    // A seat that is waited for no longer has said what it said; its whole answer may still come, to the panel's own page.
    const isLate = said.status === "timeout";
    if (said.text || (said.text === "" && !isLate)) this.growing.now(said.text);
    else if (this.growing.text) this.growing.now();
    const text = this.growing.text;
    const answer = this.part("answer");
    answer.hidden = !text;
    this.part("copy-answer").hidden = !text;
    this.part("time").textContent = `${seconds(said.seconds)}${said.ttft_seconds == null ? "" : `, first word after ${seconds(said.ttft_seconds)}`}`;
    this.part("tokens").textContent = said.usage ? `${said.usage.estimated ? "about " : ""}${count(said.usage.input_tokens)} in, ${count(said.usage.output_tokens)} out` : "";
    this.part("cost").textContent = said.cost_usd === null || said.cost_usd === undefined ? "cost unknown" : usd(said.cost_usd);
    const isAnswer = ANSWERED.includes(said.status) || (Boolean(text) && !isLate);
    this.element.toggleAttribute("data-answered", isAnswer);
    if (this.form) this.form.hidden = !isAnswer;
  }
}

/** One panel under way. `place` is where its seats go; `blind` mixes them. */
export class LivePanel {
  constructor(place, template, blind) {
    Object.assign(this, { place, template, blind, seats: new Map(), id: "", result: null, failed: null });
    place.replaceChildren();
    this.clock = setInterval(() => { for (const seat of this.seats.values()) seat.tick(); }, 250);
  }

  take(name, said) {
    if (name === "panel") {
      this.id = ID.test(said.panel) ? said.panel : "";
      for (const seat of said.seats) this.seat(seat);
      this.label();
      if (this.blind) shuffle(this.place.parentElement);
    } else if (name === "seat_started") {
      const seat = this.seats.get(said.call);
      if (seat) seat.begin(said); else { this.seat(said); this.label(); }
    } else if (name === "delta") this.seats.get(said.call)?.delta(said);
    else if (name === "seat") (this.seats.get(said.call) ?? this.seat(said)).end(said);
    else if (name === "done") this.result = said;
    else if (name === "error") this.failed = said;
  }

  seat(said) {
    const seat = new Seat(said, this.template);
    this.seats.set(said.call, seat);
    const later = [...this.seats.values()].filter((one) => one !== seat && one.kind !== "merger" && one.position > seat.position).sort((a, b) => a.position - b.position)[0];
    if (seat.kind === "merger") this.place.prepend(seat.element);
    else this.place.insertBefore(seat.element, this.blind ? null : later?.element ?? null);
    return seat;
  }

  label() {
    const members = [...this.seats.values()].filter((seat) => seat.kind !== "merger").sort((a, b) => (turned(a.call) < turned(b.call) ? -1 : 1));
    members.forEach((seat, n) => { seat.part("letter").textContent = `Answer ${letter(n)}`; });
    for (const seat of this.seats.values()) if (seat.kind === "merger") seat.part("letter").textContent = "Merged answer";
  }

  get over() { return [...this.seats.values()].filter((seat) => seat.isOver).length; }
  get answers() { return [...this.seats.values()].filter((seat) => seat.kind !== "merger" && seat.growing.text && seat.isOver).length; }

  close() {
    clearInterval(this.clock);
    for (const seat of this.seats.values()) if (!seat.isOver && seat.growing.text) seat.growing.now();
  }

  async stop(path, button) {
    button.disabled = true;
    try { await call("POST", path, {}); } catch (error) { if (error.code !== "already_over") say(error.message, "bad"); } finally { button.disabled = false; }
  }
}
