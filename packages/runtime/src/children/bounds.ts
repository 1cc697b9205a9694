/** Where a child may work: in its copy of the checkout, or beside its siblings without writing what one of them writes.
 *  Invariant: a path into the parent's checkout never leads there from a copy; a file has one writer among the children
 *  of a session, and is free again when that one has ended.
 *  Elsewhere: what commands may touch (@prefork/guard), the copy (isolation.ts). */

import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Touches } from "@prefork/guard";
import { movedPath } from "@prefork/guard/internal";
import type { JsonObject } from "@prefork/wire";
import type { NamedCall } from "../tools/index.ts";
import type { Folders } from "./worktree-notice.ts";

/** A call that touches the checkout, as one that touches the copy: the argument that names the path is the one whose change
 *  changes what the call touches. */
export const relocated = (
  call: NamedCall,
  tops: Folders,
  touchesOf: (call: NamedCall) => Touches | undefined,
): { readonly input: string; readonly note: string } | undefined => {
  const before = pathsOf(touchesOf(call));
  const args = before.length === 0 ? undefined : objectIn(call.input);
  for (const [field, path] of Object.entries(args ?? {})) {
    if (typeof path !== "string" || !path.startsWith("/") || !before.includes(path)) continue;
    const plain = resolve(path);
    const moved = movedPath(plain, tops);
    const input = JSON.stringify({ ...args, [field]: moved });
    if (moved === plain || !pathsOf(touchesOf({ ...call, input })).includes(moved)) continue;
    const note = `[${plain} is in the checkout that you were forked from; this is ${moved} in your worktree]`;
    return { input, note };
  }
  return undefined;
};

const pathsOf = ({ reads = [], writes = [] }: Touches = {}): readonly string[] => [...reads, ...writes];

const objectIn = (input: string): JsonObject | undefined => {
  try {
    const value: unknown = JSON.parse(input);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
};

export type Holder = { readonly task: string; readonly label: string };

/** Who writes which file of a checkout that several share. A name that ends in a slash is a folder with all below it. */
export class WriteClaims {
  readonly #held = new Map<string, Holder>();

  /** Takes the files that a call writes, all or none. Gives who has one of them, where somebody else does. */
  take({ writes = [] }: Touches, { cwd, ...holder }: Holder & { readonly cwd: string }): Held | undefined {
    const names = writes.map((path) => canonical(resolve(cwd, path)) + (path.endsWith("/") ? "/" : ""));
    for (const [held, other] of this.#held) {
      const path = other.task === holder.task ? undefined : names.find((name) => overlap(name, held));
      if (path !== undefined) return { ...other, path };
    }
    for (const path of names) this.#held.set(path, holder);
    return undefined;
  }

  release(task: string): void {
    for (const [path, holder] of this.#held) if (holder.task === task) this.#held.delete(path);
  }
}

const overlap = (one: string, other: string): boolean =>
  one === other ||
  (one.endsWith("/") && `${other}/`.startsWith(one)) ||
  (other.endsWith("/") && `${one}/`.startsWith(other));

export type Held = Holder & { readonly path: string };

export const heldText = ({ path, task, label }: Held): string =>
  `Not done: ${path} is being changed by ${task} (${label}), which works beside you, and is free when that has ended. Do the rest of your part, or report what you would have changed here.`;

/** One file has one name here, whatever links lead to its folder. */
const canonical = (path: string): string => {
  try {
    return join(realpathSync.native(dirname(path)), basename(path));
  } catch {
    return path;
  }
};
