/** Which skills are there? Folders with a SKILL.md: the user's own and those of a trusted project.
 *  Invariant: not a byte of an untrusted folder is read. A project's skills are read without following links. A skill's
 *  name is a plain word and equals its folder's name. Sizes and numbers are bounded, and notices say what was skipped.
 *  The text read here is what was trusted and what is used, so a file that changes later has no effect.
 *  Elsewhere: what the model is told and given (extension.ts), trust (@prefork/guard). */

import { realpath, stat } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { openRoot, type Root, tamperingRisk } from "@prefork/guard";
import { isEntryOf } from "@prefork/guard/internal";
import { oneLine } from "../../context/index.ts";

export type Skill = {
  readonly name: string;
  readonly description: string;
  readonly body: string;
  /** Where its other files are. */
  readonly folder: string;
  /** Set if it runs as a fork and not in the conversation. */
  readonly context?: "fork";
};

export type SkillSources = {
  readonly home: string;
  readonly project: string;
  /** The project's skills are only read if this is true. */
  readonly trusted: boolean;
  /** The trusted files, by name: any other file is skipped. Default: every file is accepted. */
  readonly entries?: Readonly<Record<string, string>>;
};

export type FoundSkills = { readonly skills: readonly Skill[]; readonly notices: readonly string[] };

const FOLDERS = [".prefork/skills", ".agents/skills", ".claude/skills"] as const;
const FILE = "SKILL.md";
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const MAX_NAME = 64;
const MAX_SKILLS = 200;
const MAX_BYTES = 128_000;
const MAX_DESCRIPTION = 1_024;

export const readSkills = async ({ home, project, trusted, entries }: SkillSources): Promise<FoundSkills> => {
  const gathering = new SkillReader(entries);
  for (const folder of FOLDERS) await gathering.own(join(home, folder));
  if (trusted && project !== home) await gathering.project(project);
  return gathering.found();
};

class SkillReader {
  readonly #skills = new Map<string, Skill>();
  readonly #notices: string[] = [];
  readonly #trusted: SkillSources["entries"];

  constructor(trusted: SkillSources["entries"]) {
    this.#trusted = trusted;
  }

