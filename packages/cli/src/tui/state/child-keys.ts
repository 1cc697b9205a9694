/** A key press, and the keys that act on one child: on its row in the fork strip and on its page.
 *  Invariant: stopping a child needs a second press; nothing here acts by itself.
 *  Elsewhere: all other keys (keys.ts, page-keys.ts). */

import { leavePage, withoutPage } from "./page-stack.ts";
import type { Effect, State, Step } from "./state.ts";

export type KeyPress = {
  /** `escape`, `ctrl+c`, `shift+tab`, `a`; empty for text that is no key. */
  readonly key: string;
  readonly at: number;
  readonly input: InputFacts;
};

/** What a key's meaning depends on. */
export type InputFacts = {
  readonly isEmpty: boolean;
  readonly isOnLastLine: boolean;
  /** A list of completions is open. */
  readonly isCompleting: boolean;
  /** Esc is for the input itself: it ends vi's insert mode. */
  readonly takesEscape?: boolean;
};

/** How soon a second press must follow to confirm the first. */
export const TWICE_MS = 2_000;

export const handled = (state: State, ...effects: readonly Effect[]): Step => ({ state, effects, isHandled: true });

/** The keys for one child, on its row and on its page. */
export const childKey = (state: State, id: string, { key, at }: Pick<KeyPress, "key" | "at">): Step | undefined => {
  const child = state.children.get(id);
  if (!child) return undefined;
  switch (key) {
    case "s":
      return handled({ ...withoutPage(state), focus: "input", composing: { kind: "steer", child: id } });
    case "b":
      return child.isForeground
        ? handled(state, { kind: "background", child: id })
        : handled({ ...state, hint: `${child.label} already runs in the background.` });
    case "x":
      if (child.state === "ended") return handled({ ...state, hint: `${child.label} has ended.` });
      if (state.stopping?.child === id && at - state.stopping.at < TWICE_MS)
        return handled(markStopped(withoutStopping(state), [id]), { kind: "stop", child: id });
      return handled({
        ...state,
        stopping: { child: id, at },
        hint: `Press x again to stop ${child.label}. Its work so far is kept.`,
      });
    case "m":
      if (!child.worktree)
        return handled({ ...state, hint: `${child.label} has no worktree: it works in this checkout.` });
      return handled(leavePage(state), { kind: "command", name: "merge", args: id });
    default:
      return undefined;
  }
};

/** Their end will say who stopped them. */
export const markStopped = (state: State, ids: readonly string[]): State => {
  const children = new Map(state.children);
  for (const id of ids) {
    const child = children.get(id);
    if (child) children.set(id, { ...child, isStopped: true });
  }
  return { ...state, children };
};

const withoutStopping = ({ stopping: _stopping, ...state }: State): State => state;
