// Answers as their models wrote them, drawn as markdown; the text itself is kept for copying.
import { render } from "./markdown.js";

const written = new WeakMap();

export function draw(answer, text) {
  written.set(answer, text);
  const [top, left] = [answer.scrollTop, answer.scrollLeft];
  const follows = answer.scrollHeight > answer.clientHeight && answer.scrollHeight - answer.clientHeight - top < 40;
  answer.dataset.drawn = "1";
  render(answer, text);
  answer.scrollTop = follows ? answer.scrollHeight : top;
  answer.scrollLeft = left;
}

export function textOf(answer) {
  return written.get(answer) ?? answer.textContent;
}

/** Draws what came with the page. */
export function drawAll(within) {
  for (const answer of within.querySelectorAll("[data-answer]:not([data-drawn])")) {
    draw(answer, answer.textContent);
    const copy = answer.closest(".seat")?.querySelector("[data-copy-answer]");
    if (copy) copy.hidden = false;
  }
}

/** Draws a text that grows: seldom enough that drawing takes a small part of the time, however long the text is. */
export class Growing {
  constructor(answer) { this.answer = answer; this.text = ""; this.waiting = 0; this.took = 10; }

  add(more) {
    this.text += more;
    if (!this.waiting) this.waiting = setTimeout(() => this.now(), Math.min(4000, Math.max(120, this.took * 8)));
  }

  now(whole = this.text) {
    clearTimeout(this.waiting);
    this.waiting = 0;
    this.text = whole;
    const began = performance.now();
    draw(this.answer, whole);
    this.took = performance.now() - began;
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy-answer]");
  const answer = button?.closest(".seat").querySelector("[data-answer]");
  if (!answer) return;
  button.dataset.copyText = textOf(answer); // app.js copies what stands here
}, true);
