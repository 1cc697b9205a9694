/** Where a child may work: in its copy of the checkout, or beside its siblings without writing what one of them writes.
 *  Invariant: a path into the parent's checkout never leads there from a copy; a file has one writer among the children
 *  of a session, and is free again when that one has ended.
 *  Elsewhere: what commands may touch (../guard), the copy (isolation.ts). */

import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { JsonObject, ToolUseBlock } from "@prefork/wire";
import { movedPath } from "../guard/index.ts";
import type { Folders } from "./worktree-notice.ts";

/** The argument of a tool that is a path. */
const PATHS: Readonly<Record<string, string>> = {
  Read: "file_path",
  Edit: "file_path",
  Write: "file_path",
  Glob: "path",
  Grep: "path",
};

/** A call of a file tool that means the checkout, as one that means the copy. */
export const relocated = (
  call: ToolUseBlock,
  tops: Folders,
): { readonly input: string; readonly note: string } | undefined => {
  const field = PATHS[call.name];
  const args = field === undefined ? undefined : objectIn(call.input);
  const path = field === undefined ? undefined : args?.[field];
  if (field === undefined || !args || typeof path !== "string" || !path.startsWith("/")) return undefined;
  const plain = resolve(path);
  const moved = movedPath(plain, tops);
  if (moved === plain) return undefined;
  const note = `[${plain} is in the checkout that you were forked from; this is ${moved} in your worktree]`;
  return { input: JSON.stringify({ ...args, [field]: moved }), note };
};

const objectIn = (input: string): JsonObject | undefined => {
  try {
    const value: unknown = JSON.parse(input);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
};

export type Holder = { readonly task: string; readonly label: string };

/** Who writes which file of a checkout that several share. */
export class WriteClaims {
  readonly #held = new Map<string, Holder>();

  /** Takes the file that this call writes. Gives who has it, where somebody else does. */
  take(tool: string, args: JsonObject, { cwd, ...holder }: Holder & { readonly cwd: string }): Held | undefined {
    const { file_path: path } = args;
    if ((tool !== "Edit" && tool !== "Write") || typeof path !== "string") return undefined;
    const name = canonical(resolve(cwd, path));
    const other = this.#held.get(name);
    if (other && other.task !== holder.task) return { ...other, path: name };
    this.#held.set(name, holder);
    return undefined;
  }

  release(task: string): void {
    for (const [path, holder] of this.#held) if (holder.task === task) this.#held.delete(path);
  }
}

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
