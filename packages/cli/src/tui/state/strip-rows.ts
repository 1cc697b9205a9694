/** Which rows does the fork strip have?
 *  Invariant: running families are listed child by child; a family that is done is one row, and only while its worktrees
 *  wait to be merged.
 *  Elsewhere: how rows look (../views: strip.ts), keys on them (keys.ts). */

import type { Child, State } from "./state.ts";

export type StripRow =
  | { readonly kind: "child"; readonly id: string; readonly family: string; readonly child: Child }
  | { readonly kind: "family"; readonly id: string; readonly family: string; readonly children: readonly Child[] };

export const stripRows = (state: State): readonly StripRow[] => {
  const families = new Map<string, Child[]>();
  for (const child of state.children.values()) {
    const members = families.get(child.family);
    if (members) members.push(child);
    else families.set(child.family, [child]);
  }
  return [...families].flatMap(([family, children]): readonly StripRow[] => {
    const isRunning = children.some(({ state: now }) => now !== "ended");
    const waits = children.some(isMergeable);
    if (isRunning || (waits && (children.length === 1 || state.unfolded.includes(family))))
      return children.map((child) => ({ kind: "child", id: child.id, family, child }));
    return waits ? [{ kind: "family", id: `family:${family}`, family, children }] : [];
  });
};

export const isMergeable = ({ worktree }: Child): boolean => worktree?.state === "ready" && (worktree.files ?? 0) > 0;
