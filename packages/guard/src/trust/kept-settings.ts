/** Which of a project's settings stay in force when its files change after they were trusted? All that tighten. Otherwise, anyone
 *  who can write to the folder could lift its denials by changing one letter.
 *  Invariant: taken from exactly the bytes that were trusted. Nothing that allows, starts or names a program is kept, and no other
 *  value of the file, which may contain secrets.
 *  Elsewhere: the record it is kept in (store.ts), applying it (../settings). */

import { join } from "node:path";
import type { Root } from "../files/index.ts";
import { placedText, TIGHTENING } from "../rules/index.ts";
import { isEntryOf } from "./configuration.ts";

/** The part of one settings file that tightens, as a settings file of its own. */
export type KeptSettings = {
  /** Relative to the folder. */
  readonly file: string;
  readonly text: string;
};

const FILES = [
  ".prefork/settings.json",
  ".prefork/settings.local.json",
  ".claude/settings.json",
  ".claude/settings.local.json",
];

/** Reads an open folder's settings; `entries`: the trusted hashes. */
export const keptSettings = async (
  root: Root,
  entries: Readonly<Record<string, string>>,
): Promise<readonly KeptSettings[]> => {
  const kept: KeptSettings[] = [];
  for (const file of FILES) {
    if (entries[file] === undefined) continue;
    const read = await root.read(join(root.path, file));
    if (!read.ok || !isEntryOf(entries[file], read.bytes)) continue;
    const settings = tighteningOf(read.bytes.toString("utf8"), file);
    if (settings !== undefined) kept.push({ file, text: JSON.stringify(settings) });
  }
  return kept;
};

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** A broken file tightens nothing: no session starts with it. */
const tighteningOf = (text: string, file: string): Fields | undefined => {
  const read = placedText(text, file);
  if (read.kind === "broken") return undefined;
  const { permissions, sandbox, forks } = fieldsOf(read.value);
  const { ask, deny } = fieldsOf(permissions);
  const { mode } = fieldsOf(sandbox);
  const isOurs = file.startsWith(".prefork/");
  const narrowed = Object.entries(fieldsOf(forks)).filter(([field]) => TIGHTENING.includes(field));
  const lists = { ...listOf("ask", ask), ...listOf("deny", deny) };
  const settings = {
    ...(Object.keys(lists).length === 0 ? {} : { permissions: lists }),
    ...(isOurs && mode !== undefined ? { sandbox: { mode } } : {}),
    ...(isOurs && narrowed.length > 0 ? { forks: Object.fromEntries(narrowed) } : {}),
  };
  return Object.keys(settings).length === 0 ? undefined : settings;
};

/** A rule may have examples, which were checked when it was first read. */
const listOf = (name: string, rules: unknown): Fields => {
  const texts = (Array.isArray(rules) ? rules : []).flatMap((rule: unknown) => {
    const text = typeof rule === "string" ? rule : fieldsOf(rule).rule;
    return typeof text === "string" ? [text] : [];
  });
  return texts.length === 0 ? {} : { [name]: texts };
};
