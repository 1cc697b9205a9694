/** What does a settings file say, or where is it wrong?
 *  Invariant: a file is used as a whole or refused with locations (file, line, column, JSON path). Nothing is guessed, and no field
 *  that its layer may not decide is applied.
 *  Elsewhere: reading files (../settings), merging layers (policy.ts), what a rule means (rules.ts). */

import { findNodeAtLocation, type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import * as z from "zod";
import { judgePath } from "../paths/index.ts";
import { nearest } from "./nearest.ts";
import type { PathPlace } from "./path-rules.ts";
import { acceptedRules, type Layer, type LayerSettings, type Mode, mayLoosen, TIGHTENING } from "./policy.ts";
import { failingExample, parseRule, type Rule, type RuleExamples, type RuleList } from "./rules.ts";
import { type ForkRules, type PermissionSettings, type SettingsFile, settingsFile } from "./settings-file.ts";
import { isTooBroad } from "./suggest.ts";

export type SettingsSource = PathPlace & {
  /** The name of the file in errors. */
  readonly name: string;
  readonly layer: Layer;
  readonly tools?: readonly string[] | "any";
  /** Of a project: whether the user accepted this allow rule. Default: none. */
  readonly accepts?: (rule: string) => boolean;
};

export type SettingsProblem = {
  readonly name: string;
  readonly line: number;
  readonly column: number;
  /** `permissions.allow[2]`; empty for the whole file. */
  readonly path: string;
  readonly message: string;
};

export type SettingsReading =
  | { readonly kind: "settings"; readonly settings: LayerSettings }
  | { readonly kind: "broken"; readonly problems: readonly SettingsProblem[] };

export const describeProblem = ({ name, line, column, path, message }: SettingsProblem): string =>
  `${name}:${line}:${column}: ${path === "" ? "" : `${path}: `}${message}`;

type JsonPath = readonly (string | number)[];
type Complaint = { readonly path: JsonPath; readonly message: string };

export const parseSettings = (text: string, source: SettingsSource): SettingsReading => {
  const read = placedText(text, source.name);
  if (read.kind === "broken") return read;
  const checked = settingsFile.safeParse(read.value, { reportInput: true });
  if (!checked.success) return read.broken(checked.error.issues.map(complaintOf));
  const { settings, complaints } = readLayer(checked.data, source);
  return complaints.length > 0 ? read.broken(complaints) : { kind: "settings", settings };
};

type Broken = Extract<SettingsReading, { kind: "broken" }>;

export type PlacedText =
  | {
      readonly kind: "value";
      readonly value: unknown;
      /** Problems with the value, each with its location in the text. */
      readonly broken: (complaints: readonly Complaint[]) => Broken;
    }
  | Broken;

/** Parses a file's text. Comments and trailing commas are allowed; a duplicate name is not. */
export const placedText = (text: string, name: string): PlacedText => {
  const json = text.replace(/^\uFEFF/, "");
  const placeAt = (offset: number): { line: number; column: number } => {
    const lines = json.slice(0, offset).split("\n");
    return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 };
  };
  const broken = (problems: readonly (Complaint & { readonly offset: number })[]): Broken => ({
    kind: "broken",
    problems: problems.map(({ path, message, offset }) => ({
      name,
      ...placeAt(offset),
      path: pathText(path),
      message,
    })),
  });
  const tree = readTree(json);
  if ("message" in tree) return broken([{ ...tree, path: [] }]);
  const repeated = repeatedKeys(tree.root);
  if (repeated.length > 0) return broken(repeated);
  return {
    kind: "value",
    value: plainValue(tree.root),
    broken: (complaints) =>
      broken(complaints.map((complaint) => ({ ...complaint, offset: offsetOf(tree.root, complaint.path) }))),
  };
};

// --- the text ----------------------------------------------------------------------------------------------------------

const readTree = (json: string): { readonly root: Node } | { readonly message: string; readonly offset: number } => {
  const errors: ParseError[] = [];
  let root: Node | undefined;
  try {
    root = parseTree(json, errors, { allowTrailingComma: true });
  } catch {
    return { message: "is nested too deeply", offset: 0 };
  }
  const [error] = errors;
  if (error) return { message: `not JSON: ${wordsOf(printParseErrorCode(error.error))}`, offset: error.offset };
  return root ? { root } : { message: "is empty; write {}", offset: 0 };
};

/** CommaExpected → "comma expected". */
const wordsOf = (code: string): string => code.replace(/(?<=.)([A-Z])/g, " $1").toLowerCase();

