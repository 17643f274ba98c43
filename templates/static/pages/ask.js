// The page that asks: who, how, what and with which files; what it will cost; then the answers as they come.
import { bytes, call, count, element, memory, seconds, usd } from "./bench.js";
import { say } from "./app.js";
import { Attachments, content, whole } from "./attachments.js";
import { compare } from "./comparison.js";
import { isVeiled, unveil, veil } from "./judge.js";
import { bind } from "./keys.js";
import { LivePanel, badge } from "./live.js";
import { findings } from "./secrets.js";
import { ask } from "./stream.js";

const $ = (id) => document.getElementById(id);
const read = (id) => ($(id) ? JSON.parse($(id).textContent) : null);
const PIXEL = "data:image/png;base64,iVBORw0KGgo="; // an image counts the same whatever it shows, so an estimate need not carry it
const SOON_MS = 450;

const form = $("composer");
if (form) begin();

function begin() {
  const roster = read("roster");
  const again = read("again");
  const collections = new Map(roster.collections.map((one) => [one.name, one]));
  const asked = { body: null, live: null, besides: new Set() };
  const home = location.pathname;
  const judging = $("judging");
  let files = { texts: [], images: [] };

  // ---- whom

  const target = () => { const value = $("target").value; return { isModel: value.startsWith("m:"), name: value.slice(2) }; };
  const mode = () => form.elements.mode.value;

  function whomChanged() {
    const { isModel, name } = target();
    const one = isModel ? null : collections.get(name);
    $("modes").hidden = isModel;
    $("who").hidden = isModel || mode() === "route";
    $("about").textContent = one ? [one.description, `${one.members.length} member${one.members.length === 1 ? "" : "s"}${one.seats ? `, ${one.seats} sit at a time` : ""}${one.explorers ? `, and ${one.explorers} explorer${one.explorers === 1 ? "" : "s"}` : ""}`].filter(Boolean).join(" · ") : "";
    const pinned = again && again.wanted === $("target").value ? again.seats : null;
    const listed = one ? [...new Set([...one.members, ...(pinned ?? [])])] : [];
    $("members").replaceChildren(...listed.map((alias) => {
      const box = element("input", { type: "checkbox", value: alias });
      box.checked = pinned ? pinned.includes(alias) : true;
      return element("label", { class: "check small" }, box, element("bdi", { class: "name" }, alias));
    }));
    $("who-said").textContent = pinned ? "Those who sat at the panel that is asked again." : "All ticked: the collection seats as it always does.";
    if (pinned) $("options").open = true;
    changed();
  }

  function seating() {
    if (target().isModel || mode() === "route") return {};
    const boxes = [...$("members").querySelectorAll("input")];
    const sit = boxes.filter((box) => box.checked).map((box) => box.value);
    const isPinned = again && again.wanted === $("target").value;
    const said = {};
    if (sit.length < boxes.length || isPinned) said.seats = sit;
    if (asked.besides.size) said.with = [...asked.besides];
    return said;
  }

  function besidesChanged() {
    $("besides-list").replaceChildren(...[...asked.besides].map((alias) => {
      const button = element("button", { type: "button", class: "ghost small icon-only", "aria-label": `Do not seat ${alias}` }, "×");
      button.addEventListener("click", () => { asked.besides.delete(alias); besidesChanged(); $("besides").focus(); });
      return element("span", { class: "chip" }, element("bdi", { class: "name" }, alias), button);
    }));
    changed();
  }

  $("seat-besides").addEventListener("click", () => {
    const alias = $("besides").value.trim();
    if (!roster.models.includes(alias)) { say(alias ? `There is no model ${alias}.` : "Name a model first.", "plain"); return; }
    asked.besides.add(alias);
    $("besides").value = "";
    besidesChanged();
  });
  $("besides").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); $("seat-besides").click(); } });

  // ---- what

  const prompt = () => $("prompt")?.value ?? "";

  function body(images = files.images) {
    const { isModel, name } = target();
    const made = { model: isModel ? name : `bench/${name}${mode() === "panel" ? "" : `:${mode()}`}` };
    const bench = seating();
    if ($("prompt")) {
      const system = $("system").value.trim();
      made.messages = [...(system ? [{ role: "system", content: system }] : []), { role: "user", content: content(prompt(), files.texts, images) }];
    } else bench.again = again.panel;
    if (again && !$("prompt") && !bench.seats) bench.reseat = true;
    if ($("temperature").value !== "") made.temperature = Number($("temperature").value);
    if ($("most").value !== "") made.max_completion_tokens = Number($("most").value);
    if (Object.keys(bench).length) made.bench = bench;
    return made;
  }

  const isEmpty = () => $("prompt") !== null && !prompt().trim() && !files.texts.length && !files.images.length;

  function secrets() {
    const found = [...findings("", prompt()), ...findings("instructions", $("system")?.value ?? "").filter(() => $("system")?.value), ...files.texts.flatMap((file) => findings(file.name, file.text)), ...files.images.flatMap((file) => findings(file.name, ""))];
    const said = JSON.stringify(found);
    if (said !== $("secrets").dataset.said) {
      $("secrets").dataset.said = said;
      $("sure").checked = false; // what was confirmed was something else
      $("secrets").querySelector("ul").replaceChildren(...found.slice(0, 12).map(({ where, what }) => element("li", {}, element("bdi", { class: "strong" }, where), `: ${what}`)));
      $("secrets").hidden = !found.length;
    }
    return found.length && !$("sure").checked;
  }

  function preview() {
    const text = whole(prompt(), files.texts);
    const system = $("system")?.value.trim() ?? "";
    const has = Boolean(files.texts.length || files.images.length || system);
    $("preview").hidden = !has;
    if (!has) return;
    if (files.texts.length || files.images.length) $("preview").open = true;
    const size = new Blob([text, system]).size + files.images.reduce((sum, file) => sum + file.size, 0);
    $("preview-size").textContent = bytes(size);
    $("preview-body").replaceChildren(
      ...(system ? [element("p", { class: "turn-role small" }, "Instructions"), element("pre", { tabindex: "0", dir: "auto" }, system)] : []),
      ...(text ? [element("p", { class: "turn-role small" }, "You"), element("pre", { tabindex: "0", dir: "auto", "data-preview": true }, text)] : []),
      ...files.images.map((file) => element("figure", {}, element("img", { class: "sent-image", src: file.data, alt: file.name }), element("figcaption", { class: "faint small" }, `${file.name}, ${bytes(file.size)}`))),
    );
  }

  function refuse(text) {
    $("refused").textContent = text;
    $("refused").hidden = !text;
    $("prompt")?.toggleAttribute("aria-invalid", Boolean(text));
  }

  if ($("prompt")) {
    files = new Attachments({ drop: $("drop"), input: $("files"), list: $("attached"), area: $("prompt"), changed: () => changed(), wrong: (text) => { $("left-out").textContent = text; $("left-out").hidden = !text; } });
  }

  // ---- what it costs

  let soon = 0;
  let asking = null;

  function changed() {
    refuse("");
    clearTimeout(soon);
    soon = setTimeout(() => { if ($("prompt")) { secrets(); preview(); } estimate(); }, SOON_MS);
  }

  async function estimate() {
    asking?.abort();
    if (isEmpty()) { showCost(null, "Type a prompt to see."); return; }
    asking = new AbortController();
    try {
      showCost(await call("POST", "estimate", body(files.images.map(() => ({ data: PIXEL }))), asking.signal));
    } catch (error) {
      if (error.name !== "AbortError") showCost(null, error.message);
    }
  }

  function showCost(found, said = "") {
    $("cost-table").hidden = !found;
    $("cost-note").hidden = !found;
    $("cost-short").textContent = found?.cost_usd?.typical ? `≈ ${usd(found.cost_usd.typical)}, at most ${usd(found.cost_usd.most)}` : "";
    if (!found) { $("cost").textContent = said; return; }
    const sum = found.cost_usd;
    const nobody = found.seats.every((seat) => seat.status === "skipped");
    $("cost").replaceChildren(...(nobody ? ["Nobody can take this."] : sum === null || sum.typical === null ? [element("span", { class: "cost-sum" }, "Unknown")] : [element("span", { class: "cost-sum" }, `≈ ${usd(sum.typical)}`), ` at most ${usd(sum.most)}`]));
    $("cost-table").querySelector("tbody").replaceChildren(...found.seats.map((seat) => {
      const skipped = seat.status === "skipped";
      const kind = seat.seat === "member" || seat.seat === "direct" ? "" : ` ${seat.seat}`;
      const tokens = skipped || !seat.output_tokens ? "" : `${count(seat.input_tokens)} in, ${count(seat.output_tokens.typical)} to ${count(seat.output_tokens.most)} out`;
      return element("tr", {},
        element("th", { scope: "row" }, element("bdi", { class: "name" }, seat.model), element("span", { class: "faint" }, kind), element("br"), element("span", { class: `small ${skipped ? "warn" : "faint"}` }, skipped ? `will not sit: ${seat.reason?.message ?? ""}` : tokens)),
        element("td", { class: "number" }, skipped ? "" : seat.cost_usd ? usd(seat.cost_usd.typical) : "unknown"),
        element("td", { class: "number" }, skipped ? "" : seat.cost_usd ? usd(seat.cost_usd.most) : "unknown"));
    }));
    $("cost-note").textContent = [`About ${count(found.input_tokens)} tokens are read by each.`, found.unknown.length ? `Without a price, and not in the sum: ${found.unknown.join(", ")}.` : ""].filter(Boolean).join(" ");
  }

  // ---- asking

  form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
  form.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); send(); } });
  form.addEventListener("input", (event) => { if (!event.target.matches("#sure, #files, #blind, #besides, #target, [name=mode]")) changed(); });

  function send() {
    if (asked.live && !asked.live.isClosed) return;
    if (isEmpty()) { refuse("Write a prompt, or add a file."); $("prompt").focus(); return; }
    if ($("prompt") && secrets()) { refuse("Something here looks secret. Take it out, or tick that it is to be sent all the same."); $("sure").focus(); return; }
    const boxes = [...$("members").querySelectorAll("input")];
    if (!$("who").hidden && boxes.length && !boxes.some((box) => box.checked) && !asked.besides.size) { refuse("Nobody is ticked under Who sits."); $("options").open = true; boxes[0].focus(); return; }
    const made = body();
    const size = JSON.stringify(made).length;
    if (size > Number(form.dataset.mostBytes)) { refuse(`This comes to ${bytes(size)}; the server takes at most ${bytes(Number(form.dataset.mostBytes))}.`); return; }
    run(made, $("prompt") ? whole(prompt(), files.texts) : document.querySelector(".kept-prompt").innerText);
  }

  async function run(made, shown) {
    const blind = $("blind").checked;
    asked.body = made;
    const live = new LivePanel($("seats"), $("seat"), blind);
    asked.live = live;
    $("send").disabled = true;
    refuse("");
    veil(false);
    judging.dataset.asking = "";
    if (blind) veil(true);
    $("comparison-place").replaceChildren();
    for (const later of ["same-again", "own-page", "broken"]) $(later).hidden = true;
    document.querySelector("[data-compare]").hidden = true;
    try {
      for await (const [name, said] of ask({ ...made, bench: { ...made.bench, detached: true } })) {
        live.take(name, said);
        if (name === "panel") started(live, said, shown, blind);
        else if (name !== "delta") tell(live);
      }
      ended(live);
    } catch (error) {
      if (live.id) ended(live, "The connection broke off. The panel goes on; its own page shows what becomes of it.");
      else failed(error);
    } finally {
      live.isClosed = true;
      live.close();
      delete judging.dataset.asking;
      unveil(judging);
      $("send").disabled = false;
    }
  }

  function started(live, said, shown, blind) {
    const at = judging.dataset.panelAt.replace("PANEL", live.id) + (blind ? "?blind=1" : "");
    if ($("composer").hidden) history.replaceState({ panel: live.id }, "", at); else history.pushState({ panel: live.id }, "", at);
    $("own-page").href = at;
    $("composer").hidden = true;
    $("asked").hidden = false;
    $("anew").hidden = false;
    for (const button of document.querySelectorAll("[data-blind-switch]")) button.hidden = false;
    $("lede").hidden = true;
    $("asked-prompt").textContent = shown;
    $("asked-whom").textContent = said.collection ?? said.seats[0]?.model ?? "";
    $("asked-whom").classList.toggle("unveiled", !said.collection);
    $("asked-mode").textContent = said.mode;
    $("stop-all").hidden = false;
    $("asked-total").textContent = "";
    badge($("state"), "running");
    tell(live);
    $("asked").focus({ preventScroll: true });
    scrollTo({ top: 0 });
  }

  function tell(live) {
    const all = live.seats.size;
    $("asked-said").textContent = live.over < all ? `${live.over} of ${all} are done` : `${all === 1 ? "It is" : `All ${all} are`} done`;
  }

  function ended(live, broken = "") {
    const { result, failed: problem } = live;
    tell(live);
    $("stop-all").hidden = true;
    $("own-page").hidden = false;
    $("same-again").hidden = !live.id;
    document.querySelector("[data-compare]").hidden = live.answers < 2;
    const text = broken || problem?.message || (result?.reason ? `The answers were not merged: ${result.reason.message ?? result.reason}` : "") || (result ? "" : "The answer ended before it was whole. The panel's own page shows what became of it.");
    $("broken").textContent = text;
    $("broken").dataset.tone = problem || broken || !result ? "bad" : "warn";
    $("broken").hidden = !text;
    badge($("state"), result?.status ?? (problem ? "failed" : "running"));
    $("state").dataset.tone = { complete: "good", degraded: "warn", failed: "bad" }[result?.status] ?? $("state").dataset.tone;
    if (result) $("asked-total").textContent = `${seconds(result.seconds)}, ${result.cost_usd === null ? "cost unknown" : usd(result.cost_usd)}`;
  }

  function failed(error) {
    back();
    refuse(error.message || "The server did not answer.");
    $("refused").scrollIntoView({ block: "nearest" });
  }

  function back() {
    $("composer").hidden = false;
    $("asked").hidden = true;
    $("anew").hidden = true;
    for (const button of document.querySelectorAll("[data-blind-switch]")) button.hidden = true;
    $("lede").hidden = false;
    changed();
  }

  $("anew").addEventListener("click", () => {
    if (asked.live && !asked.live.isClosed) { location.assign(home); return; }
    history.pushState(null, "", home);
    back();
    $("prompt")?.focus();
  });
  addEventListener("popstate", () => { if (location.pathname === home && asked.live?.isClosed !== false) back(); else location.reload(); });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-stop-seat], #stop-all, #same-again, [data-compare]");
    const live = asked.live;
    if (!button || !live) return;
    if (button.matches("[data-stop-seat]")) live.stop(`calls/${button.closest(".seat").dataset.call}/cancel`, button);
    else if (button.id === "stop-all") live.stop(`panels/${live.id}/cancel`, button);
    else if (button.id === "same-again") { const { bench = {}, ...rest } = asked.body; const { seats, with: besides, ...more } = bench; run({ ...rest, bench: { ...more, again: live.id } }, $("asked-prompt").textContent); }
    else compare(live.id, $("own-page").href, button);
  });

  document.addEventListener("bench:veil", (event) => {
    $("blind").checked = event.detail;
    memory.set("blind", event.detail ? "on" : "off");
    if (!asked.live || $("asked").hidden) return;
    const address = new URL(location);
    if (event.detail) address.searchParams.set("blind", "1"); else address.searchParams.delete("blind");
    history.replaceState(history.state, "", address);
  });

  // ---- what this browser remembers

  for (const button of document.querySelectorAll("[data-blind-switch]")) button.hidden = true; // the form has a box for it
  $("blind").checked = memory.get("blind") === "on";
  $("blind").addEventListener("change", () => memory.set("blind", $("blind").checked ? "on" : "off"));
  const choose = (value) => { if ([...$("target").options].some((option) => option.value === value)) $("target").value = value; };
  if (form.dataset.wanted) choose(form.dataset.wanted);
  else choose(memory.get("target") ?? "");
  const last = form.dataset.mode || memory.get("mode");
  if ([...form.elements.mode].some((radio) => radio.value === last)) form.elements.mode.value = last;
  $("target").addEventListener("change", () => { memory.set("target", $("target").value); whomChanged(); });
  $("modes").addEventListener("change", () => { memory.set("mode", mode()); whomChanged(); });

  bind(["s"], "Stop this answer, while it is written", () => { const button = document.activeElement?.closest(".seat")?.querySelector("[data-stop-seat]:not([hidden])"); button?.click(); return Boolean(button); });
  whomChanged();
  if (!isVeiled()) $("prompt")?.focus();
}
