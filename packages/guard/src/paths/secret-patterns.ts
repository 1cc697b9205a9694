/** Is a file name pattern written to match secrets?
 *  Invariant: only a first look at the text, for patterns that could hardly mean anything else. Each name that a pattern matches
 *  is judged on its own.
 *  Elsewhere: the names (secret-names.ts), expanding patterns (../run). */

import { matchesTokens, parsePattern } from "./name-pattern.ts";

/** Hidden names whose first few letters are enough to recognise them. */
const HIDDEN: readonly string[] = [
  ...[".env", ".env.local", ".env~", ".env.bak", ".ssh", ".gnupg", ".aws", ".kube", ".netrc", ".pgpass"],
  ...[".git-credentials"],
];
const KEYS: readonly string[] = ["id_rsa", "id_ecdsa", "id_ed25519"];
const WORDS: readonly string[] = ["credentials", "credentials.json", "secrets.yml", "secrets.yaml"];
const ENDINGS: readonly string[] = ["env", "pem", "key", "p12", "pfx", "jks"];

const matchesAny = (part: string, names: readonly string[]): boolean => {
  const parsed = parsePattern(part);
  return typeof parsed === "string" ? names.includes(parsed) : names.some((name) => matchesTokens(name, parsed));
};

const plainLetters = (part: string): number => {
  const lastClose = part.lastIndexOf("]");
  let count = 0;
  for (let at = 0; at < part.length; at += 1) {
    if (part[at] === "[" && at < lastClose) at = part.indexOf("]", at);
    else if (part[at] !== "*" && part[at] !== "?") count += 1;
  }
  return count;
};

export const couldBeSecret = (pattern: string): boolean => {
  const part = pattern.toLowerCase();
  if (/^\.[^a-z0-9]*[a-z0-9]/.test(part) && matchesAny(part, HIDDEN)) return true;
  if (plainLetters(part) >= 3 && matchesAny(part, KEYS)) return true;
  if (/^[a-z]{4}/.test(part) && matchesAny(part, WORDS)) return true;
  const ending = part.slice(part.lastIndexOf(".") + 1);
  return part.includes(".") && plainLetters(ending) >= 2 && matchesAny(ending, ENDINGS);
};
