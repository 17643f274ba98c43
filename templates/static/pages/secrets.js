// What looks secret in files and prompts, before it goes to anybody. Rather a warning too many than a key too few.

const FILES = /(^|[/\\])(\.env(\.[\w-]+)?|\.netrc|_netrc|\.npmrc|\.pypirc|\.pgpass|\.htpasswd|\.git-credentials|id_(rsa|dsa|ecdsa|ed25519)|credentials(\.json)?|secrets?\.(ya?ml|json|toml|ini)|.*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|ovpn))$/i;
const HARMLESS_FILES = /\.(example|sample|template|dist|pub)$/i;
const TOKENS = [
  ["private key", /-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----/],
  ["AWS access key", /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/],
  ["GitHub token", /\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})\b/],
  ["GitLab token", /\bglpat-[A-Za-z0-9_-]{16,}\b/],
  ["Slack token", /\bxox[abposr]-[A-Za-z0-9-]{10,}/],
  ["Google API key", /\bAIza[A-Za-z0-9_-]{30,}\b/],
  ["Hugging Face token", /\bhf_[A-Za-z0-9]{20,}\b/],
  ["npm token", /\bnpm_[A-Za-z0-9]{30,}\b/],
  ["PyPI token", /\bpypi-[A-Za-z0-9_-]{30,}/],
  ["Stripe key", /\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}\b/],
  ["API key", /\b(?:sk|gsk|xai|csk|pplx|r8|nvapi|bw)[-_][A-Za-z0-9_-]{16,}/],
  ["signed token (JWT)", /\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{6,}/],
  ["password in an address", /\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]+:[^\s/@]{3,}@[^\s/]+/i],
  ["authorization header", /\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic)\s+[A-Za-z0-9+/_=.-]{12,}/i],
];
const ASSIGNED = /(?:^|[\s"'{,;(])["']?([A-Za-z0-9_.-]*(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|auth)[A-Za-z0-9_.-]*)["']?\s*(?:=>|[:=])\s*["'`]?([^\s"'`,;)}\]]{8,})/gi;
const BLOB = /(?:^|[\s"'`=:])([A-Za-z0-9+/_-]{32,}={0,2})(?=$|[\s"'`,;)}\]])/g;
const STANDS_FOR = /^(?:\$|%|<|\{\{|process\.|os\.|env|your|my|example|changeme|dummy|placeholder|xxx|\*{3}|none$|null$|true$|false$|undefined$|request|self\.|this\.|get|settings)/i;
const NAMES_KEY = /key|token|secret|pass|credential|auth/i;
const LINES_MAX = 20_000;

/** Bits a character of a text holds: words come to 3 or less, drawn keys of some length to 4 and more. */
export function entropy(text) {
  const counts = new Map();
  for (const sign of text) counts.set(sign, (counts.get(sign) ?? 0) + 1);
  let bits = 0;
  for (const n of counts.values()) bits -= (n / text.length) * Math.log2(n / text.length);
  return bits;
}

const masked = (value) => `${value.slice(0, 4)}…`;

function inLine(line) {
  for (const [what, pattern] of TOKENS) {
    const found = pattern.exec(line);
    if (found) return [what, what === "private key" ? "" : masked(found[0])];
  }
  for (const [, name, value] of line.matchAll(ASSIGNED)) {
    if (!STANDS_FOR.test(value) && !/\($/.test(value) && !value.includes("(") && (entropy(value) >= 3 || (/\d/.test(value) && /[A-Za-z]/.test(value)))) return [`value of ${name.slice(0, 40)}`, masked(value)];
  }
  for (const [, value] of line.matchAll(BLOB)) {
    const isHash = /^[0-9a-f]+$/i.test(value) && [32, 40, 56, 64, 96, 128].includes(value.length) && !NAMES_KEY.test(line);
    if (!isHash && /\d/.test(value) && /[a-z]/.test(value) && /[A-Z]/.test(value) && !value.includes("//") && (value.match(/\//g) ?? []).length < 3 && entropy(value) >= 4.2) return ["long random text", masked(value)];
  }
  return null;
}

/** Gives what looks secret. Shape: `{where, what}`, at most `most` of them; never the secret itself. */
export function findings(name, text, most = 8) {
  const found = [];
  if (name && FILES.test(name) && !HARMLESS_FILES.test(name)) found.push({ where: name, what: "a file that usually holds secrets" });
  const lines = text.split("\n", LINES_MAX);
  for (let i = 0; i < lines.length && found.length < most; i += 1) {
    const line = lines[i].length > 4000 ? lines[i].slice(0, 4000) : lines[i];
    const said = inLine(line);
    if (said) found.push({ where: `${name || "prompt"}, line ${i + 1}`, what: `${said[0]}${said[1] ? ` (${said[1]})` : ""}` });
  }
  return found;
}
