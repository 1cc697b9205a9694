/** What does each package export? Compares the exported names of its entries with the list in its api.txt.
 *  Invariant: names are read from emitted declarations, exactly as a user's compiler sees them.
 *  Elsewhere: types that a signature names (importable.ts), building the declarations (tools.ts). */

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findUnimportable } from "./importable.ts";
import { blank, isFile, lineOf, type Problem, type Verdict } from "./source.ts";

const HEADER = "# Exported names, by entry. After a meant change: npm run check -- --update-api";

/** A longer difference is a new list, and is read better in the list itself. */
const SHOWN = 20;

type Surface = { readonly text: string; readonly problems: readonly Problem[] };

/** With `update` the lists are rewritten; what may not be exported at all is reported in both cases. */
export function checkApi(root: string, { update }: { readonly update: boolean }): Verdict {
  const packages = readdirSync(join(root, "packages")).filter((name) =>
    isFile(join(root, "packages", name, "package.json")),
  );
  const problems: Problem[] = [];
  let files = 0;
  for (const folder of packages.sort().map((name) => `packages/${name}`)) {
    const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
    const entries = Object.entries(manifest.exports ?? {}) as readonly [string, string | { readonly types: string }][];
    if (entries.length === 0) continue;
    // An entry that is a plain file (a JSON schema) exports no names.
    const surfaces = entries.flatMap(([entry, target]) =>
      typeof target === "string"
        ? []
        : readEntry(root, { name: manifest.name + entry.slice(1), path: join(folder, target.types) }),
    );
    files += entries.length;
    problems.push(...surfaces.flatMap((surface) => surface.problems));
    const declared = entries.flatMap(([entry, target]) =>
      typeof target === "string" ? [] : [{ name: manifest.name + entry.slice(1), path: join(folder, target.types) }],
    );
    if (!manifest.private) problems.push(...findUnimportable(root, declared));
    const text = `${HEADER}\n${surfaces.map((surface) => surface.text).join("")}`;
    const list = `${folder}/api.txt`;
    if (update) writeFileSync(join(root, list), text);
    else problems.push(...compare(list, isFile(join(root, list)) ? readFileSync(join(root, list), "utf8") : "", text));
  }
  return { files, problems };
}

function readEntry(root: string, entry: { readonly name: string; readonly path: string }): Surface {
  if (!isFile(join(root, entry.path))) {
    const wayOut = "name it in exports only when src has it, and run npm run build";
    return { text: "", problems: [{ place: entry.path, rule: `${entry.name} has no declarations`, wayOut }] };
  }
  const text = readFileSync(join(root, entry.path), "utf8");
  const blanked = blank(text);
  const problems = [...blanked.matchAll(/\bexport\s+(?:\*|default\b|=)|\bas default\b/g)].map((found) => ({
    place: `${entry.path}:${lineOf(text, found.index)}`,
    rule: `an entry exports by name only (${found[0].trim()})`,
    wayOut: "list the names: export { a, type B } from …",
  }));
  const names = [...namesInLists(blanked), ...namesDeclared(blanked)].sort();
  return { text: `\n${entry.name}\n${names.map((name) => `  ${name}\n`).join("")}`, problems };
}

/** `export { a, b as c, type D } from` and `export type { E } from`, as "c value" and "D type". */
const namesInLists = (text: string): readonly string[] =>
  [...text.matchAll(/\bexport\s+(type\s+)?\{([^}]*)\}/g)].flatMap(([, allTypes, list = ""]) =>
    list
      .split(",")
      .map((item) => item.trim())
      .filter((item) => item !== "")
      .map(
        (item) => `${item.replace(/^type\s+/, "").replace(/^.*\sas\s+/, "")} ${kind(allTypes ?? /^type\s/.test(item))}`,
      ),
  );

const namesDeclared = (text: string): readonly string[] =>
  [
    ...text.matchAll(
      /\bexport\s+(?:declare\s+)?(?:abstract\s+)?(type|interface|const|function|class|let|var)\s+([\w$]+)/g,
    ),
  ].map(([, keyword = "", name = ""]) => `${name} ${kind(keyword === "type" || keyword === "interface")}`);

const kind = (isType: unknown): string => (isType ? "type" : "value");

function compare(place: string, committed: string, actual: string): readonly Problem[] {
  if (committed === actual) return [];
  const [before, after] = [namesWithEntry(committed), namesWithEntry(actual)];
  const added = after.filter((name) => !before.includes(name)).map((name) => `+ ${name}`);
  const removed = before.filter((name) => !after.includes(name)).map((name) => `- ${name}`);
  const differences = [...removed, ...added];
  const more = differences.length > SHOWN ? `, and ${differences.length - SHOWN} more` : "";
  const difference = differences.slice(0, SHOWN).join(", ") + more || "order or layout only";
  return [
    {
      place,
      rule: `exported names are those of the list (${difference})`,
      wayOut: "take the change back, or if it is meant: npm run check -- --update-api, and say so in CHANGELOG.md",
    },
  ];
}

function namesWithEntry(text: string): readonly string[] {
  let entry = "";
  return text.split("\n").flatMap((line) => {
    if (line.startsWith("  ")) return [`${entry}: ${line.trim()}`];
    entry = line;
    return [];
  });
}
