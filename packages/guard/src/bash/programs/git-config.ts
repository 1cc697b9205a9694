/** git config: which settings may be read?
 *  Invariant: one setting, or the settings of one section that holds no passwords; settings are never changed.
 *  Elsewhere: the other subcommands (git.ts). */

import type { ParsedArguments } from "../options.ts";
import { Refusal } from "../refusal.ts";

const refuse = (text: string, verdict: "write" | "unknown" = "unknown"): never => {
  throw new Refusal(`git config ${text}`, verdict);
};

/** Settings that hold passwords, tokens or commands that print them. A committer's name and signing key id do not count. */
const PRIVATE =
  /^(credential|url|sendemail|imap|github|gitlab|hub)\.|^https?\.(?!sslverify$|postbuffer$|version$|lowspeed)|token|secret|pass(?!ive|through)|pwd|private|(?<!signing)key$|auth(?!or)|extraheader|cookie|proxy|api[-_.]?key/i;

/** A pattern that matches the names of one harmless section and nothing else. */
const SECTION =
  /^\^(alias|user|author|committer|core|branch|init|pull|push|fetch|merge|rebase|diff|color|log|status|submodule|commit|tag|gc)(\\?\.([\w.*-]|\\\.)*\$?)?$/;

const READING: readonly string[] = ["list", "l", "get", "get-all", "get-regexp"];

export const checkConfig = ({ options, operands }: ParsedArguments): void => {
  const given = options.map(({ name }) => name);
  const asked = READING.filter((name) => given.includes(name));
  const [first, ...more] = operands;
  const verb = asked.length === 0 && (first?.text === "get" || first?.text === "list") ? first.text : asked[0];
  if (asked.length > 1) refuse("takes one of --list, --get, --get-all and --get-regexp; use git config --get KEY");
  if (verb === "list" || verb === "l") refuse("--list also shows passwords; name one key: git config --get user.name");
  const [key, ...rest] = verb !== undefined && asked.length === 0 ? more : operands;
  if (!key || rest.length > (asked.length === 0 ? 0 : 1)) {
    refuse("may only be read; use git config --get KEY", "write");
    return;
  }
  if (key.pattern || key.home) refuse("takes a plain key, without patterns or ~");
  if (rest.some(({ text }) => text.startsWith("-"))) refuse("takes its options before the key: git config --get KEY");
  if (verb === "get-regexp") {
    if (!SECTION.test(key.text)) refuse("--get-regexp takes one section: git config --get-regexp '^alias\\.'");
    return;
  }
  if (!/^[\w-]+\..*[\w-]$/s.test(key.text)) refuse("may only be read; use git config --get KEY", "write");
  if (PRIVATE.test(key.text)) refuse(`${key.text} may contain a password, so it needs approval`);
};