/** A duplicate name would silently override the first. */
const repeatedKeys = (root: Node, path: JsonPath = []): readonly (Complaint & { readonly offset: number })[] => {
  const seen = new Set<string>();
  return (root.children ?? []).flatMap((child, index) => {
    if (root.type === "array") return repeatedKeys(child, [...path, index]);
    const [key, value] = child.children ?? [];
    const name = String(key?.value);
    const here = [...path, name];
    const isRepeated = seen.has(name) || name === "__proto__";
    seen.add(name);
    const message = name === "__proto__" ? "unknown field" : "occurs here twice";
    return [
      ...(isRepeated ? [{ path: here, message, offset: child.offset }] : []),
      ...(value ? repeatedKeys(value, here) : []),
    ];
  });
};

const plainValue = (node: Node): unknown => {
  if (node.type === "array") return node.children?.map(plainValue) ?? [];
  if (node.type !== "object") return node.value;
  return Object.fromEntries(
    (node.children ?? []).map(({ children: [key, value] = [] }) => [key?.value, value && plainValue(value)]),
  );
};

/** The location of the value; for a missing one, where it should be. */
const offsetOf = (root: Node, path: JsonPath): number => {
  for (let length = path.length; length > 0; length--) {
    const node = findNodeAtLocation(root, path.slice(0, length));
    if (node) return node.parent?.type === "property" && length === path.length ? node.parent.offset : node.offset;
  }
  return root.offset;
};

const pathText = (path: JsonPath): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    if (!/^[A-Za-z_$][\w$-]*$/.test(key)) return `${text}[${JSON.stringify(key)}]`;
    return text === "" ? key : `${text}.${key}`;
  }, "");

// --- the shape ---------------------------------------------------------------------------------------------------------

const RULE_FORM = "must be a rule's text, or {rule, match, notMatch}";
const COMMAND_FORM = 'must be a text, or a list of a program and its arguments: ["my-status", "--short"]';

const complaintOf = (issue: z.core.$ZodIssue): Complaint => {
  const path = issue.path.map((key) => (typeof key === "number" ? key : String(key)));
  if (issue.code === "unrecognized_keys") {
    const [key = ""] = issue.keys;
    const meant = nearest(key, fieldsAt(path));
    return { path: [...path, key], message: `unknown field${meant === undefined ? "" : `; did you mean ${meant}?`}` };
  }
  if (issue.code === "invalid_union") {
    const inner = typeof issue.input === "object" ? issue.errors.at(-1)?.[0] : undefined;
    if (!inner) return { path, message: path[0] === "terminal" ? COMMAND_FORM : RULE_FORM };
    const { path: below, message } = complaintOf({ ...inner, path: [...issue.path, ...inner.path] });
    return { path: below, message };
  }
  if (issue.code === "invalid_value") {
    const values = issue.values.map((value) => JSON.stringify(value)).join(", ");
    const hint = issue.input === "bypass" ? "; bypass is chosen by a flag at each start, never by a file" : "";
    return { path, message: `must be one of ${values}${hint}` };
  }
  if (issue.code === "invalid_type" && issue.input === undefined) return { path, message: "missing" };
  return { path, message: issue.message.replace(/^Invalid input: /, "") };
};

/** The known fields at the location of an unknown one. */
const fieldsAt = (path: JsonPath): readonly string[] => {
  let schema = bare(settingsFile);
  for (const key of path) {
    if (schema instanceof z.ZodArray) schema = bare(schema.element);
    else if (schema instanceof z.ZodObject) schema = bare(schema.shape[String(key)] ?? schema);
  }
  if (schema instanceof z.ZodUnion) schema = bare(schema.options.at(-1) ?? schema);
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
};

const bare = (schema: z.core.$ZodType): z.core.$ZodType =>
  schema instanceof z.ZodExactOptional ? bare(schema.unwrap()) : schema;

// --- the meaning -------------------------------------------------------------------------------------------------------

type LayerReading = { readonly settings: LayerSettings; readonly complaints: readonly Complaint[] };

const LISTS: readonly RuleList[] = ["allow", "ask", "deny"];

