/** What a fork reported, taken apart. Pure.
 *  Invariant: whatever was written is kept as text; what does not have the form is said in a note, never dropped.
 *  Elsewhere: the form it was asked for (fork-messages of @prefork/wire), checking claims (claims.ts). */

import type { Report } from "../ports.ts";

export type ReadReport =
  | { readonly kind: "report"; readonly report: Report; readonly text: string }
  | { readonly kind: "text"; readonly text: string; readonly note: string };

const LABELS = ["Scope", "Result", "Key files", "Files changed", "Issues"] as const;
type Label = (typeof LABELS)[number];

const HEADING = /^[ \t]*(?:[*#_-]+[ \t]*)?(Scope|Result|Key files|Files changed|Issues)[*_]*[ \t]*:[*_]*[ \t]?(.*)$/gim;

export const readReport = (text: string): ReadReport => {
  const parts = partsOf(text);
  const scope = parts.get("Scope");
  if (scope === undefined)
    return { kind: "text", text, note: "The report does not begin with Scope: and is given as it is." };
  return {
    kind: "report",
    text,
    report: {
      scope,
      result: parts.get("Result") ?? "",
      keyFiles: pathsIn(parts.get("Key files")),
      filesChanged: pathsIn(parts.get("Files changed")),
      issues: parts.get("Issues") ?? "",
    },
  };
};

/** The text under each heading; the first of a name counts. */
const partsOf = (text: string): ReadonlyMap<Label, string> => {
  const found = [...text.matchAll(HEADING)];
  const parts = new Map<Label, string>();
  found.forEach((heading, at) => {
    const label = LABELS.find((one) => one.toLowerCase() === heading[1]?.toLowerCase());
    if (label === undefined || parts.has(label)) return;
    const start = heading.index + heading[0].length;
    const rest = text.slice(start, found[at + 1]?.index ?? text.length);
    parts.set(label, `${heading[2] ?? ""}${rest}`.trim());
  });
  return parts;
};

const NOTHING = /^(none|nothing|n\/a|-)\.?$/i;

/** At line breaks, and at commas that stand in no brackets: those before a closing one. */
const listed = (text: string): readonly string[] => {
  const items: string[] = [];
  let [end, isInside] = [text.length, false];
  for (let at = text.length - 1; at >= 0; at -= 1) {
    const sign = text[at];
    if (sign === ")" || sign === "(") isInside = sign === ")";
    else if (sign === "\n" || (sign === "," && !isInside)) {
      items.push(text.slice(at + 1, end));
      end = at;
    }
  }
  return [...items, text.slice(0, end)].reverse();
};

/** One a line, or several with commas; what stands behind a path is left out. */
const pathsIn = (text: string | undefined): readonly string[] =>
  listed(text ?? "")
    .map((line) => line.replace(/^[\s*-]+/, "").trim())
    .filter((line) => line !== "" && !NOTHING.test(line))
    .map((line) => /^`([^`]+)`/.exec(line)?.[1] ?? line.split(/\s+[—–(-]|\s{2,}|:\s/)[0]?.trim() ?? line)
    .filter((path) => path !== "");
