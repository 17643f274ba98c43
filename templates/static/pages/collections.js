// One collection: what a panel of it is expected to cost, asked for when somebody wants to know.

const QUESTION = "Review this function. What is wrong with it, and what would you change? Answer briefly, with the line that you mean.";

const dollars = (text) => (text === null ? "unknown" : `$${Number(Number(text).toPrecision(2))}`);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-estimate]");
  if (!button) return;
  const told = button.parentElement.querySelector("[data-estimated]");
  button.disabled = true;
  try {
    const token = JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];
    const base = new URL("..", new URL(document.querySelector(".brand").href)); // the pages live in app/, the API beside it
    const answer = await fetch(new URL("bench/estimate", base), {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-CSRFToken": token },
      body: JSON.stringify({ model: button.dataset.estimate, messages: [{ role: "user", content: QUESTION }] }),
    });
    const said = await answer.json();
    told.textContent = answer.ok
      ? `about ${dollars(said.cost_usd.typical)}, at most ${dollars(said.cost_usd.most)}${said.unknown.length ? `, without ${said.unknown.length} of unknown price` : ""}`
      : said.detail;
  } catch {
    told.textContent = "The server did not answer. Try again.";
  } finally {
    button.disabled = false;
  }
});
