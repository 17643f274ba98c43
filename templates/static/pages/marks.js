// Finds words in an answer as it is drawn and marks them; steps through its sentences.

// Signs that markdown takes away or a quote may leave out; letters, figures and everything else must be there, in order.
const NOTHING = /[\s*_`#>|~\\\[\]()\u200b\u00ad-]/u;
const BLOCKS = "p, li, h4, h5, h6, td, th, pre, blockquote";

function* textNodes(within) {
  const walker = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) yield walker.currentNode;
}

function bare(text) {
  let said = "";
  for (const sign of text) if (!NOTHING.test(sign)) said += sign.toLowerCase();
  return said;
}

/** Gives the range of an answer in which a quote stands, white space and markup aside; null where it does not. */
export function find(answer, quote) {
  const places = [];
  let said = "";
  for (const node of textNodes(answer)) {
    for (let at = 0; at < node.data.length;) {
      const sign = String.fromCodePoint(node.data.codePointAt(at));
      if (!NOTHING.test(sign)) {
        const lower = sign.toLowerCase();
        for (let i = 0; i < lower.length; i += 1) places.push([node, at, at + sign.length]);
        said += lower;
      }
      at += sign.length;
    }
  }
  const links = quote.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1");
  for (const wanted of [bare(links), bare(quote)]) {
    const at = wanted ? said.indexOf(wanted) : -1;
    if (at < 0) continue;
    const range = document.createRange();
    range.setStart(places[at][0], places[at][1]);
    range.setEnd(places[at + wanted.length - 1][0], places[at + wanted.length - 1][2]);
    return range;
  }
  return null;
}

/** Marks a quote. Gives the marks, none where the quote is not found. `data` becomes data- attributes of each. */
export function mark(answer, quote, data) {
  const range = find(answer, quote);
  if (!range) return [];
  const parts = [];
  for (const node of textNodes(answer)) {
    if (!range.intersectsNode(node)) continue;
    const from = node === range.startContainer ? range.startOffset : 0;
    const to = node === range.endContainer ? range.endOffset : node.data.length;
    if (to > from && node.data.slice(from, to).trim()) parts.push([node, from, to]);
  }
  return parts.map(([node, from, to]) => {
    const part = from ? node.splitText(from) : node;
    if (to - from < part.data.length) part.splitText(to - from);
    const made = document.createElement("mark");
    Object.assign(made.dataset, data);
    part.replaceWith(made);
    made.append(part);
    return made;
  });
}

/** Takes marks away, so that the text is whole again. */
export function unmark(within, selector) {
  for (const made of within.querySelectorAll(selector)) {
    const parent = made.parentNode;
    made.replaceWith(...made.childNodes);
    parent.normalize();
  }
}

// ---- sentences

function sentences(answer) {
  const found = [];
  const blocks = new Map();
  for (const node of textNodes(answer)) {
    const block = node.parentElement.closest(BLOCKS) ?? answer;
    if (!blocks.has(block)) blocks.set(block, []);
    blocks.get(block).push(node);
  }
  for (const [block, nodes] of blocks) {
    const text = nodes.map((node) => node.data).join("");
    for (const [from, to] of pieces(text, block.matches("pre"))) {
      const range = document.createRange();
      range.setStart(...place(nodes, from, false));
      range.setEnd(...place(nodes, to, true));
      found.push(range);
    }
  }
  return found;
}

function pieces(text, lines) {
  const parts = lines || !Intl.Segmenter ? text.split(/(?<=\n)/) : [...new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(text)].map((s) => s.segment);
  const found = [];
  let at = 0;
  for (const part of parts) {
    const said = part.trim();
    if (said) found.push([at + part.indexOf(said), at + part.indexOf(said) + said.length]);
    at += part.length;
  }
  return found;
}

function place(nodes, offset, isEnd) {
  let left = offset;
  for (const node of nodes) {
    if (left < node.data.length || (isEnd && left === node.data.length)) return [node, left];
    left -= node.data.length;
  }
  const last = nodes.at(-1);
  return [last, last.data.length];
}

const reached = new WeakMap(); // by answer: which sentence was selected last, for when its selection is gone because it was judged

/** Selects the sentence after or before the selection; with `more` the selection grows by it. */
export function step(answer, direction, more = false) {
  const all = sentences(answer);
  if (!all.length) return false;
  const selection = getSelection();
  const now = selection.rangeCount && answer.contains(selection.anchorNode) && !selection.isCollapsed ? selection.getRangeAt(0) : null;
  let next = direction > 0 ? all[0] : all.at(-1);
  if (now && direction > 0) next = all.find((range) => range.compareBoundaryPoints(Range.START_TO_START, now) > 0 && range.compareBoundaryPoints(Range.END_TO_END, now) > 0) ?? all.at(-1);
  if (now && direction < 0) next = all.findLast((range) => range.compareBoundaryPoints(Range.START_TO_START, now) < 0) ?? all[0];
  if (!now && reached.has(answer)) next = all[Math.min(all.length - 1, Math.max(0, reached.get(answer) + direction))];
  reached.set(answer, all.indexOf(next));
  const range = next.cloneRange();
  if (more && now) {
    if (direction > 0) range.setStart(now.startContainer, now.startOffset);
    else range.setEnd(now.endContainer, now.endOffset);
  }
  selection.removeAllRanges();
  selection.addRange(range);
  next.startContainer.parentElement.scrollIntoView({ block: "nearest" });
  return true;
}
