/** What do rules mean for an agent that works in a worktree of the folder they were written for?
 *  Invariant: nothing is loosened. What is allowed or asked about in the folder is allowed or asked about in the
 *  worktree, what is denied is denied in both, and the folder itself is closed.
 *  Elsewhere: what a rule covers (rules.ts), which agents work in a worktree (the caller). */

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

/** A rule, and what it means in the worktree. */
export const inBoth = (rule: Rule, move: Move): readonly Rule[] => {
  const { form } = rule;
  const pattern = form.kind === "path" ? movedPattern(form.pattern, move) : undefined;
  return form.kind === "path" && pattern ? [rule, { ...rule, form: { ...form, pattern } }] : [rule];
};

/** A path in the folder becomes the path in the worktree; any other path stays as it is. */
export const movedPath = (path: string, { from, to }: Move): string => {
  if (path === from) return to;
  return path.startsWith(`${from}/`) ? to + path.slice(from.length) : path;
};

/** Worktrees of one repository share its stash, so changing it would affect the parent too. */
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

/** Escapes a folder's name, so that it is not read as a pattern. */
const escaped = (path: string): string => path.replace(/[*?[\]{}!@+()]/g, "?");