const readLayer = (file: SettingsFile, given: SettingsSource): LayerReading => {
  const { permissions = {}, forks, worktrees, sandbox, mcpServers: servers, extensions, terminal } = file;
  const source: SettingsSource = extensions && mayLoosen(given.layer) ? { ...given, tools: "any" } : given;
  const complaints: Complaint[] = [];
  const rules = LISTS.flatMap((list) => readRules(permissions[list] ?? [], { list, source, complaints }));
  const directories = (permissions.additionalDirectories ?? []).flatMap((text, index) => {
    const judged = readDirectory(text, source);
    if (judged.startsWith("/")) return [judged];
    complaints.push({ path: ["permissions", "additionalDirectories", index], message: judged });
    return [];
  });
  const programs = permissions.readOnlyPrograms ?? [];
  programs.forEach(({ name }, index) => {
    if (!isTooBroad(name)) return;
    const message = `${name} runs or changes other things, so it is never read-only`;
    complaints.push({ path: ["permissions", "readOnlyPrograms", index], message });
  });
  const free = mayLoosen(source.layer);
  const refused = [
    ...refusedFields(permissions, source),
    ...refusedForks(forks ?? {}, source),
    ...(free || worktrees === undefined ? [] : ["worktrees"]),
    ...(free || extensions === undefined ? [] : ["extensions"]),
    ...(free ? [] : Object.keys(terminal ?? {}).map((field) => `terminal.${field}`)),
  ];
  const offered = free ? [] : rules.filter(({ list }) => list === "allow");
  const { accepted, notices } = acceptedRules(offered, source);
  const settings: LayerSettings = {
    layer: source.layer,
    rules: free ? rules : rules.filter(({ list }) => list !== "allow"),
    ...(offered.length === 0 ? {} : { offered }),
    ...(accepted.length === 0 ? {} : { accepted }),
    ...(free && permissions.mode !== undefined ? { mode: permissions.mode } : {}),
    directories: free ? directories : [],
    readOnlyPrograms: free ? programs : [],
    ...(sandbox?.mode !== undefined ? { sandbox: sandbox.mode } : {}),
    ...(forks === undefined ? {} : { forks }),
    ...(free && worktrees !== undefined ? { worktrees } : {}),
    ...(servers === undefined ? {} : { servers }),
    ...(free && extensions !== undefined ? { extensions } : {}),
    ...(free && terminal !== undefined ? { terminal } : {}),
    notices: [
      ...notices,
      ...refused.map(
        (field) => `${source.name}: ${field}: skipped, because only your own settings and the command line may set it`,
      ),
    ],
  };
  return { settings, complaints };
};

const refusedFields = (permissions: PermissionSettings, { layer }: SettingsSource): readonly string[] => {
  if (mayLoosen(layer)) return [];
  const fields = ["mode", "additionalDirectories", "readOnlyPrograms"] as const;
  return fields.filter((field) => permissions[field] !== undefined).map((field) => `permissions.${field}`);
};

/** Reports settings that a project may not make. */
const refusedForks = (forks: ForkRules, { layer }: SettingsSource): readonly string[] =>
  mayLoosen(layer)
    ? []
    : Object.entries(forks)
        .filter(([field, value]) => !TIGHTENING.includes(field) || (field === "enabled" ? value : value === false))
        .map(([field]) => `forks.${field}`);

type RuleEntries = NonNullable<PermissionSettings["allow"]>;
type RulesInto = { readonly list: RuleList; readonly source: SettingsSource; readonly complaints: Complaint[] };

const readRules = (entries: RuleEntries, { list, source, complaints }: RulesInto): readonly Rule[] =>
  entries.flatMap((entry, index) => {
    const path: JsonPath = ["permissions", list, index];
    const text = typeof entry === "string" ? entry : entry.rule;
    const examples: RuleExamples = typeof entry === "string" ? {} : entry;
    const read = parseRule(text, { ...source, list, origin: source.name });
    if (read.kind === "wrong") {
      complaints.push({ path, message: read.reason });
      return [];
    }
    const failing = failingExample(read.rule, examples, source);
    if (failing !== undefined) complaints.push({ path, message: failing });
    return [read.rule];
  });

/** An absolute path, or why it is invalid. */
const readDirectory = (text: string, { base, home }: PathPlace): string => {
  if (/^~(\/|$)/.test(text) && home === undefined) return "starts with ~, but no home folder is known";
  const spelled = text.replace(/^~(?=\/|$)/, home ?? "~");
  if (spelled.split("/").includes("..")) return `".." is refused in a folder; write the place it leads to`;
  const judged = judgePath(spelled.startsWith("/") ? spelled : `${base}/${spelled}`);
  if (!judged.ok) return judged.reason;
  return judged.parts.length === 0 ? "is the whole file system; name a folder" : judged.path;
};

// --- the command line --------------------------------------------------------------------------------------------------

export type PermissionFlags = {
  readonly allow?: readonly string[];
  readonly ask?: readonly string[];
  readonly deny?: readonly string[];
  readonly mode?: Mode;
  readonly directories?: readonly string[];
};

/** The command line as a layer, or why it is invalid. Only here can the mode be `bypass`. */
export const settingsOfFlags = (
  flags: PermissionFlags,
  place: PathPlace & Pick<SettingsSource, "tools">,
): LayerSettings | string => {
  const source: SettingsSource = { ...place, name: "the command line", layer: "command-line" };
  const { mode, directories, ...lists } = flags;
  const given = Object.fromEntries(Object.entries(lists).map(([list, rules]) => [list, [...(rules ?? [])]]));
  const { settings, complaints } = readLayer(
    { permissions: { ...given, ...(directories ? { additionalDirectories: [...directories] } : {}) } },
    source,
  );
  const [complaint] = complaints;
  if (complaint) return complaint.message;
  return mode === undefined ? settings : { ...settings, mode };
};
