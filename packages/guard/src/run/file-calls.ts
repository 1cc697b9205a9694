/** A call of a file tool under the memory filter: may it run, and what does it do?
 *  Invariant: the filter judges the text of the path, the root judges what is on the disk at the moment of use; both
 *  must agree, and both get the path from the same parsed arguments.
 *  Elsewhere: the filter and the arguments (../rules), holding files (../files). */

import { setImmediate } from "node:timers/promises";
import type { Root } from "../files/index.ts";
import type { Json } from "../json.ts";
import type { Refused } from "../paths/index.ts";
import {
  applyFilter,
  type FilterContext,
  type FilterVerdict,
  readArguments,
  type ToolCall,
  writesInside,
} from "../rules/index.ts";
import { editText, type TextEdit } from "./edit-text.ts";

export type FileCallAnswer = { readonly allowed: boolean; readonly reason: string };

const denied = (reason: string): FileCallAnswer => ({ allowed: false, reason });

type Writing = { readonly path: string; readonly tool: "Write" | "Edit" | "MultiEdit"; readonly call: ToolCall };

/** The calls whose path the root must check; undefined if the filter's decision is enough. */
const writingOf = (call: ToolCall): Writing | undefined => {
  const read = readArguments(call);
  if (!read.ok || read.subject === undefined) return undefined;
  const { tool, subject: path } = read;
  return tool === "Write" || tool === "Edit" || tool === "MultiEdit" ? { path, tool, call } : undefined;
};

/** May this call run? Changes nothing. */
export const checkFileCall = async (root: Root, call: ToolCall, context: FilterContext): Promise<FileCallAnswer> => {
  const verdict: FilterVerdict = applyFilter(writesInside(root.names), call, context);
  if (!verdict.allowed) return verdict;
  const writing = writingOf(call);
  if (writing === undefined) return { allowed: true, reason: "only reads" };
  const may = await root.mayWrite(writing.path);
  return may.ok ? { allowed: true, reason: `inside ${root.path}` } : denied(may.reason);
};

const asEdit = (value: Json | undefined): TextEdit | undefined => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { old_string, new_string, replace_all = false } = value as { readonly [key: string]: Json };
  if (typeof old_string !== "string" || typeof new_string !== "string" || typeof replace_all !== "boolean")
    return undefined;
  return { old_string, new_string, replace_all };
};

const editsOf = ({ tool, call }: Writing): readonly (TextEdit | undefined)[] => {
  const { edits } = call.args;
  if (tool === "Edit" && edits === undefined) return [asEdit(call.args)];
  return Array.isArray(edits) && edits.length > 0 ? edits.map(asEdit) : [undefined];
};

const edit = async (root: Root, writing: Writing): Promise<{ readonly ok: true } | Refused> => {
  const read = await root.read(writing.path);
  if (!read.ok) return read;
  const before = decoded(read.bytes);
  if (before === undefined) return { ok: false, reason: "the file is not text" };
  let text = before;
  for (const each of editsOf(writing)) {
    if (each === undefined) return { ok: false, reason: "an edit needs old_string and new_string, both text" };
    await setImmediate(); // each edit scans the whole text, and there may be many
    const edited = editText(text, each);
    if (!edited.ok) return edited;
    text = edited.text;
  }
  return root.write(writing.path, text, { expected: read.facts.version });
};

/** Undefined for bytes that decoding and encoding would change. */
const decoded = (bytes: Buffer): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
};

/** Checks, then writes or edits as the tool does. Calls that only read are checked and not run. */
export const performFileCall = async (root: Root, call: ToolCall, context: FilterContext): Promise<FileCallAnswer> => {
  const verdict: FilterVerdict = applyFilter(writesInside(root.names), call, context);
  if (!verdict.allowed) return verdict;
  const writing = writingOf(call);
  if (writing === undefined) return { allowed: true, reason: "only reads" };
  if (writing.tool !== "Write") {
    const edited = await edit(root, writing);
    return edited.ok ? { allowed: true, reason: `edited inside ${root.path}` } : denied(edited.reason);
  }
  const { content } = call.args;
  if (typeof content !== "string") return denied('"content" is missing');
  const written = await root.write(writing.path, content);
  if (!written.ok) return denied(written.reason);
  return { allowed: true, reason: `${written.created ? "made" : "written"} inside ${root.path}` };
};
