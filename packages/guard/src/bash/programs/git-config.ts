/** git config: which settings may be read?
 *  Invariant: one setting, or the settings of a section that holds no passwords; settings are never changed.
 *  Elsewhere: the other subcommands (git.ts). */

import type { ParsedArguments } from "../options.ts";
import { Refusal } from "../refusal.ts";

const refuse = (text: string, verdict: "write" | "unknown" = "unknown"): never => {
  throw new Refusal(`git config ${text}`, verdict);
};

/** Settings that hold passwords, tokens or commands that print them. A committer's name and key id are none. */
const PRIVATE =
  /^(credential|url|sendemail|imap|github|gitlab|hub)\.|^https?\.(?!sslverify$|postbuffer$|version$|lowspeed)|token|secret|pass(?!ive|through)|pwd|private|(?<!signing)key$|auth(?!or)|extraheader|cookie|proxy|api[-_.]?key/i;

/** The start of all names of one section, and no other. */
const SECTION =
  /^\^(alias|user|author|committer|core|branch|init|pull|push|fetch|merge|rebase|diff|color|log|status|submodule|commit|tag|gc)(\\?\.([\w.*-]|\\\.)*\$?)?$/;

const READING: readonly string[] = ["list", "l", "get", "get-all", "get-regexp"];

export const checkConfig = ({ options, operands }: ParsedArguments): void => {
  const given = options.map(({ name }) => name);
  const asked = READING.filter((name) => given.includes(name));
  const [first, ...more] = operands;
  const verb = asked.length === 0 && (first?.text === "get" || first?.text === "list") ? first.text : asked[0];
  if (asked.length > 1) refuse("takes one question at a time; use git config --get KEY");
  if (verb === "list" || verb === "l") refuse("--list shows passwords too; name one key: git config --get user.name");
  const [key, ...rest] = verb !== undefined && asked.length === 0 ? more : operands;
  if (!key || rest.length > (asked.length === 0 ? 0 : 1)) {
    refuse("may only be read; use git config --get KEY", "write");
    return;
  }
  if (key.pattern || key.home) refuse("takes a plain key");
  if (rest.some(({ text }) => text.startsWith("-"))) refuse("takes its options before the key: git config --get KEY");
  if (verb === "get-regexp") {
    if (!SECTION.test(key.text)) refuse("--get-regexp takes one section: git config --get-regexp '^alias\\.'");
    return;
  }
  if (!/^[\w-]+\..*[\w-]$/s.test(key.text)) refuse("may only be read; use git config --get KEY", "write");
  if (PRIVATE.test(key.text)) refuse(`${key.text} may hold a password; ask for it`);
};
