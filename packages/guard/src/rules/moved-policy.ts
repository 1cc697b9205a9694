/** What rules mean for somebody who works in a copy of the folder that they were written for.
 *  Invariant: nothing is loosened: what is allowed or asked in the folder is so in the copy, what is denied is denied in
 *  both, and the folder itself is closed.
 *  Elsewhere: what a rule covers (rules.ts), who works in a copy (../session). */

import { type Move, movedPattern } from "./path-rules.ts";
import type { Policy } from "./policy.ts";
import { parseRule, type Rule } from "./rules.ts";

export const movedPolicy = (policy: Policy, move: Move): Policy => {
  const both = (rules: readonly Rule[]): readonly Rule[] => rules.flatMap((rule) => inBoth(rule, move));
  return {
    ...policy,
    allow: both(policy.allow),
    ask: both(policy.ask),
    deny: [...both(policy.deny), ...closed(move)],
    directories: policy.directories.map((folder) => movedPath(folder, move)),
  };
};

/** A rule, and what it means in the copy. */
export const inBoth = (rule: Rule, move: Move): readonly Rule[] => {
  const { form } = rule;
  const pattern = form.kind === "path" ? movedPattern(form.pattern, move) : undefined;
  return form.kind === "path" && pattern ? [rule, { ...rule, form: { ...form, pattern } }] : [rule];
};

/** A path in the folder, in the copy; any other as it is. */
export const movedPath = (path: string, { from, to }: Move): string => {
  if (path === from) return to;
  return path.startsWith(`${from}/`) ? to + path.slice(from.length) : path;
};

/** Checkouts of one repository share its stash: what is put there, or taken from it, is the parent's too. */
const STASH =
  "the stash is shared with your parent's checkout; leave your work where it is, it is committed when you end";

const closed = ({ from, to }: Move): readonly Rule[] => {
  const copy = `your parent's checkout; your own copy of it is ${to}`;
  const rules = [
    { text: `Read(/${escaped(from)}/**)`, origin: copy },
    { text: `Edit(/${escaped(from)}/**)`, origin: copy },
    { text: "Bash(git stash:*)", origin: STASH },
  ];
  return rules.map(({ text, origin }) => {
    const read = parseRule(text, { base: "/", list: "deny", origin });
    if (read.kind === "wrong") throw new TypeError(read.reason);
    return read.rule;
  });
};

/** A folder whose name has signs of a pattern is not one. */
const escaped = (path: string): string => path.replace(/[*?[\]{}!@+()]/g, "?");
