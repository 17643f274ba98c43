// Markdown that models wrote, made safe. Nothing in it can fetch, run, submit or style anything: text, lists, tables, code and links that say where they lead.

await load("../vendor/purify.js", "DOMPurify");
await load("../vendor/marked.js", "marked");

function load(file, name) {
  if (window[name]) return null;
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(file, import.meta.url);
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${file} did not load`));
    document.head.append(script);
  });
}

const TAGS = ["a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "kbd", "li", "ol", "p", "pre", "s", "strong",
  "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"];
const purifier = window.DOMPurify(window);
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  const address = node.getAttribute("href") ?? "";
  if (!/^https?:\/\//i.test(address)) { node.removeAttribute("href"); return; }
  node.setAttribute("rel", "noopener noreferrer nofollow");
  node.setAttribute("target", "_blank");
  node.setAttribute("title", address);
});

// HTML in a text is shown as it was written, but for tags that only shape words: parsing more of it would break the page's policy before it is taken out.
const SHAPES = /&lt;(\/?(?:b|br|code|del|em|hr|i|kbd|p|s|strong|sub|sup))\s*\/?&gt;/gi;
const escaped = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
const shown = (text) => escaped(text).replaceAll("&#60;", "&lt;").replaceAll("&#62;", "&gt;").replace(SHAPES, "<$1>");
const markdown = new window.marked.Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html: ({ text }) => shown(text),
    image: ({ text }) => escaped(text), // its description: this page fetches nothing that a model names
  },
});

/** Replaces an element's content by a text's markdown. */
export function render(element, text) {
  const html = markdown.parse(text, { async: false });
  const part = purifier.sanitize(html, { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", "title", "start", "align"], ALLOW_DATA_ATTR: false, RETURN_DOM_FRAGMENT: true });
  for (const heading of part.querySelectorAll("h1, h2, h3")) { // a page has its own
    const smaller = document.createElement("h4");
    smaller.append(...heading.childNodes);
    heading.replaceWith(smaller);
  }
  for (const block of part.querySelectorAll("p, ul, ol, h4, h5, h6, blockquote, table")) { // each in the direction of its own script
    if (!block.parentElement?.closest("[dir]")) block.dir = "auto"; // what is inside follows: "auto" looks past parts that say a direction themselves
  }
  for (const wide of part.querySelectorAll("pre, table")) { wide.tabIndex = 0; }
  element.replaceChildren(part);
}
