/** Which parts of a project's `.claude/settings.json` apply here? Its permission rules, with the meaning they have in Claude Code.
 *  Invariant: rules that ask and deny apply; rules that allow are offered, and apply only if the user has accepted them. Nothing
 *  else is used, and everything that does not apply is reported.
 *  Elsewhere: our own files (settings.ts), which layer may do what (policy.ts), what was accepted (../trust). */

import * as z from "zod";
import { acceptedRules, type LayerSettings } from "./policy.ts";
import { parseRule, type Rule, type RuleList } from "./rules.ts";
import { placedText, type SettingsReading, type SettingsSource } from "./settings.ts";

const lists = z.object({
  allow: z.array(z.string()).optional(),
  ask: z.array(z.string()).optional(),
  deny: z.array(z.string()).optional(),
});
const file = z.object({ permissions: lists.loose().optional() }).loose();

export const parseClaudeSettings = (text: string, source: SettingsSource): SettingsReading => {
  const read = placedText(text, source.name);
  if (read.kind === "broken") return read;
  const checked = file.safeParse(read.value);
  if (!checked.success)
    return read.broken(
      checked.error.issues.map(({ path, message }) => ({
        path: path.map((key) => (typeof key === "number" ? key : String(key))),
        message: message.replace(/^Invalid input: /, ""),
      })),
    );
  const { permissions = {}, ...others } = checked.data;
  const { allow = [], ask = [], deny = [], ...rest } = permissions;
  const unusable: string[] = [];
  const rulesOf = (texts: readonly string[], list: RuleList): readonly Rule[] =>
    texts.flatMap((written) => {
      const rule = readClaudeRule(written, { list, source });
      if (typeof rule === "string") unusable.push(`${list} ${written} (${rule})`);
      return typeof rule === "string" ? [] : [rule];
    });
  const offered = rulesOf(allow, "allow");
  const { accepted, notices } = acceptedRules(offered, source);
  const unused = [...Object.keys(rest).map((field) => `permissions.${field}`), ...fieldsOf(others)];
  const settings: LayerSettings = {
    layer: source.layer,
    rules: [...rulesOf(ask, "ask"), ...rulesOf(deny, "deny")],
    ...(offered.length === 0 ? {} : { offered }),
    ...(accepted.length === 0 ? {} : { accepted }),
    directories: [],
    readOnlyPrograms: [],
    notices: [
      ...notices,
      ...(unused.length === 0 ? [] : [`${source.name}: not applied: ${unused.join(", ")}`]),
      ...(unusable.length === 0 ? [] : [`${source.name}: rules that are not applied: ${unusable.join("; ")}`]),
    ],
  };
  return { kind: "settings", settings };
};

/** Variables are reported one by one, so the user sees what a project tried to set. */
const fieldsOf = (others: Readonly<Record<string, unknown>>): readonly string[] =>
  Object.entries(others).flatMap(([field, value]) => {
    if (field === "$schema") return [];
    const names = field === "env" && typeof value === "object" && value !== null ? Object.keys(value) : [];
    return [names.length === 0 ? field : `${field} (${names.join(", ")})`];
  });

type RulePlace = { readonly list: RuleList; readonly source: SettingsSource };

/** Tools that touch the same files under another name. To ask or deny, a rule for one applies to all of them. */
const SAME_AS: Readonly<Record<string, string>> = {
  Grep: "Read",
  Glob: "Read",
  LS: "Read",
  NotebookRead: "Read",
  MultiEdit: "Edit",
  NotebookEdit: "Edit",
};

/** The rule, or why it does not apply. */
const readClaudeRule = (written: string, { list, source }: RulePlace): Rule | string => {
  const read = (text: string) => parseRule(text, { ...source, slash: "base", list, origin: source.name });
  const first = read(written);
  if (first.kind === "rule") return first.rule;
  // A tool that another program has is not a typing error.
  const reason = first.reason.slice(JSON.stringify(written).length + 1).replace(/; did you mean .*$/, "");
  if (list === "allow") return reason;
  for (const other of widened(written)) {
    const reread = read(other);
    if (reread.kind === "rule") return { ...reread.rule, text: written };
  }
  return reason;
};

/** A broader rule for one that tightens and that we cannot express exactly. */
const widened = (written: string): readonly string[] => {
  const [, tool = "", pattern = ""] = /^(\w+)\((.*)\)$/s.exec(written) ?? [];
  const same = SAME_AS[tool];
  if (same !== undefined) return [`${same}(${pattern})`];
  // `Bash(curl*)` and `Bash(git push *--force*)`: everything that begins with the words before the star.
  if (tool === "Bash") return [`Bash(${pattern.replace(/(?<!\s)\s*\*.*$/s, "")}:*)`];
  // `WebFetch(domain:*.example.com)`: a rule for a host that tightens applies to all its subdomains.
  if (tool === "WebFetch") return [`WebFetch(${pattern.replace(/^domain:\*\./, "domain:").toLowerCase()})`];
  return [];
};
