/** The fields at the top of a Markdown file, between two lines of dashes. Pure.
 *  Invariant: reads the texts that people write there (plain, quoted, folded over lines) and skips everything else; what
 *  it gives is text and never more than that.
 *  Elsewhere: what the fields mean (read-skills.ts). */

export type FrontMatter = { readonly fields: Readonly<Record<string, string>>; readonly body: string };

const FENCE = /^---[ \t]*$/;
const FIELD = /^([A-Za-z][\w-]*):(?:[ \t](.*))?$/;
const BLOCK = /^[|>][-+0-9]*$/;

/** Undefined where the file does not begin with such fields. */
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

/** What stands below a field and belongs to it. */
const indentedAfter = (lines: readonly string[], at: number): readonly string[] => {
  const rest = lines.slice(at + 1);
  const end = rest.findIndex((line) => line.trim() !== "" && !/^[ \t]/.test(line));
  return end < 0 ? rest : rest.slice(0, end);
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
