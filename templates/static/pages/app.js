// What every page does: the menu on a phone, light and dark, copying, questions before what cannot be undone, markdown and charts where a page has them.

const root = document.documentElement;

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-menu], [data-theme-switch], [data-copy], [data-close]");
  if (!target) return;
  if (target.matches("[data-menu]")) {
    const open = root.toggleAttribute("data-menu-open");
    target.setAttribute("aria-expanded", String(open));
  } else if (target.matches("[data-theme-switch]")) {
    const dark = getComputedStyle(root).colorScheme === "dark";
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("bench-theme", root.dataset.theme); } catch { /* holds for this page then */ }
    document.dispatchEvent(new CustomEvent("bench:theme"));
  } else if (target.matches("[data-copy]")) {
    copy(target);
  } else if (target.matches("[data-close]")) {
    target.closest("dialog")?.close();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && root.hasAttribute("data-menu-open")) {
    root.removeAttribute("data-menu-open");
    const button = document.querySelector("[data-menu]");
    button?.setAttribute("aria-expanded", "false");
    button?.focus();
  }
});

/** Copies the text of the element that `data-copy` selects, or `data-copy-text` itself. */
async function copy(button) {
  const text = button.dataset.copyText ?? document.querySelector(button.dataset.copy)?.textContent ?? "";
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not a secure address: the old way
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say("Copied.");
}

/** Tells something in the page's live region. `tone`: good, warn, bad or plain. */
export function say(text, tone = "good") {
  const line = document.createElement("p");
  line.className = "notice passing";
  line.dataset.tone = tone;
  line.textContent = text;
  document.getElementById("messages")?.append(line);
  if (tone !== "bad") setTimeout(() => line.remove(), 4000);
}

// A form or button with data-confirm asks first, in a dialog of ours: the browser's own can be switched off for a page.
document.addEventListener("submit", (event) => {
  const form = event.target;
  const question = event.submitter?.dataset.confirm ?? form.dataset.confirm;
  if (!question || form.dataset.confirmed) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  confirmed(question).then((yes) => {
    if (!yes) return;
    form.dataset.confirmed = "1";
    form.requestSubmit(event.submitter);
    delete form.dataset.confirmed;
  });
}, true);

document.addEventListener("htmx:confirm", (event) => {
  const question = event.detail.question;
  if (!question) return;
  event.preventDefault();
  confirmed(question).then((yes) => yes && event.detail.issueRequest(true));
});

/** Asks a question. Gives a promise of yes or no. */
export function confirmed(question) {
  return new Promise((resolve) => {
    const dialog = document.createElement("dialog");
    const text = document.createElement("p");
    text.textContent = question;
    const row = document.createElement("form");
    row.method = "dialog";
    row.className = "row end";
    for (const [value, label, kind] of [["", "Cancel", ""], ["yes", "Yes, do it", "danger"]]) {
      const button = document.createElement("button");
      button.value = value;
      button.textContent = label;
      button.className = kind;
      row.append(button);
    }
    dialog.append(text, row);
    dialog.addEventListener("close", () => { resolve(dialog.returnValue === "yes"); dialog.remove(); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Draws what came into the page: charts from their tables, markdown from its text. Each script is fetched only where it is needed. */
async function dress(within) {
  const charts = within.querySelectorAll("figure[data-chart]");
  const texts = within.querySelectorAll("[data-markdown]:not([data-drawn])");
  if (charts.length) (await import(new URL("charts.js", import.meta.url))).draw(charts);
  if (texts.length) {
    const { render } = await import(new URL("markdown.js", import.meta.url));
    for (const text of texts) { text.dataset.drawn = "1"; render(text, text.textContent); }
  }
}

document.addEventListener("htmx:afterSettle", (event) => dress(event.target));
dress(document);