  found(): FoundSkills {
    const skills = [...this.#skills.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    return { skills, notices: this.#notices };
  }

  /** The user may link their own skills. */
  async own(folder: string): Promise<void> {
    const real = await realpath(folder).catch(() => undefined);
    if (real === undefined || !(await stat(real)).isDirectory()) return;
    await using root = await openRoot(real);
    const listed = await root.list(root.path);
    if (!listed.ok) return this.#leaveOut(folder, listed.reason);
    for (const { name, kind } of listed.entries) {
      const target = kind === "link" ? await realpath(join(real, name)).catch(() => undefined) : join(real, name);
      if (target === undefined || !(await stat(target)).isDirectory()) continue;
      await using inner = await openRoot(target);
      await this.#take({ root: inner, path: inner.path, name, isOwn: true });
    }
  }

  async project(folder: string): Promise<void> {
    await using root = await openRoot(folder);
    for (const below of FOLDERS) {
      const looked = await root.look(join(root.path, below));
      if (!looked.ok) this.#leaveOut(join(folder, below), looked.reason);
      if (!looked.ok || looked.facts === undefined) continue;
      const listed = await root.list(join(root.path, below));
      if (!listed.ok) this.#leaveOut(join(folder, below), listed.reason);
      for (const { name, kind } of listed.ok ? listed.entries : [])
        if (kind === "folder") await this.#take({ root, path: join(root.path, below, name), name });
        else if (kind === "link")
          this.#leaveOut(join(folder, below, name), "this is a link, and links are not followed");
    }
  }

  async #take({ root, path, name, isOwn = false }: SkillFolder): Promise<void> {
    const file = join(path, FILE);
    const looked = await root.look(file);
    if (looked.ok && looked.facts === undefined) return;
    if (!NAME.test(name) || name.length > MAX_NAME)
      return this.#leaveOut(path, `a skill's name has at most ${MAX_NAME} small letters, digits and single dashes`);
    const before = this.#skills.get(name);
    if (before) return this.#leaveOut(path, `there is another one with this name in ${before.folder}`);
    if (this.#skills.size === MAX_SKILLS) return this.#leaveOut(path, `there are more than ${MAX_SKILLS}`);
    const risk = isOwn ? await tamperingRisk(file) : undefined;
    if (risk !== undefined) return this.#leaveOut(file, risk);
    const read = await root.read(file, { maxBytes: MAX_BYTES });
    if (!read.ok) return this.#leaveOut(file, read.reason);
    if (!isOwn && this.#trusted && !isEntryOf(this.#trusted[relative(root.path, file)], read.bytes))
      return this.#leaveOut(file, "it was changed while prefork started");
    const skill = parseSkill(read.bytes.toString("utf8"), path, name);
    if (typeof skill === "string") return this.#leaveOut(file, skill);
    this.#skills.set(name, skill);
  }

  #leaveOut(path: string, reason: string): void {
    this.#notices.push(`skill ${path} is skipped: ${reason}`);
  }
}

type SkillFolder = {
  readonly root: Root;
  readonly path: string;
  readonly name: string;
  /** The user's own, not a project's: whoever can write it speaks for the user. */
  readonly isOwn?: boolean;
};

/** The skill, or what is wrong with its file. */
const parseSkill = (text: string, path: string, folder: string): Skill | string => {
  if (text.includes("\0")) return "it is no text";
  const read = readFrontMatter(text);
  if (!read) return "it does not begin with name and description between two lines of ---";
  const { name = folder, description = "", context } = read.fields;
  if (name !== folder) return `it is named ${JSON.stringify(oneLine(name, 80))}, but its folder is ${basename(path)}`;
  if (description === "") return "it has no description";
  return {
    name,
    description: oneLine(description, MAX_DESCRIPTION),
    body: read.body.trim(),
    folder: path,
    ...(context === "fork" ? { context } : {}),
  };
};

/** The fields at the top of a Markdown file, between two lines of dashes. Reads the values that people write there
 *  (plain, quoted, folded over lines) as text, and skips everything else. Pure. */

export type FrontMatter = { readonly fields: Readonly<Record<string, string>>; readonly body: string };

const FENCE = /^---[ \t]*$/;
const FIELD = /^([A-Za-z][\w-]*):(?:[ \t](.*))?$/;
const BLOCK = /^[|>][-+0-9]*$/;

/** Undefined if the file does not begin with such fields. */
export const readFrontMatter = (text: string): FrontMatter | undefined => {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (!FENCE.test(lines[0] ?? "")) return undefined;
  const end = lines.findIndex((line, at) => at > 0 && FENCE.test(line));
  if (end < 0) return undefined;
  return { fields: fieldsIn(lines.slice(1, end)), body: lines.slice(end + 1).join("\n") };
};

const fieldsIn = (lines: readonly string[]): Readonly<Record<string, string>> => {
  const fields = new Map<string, string>();
  for (let at = 0; at < lines.length; at++) {
    const [, name, value = ""] = FIELD.exec(lines[at] ?? "") ?? [];
    if (name === undefined) continue;
    const below = indentedAfter(lines, at);
    at += below.length;
    if (!fields.has(name)) fields.set(name, textOf(value.trim(), below));
  }
  return Object.fromEntries(fields);
};

/** The indented lines below a field that belong to it. */
const indentedAfter = (lines: readonly string[], at: number): readonly string[] => {
  let end = at + 1;
  while (end < lines.length && /^(?:[ \t]|\s*$)/.test(lines[end] ?? "")) end++;
  return lines.slice(at + 1, end);
};

const textOf = (value: string, below: readonly string[]): string => {
  const words = below.map((line) => line.trim());
  if (BLOCK.test(value)) return words.join(value.startsWith("|") ? "\n" : " ").trim();
  return unquoted([value, ...words].join(" ").trim());
};

const unquoted = (text: string): string => {
  if (/^'.*'$/s.test(text)) return text.slice(1, -1).replaceAll("''", "'");
  if (/^".*"$/s.test(text)) return text.slice(1, -1).replace(/\\(["\\])/g, "$1");
  return (text.split(" #")[0] ?? "").trimEnd();
};
