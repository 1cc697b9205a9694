/** Which file may import which? Packages depend one way, a module is imported only through its index.ts, a folder imports
 *  only folders above it in the tables below, and there are no cycles.
 *  Elsewhere: how text is read without comments and strings (source.ts). */

import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { isFile, type Problem, placeOf, readSources, type SourceFile, type Verdict } from "./source.ts";

/** Package → the packages of ours that its sources may import. */
const packageOrder: Readonly<Record<string, readonly string[]>> = {
  wire: [],
  simulator: ["wire"],
  xray: ["wire"],
  guard: [],
  worktrees: ["guard"],
  testing: ["guard"],
  runtime: ["guard", "worktrees", "wire"],
  remote: ["runtime", "wire"],
  cli: ["runtime", "guard", "worktrees", "xray", "simulator", "wire"],
};

/** Tests of every package run against the simulator, and may ask x-ray what a cache would make of their requests. */
const testsMayImport = ["simulator", "xray", "testing", "guard"];

/** Rows from the bottom up: a file or folder of `src` imports from its own row and the rows above it in this list. */
const rows: Readonly<Record<string, readonly (readonly string[])[]>> = {
  wire: [
    ["request"],
    ["errors", "response"],
    ["json"],
    ["cost"],
    ["prefix"],
    ["fork-messages", "family"],
    ["protocols"],
    ["prepare", "recorded"],
    ["fork-requests"],
    ["send"],
    ["launch-gate", "send-family"],
    ["index", "internal"],
  ],
  xray: [["compare"], ["proxy"], ["index"]],
  guard: [
    ["json"],
    ["paths"],
    ["bash"],
    ["rules"],
    ["files"],
    ["process"],
    ["trust"],
    ["settings"],
    ["git"],
    ["run"],
    ["index", "internal"],
  ],
  runtime: [
    ["events", "ports"],
    ["journal"],
    ["context"],
    ["tools"],
    ["agent"],
    ["tasks"],
    ["fork"],
    ["children"],
    ["extensions"],
    ["observe"],
    ["session"],
    ["index", "internal"],
  ],
};

/** The simulator judges what the wire sends, so it shares only the vocabulary of a request, the table of models and the names of errors. */
const judge = {
  package: "simulator",
  mayName: new Set(
    "Json JsonObject Ttl Usage ModelFacts Prices DEFAULT_MODEL knownModels modelFacts ANTHROPIC_ERRORS GOOGLE_ERRORS errorNameFor".split(
      " ",
    ),
  ),
};

type Import = { readonly from: SourceFile; readonly path: string; readonly place: string };

/** `packages/wire/src/protocols/anthropic.ts` → { package: "wire", part: "src", room: "protocols" }. */
type Home = { readonly package?: string; readonly part: string; readonly room: string };

export function checkLayers(root: string): Verdict {
  const files = readSources(root, /^(?:packages|apps|examples|bench|evals|scripts)\//);
  const imports = files.flatMap((file) => importsOf(file));
  const inside = imports.filter(({ path }) => path.startsWith("."));
  return {
    files: files.length,
    problems: [
      ...files.flatMap((file) => checkPlace(file)),
      ...imports.flatMap((found) => (found.path.startsWith(".") ? checkRelative(found) : checkPackage(found, root))),
      ...files.flatMap((file) => checkJudge(file)),
      ...checkCircles(inside),
    ],
  };
}

function importsOf(file: SourceFile): readonly Import[] {
  return [...file.blanked.matchAll(/\b(?:from|import)\s*\(?\s*(["'])( *)\1/dg)].map((found) => {
    const [start, end] = found.indices?.[2] ?? [0, 0];
    return { from: file, path: file.text.slice(start, end), place: placeOf(file, start) };
  });
}

function homeOf(path: string): Home {
  const [top = "", name = "", part = "", room = ""] = path.split("/");
  if (top !== "packages") return { part: top, room: "" };
  return { package: name, part, room: room.replace(/\.ts$/, "") };
}

const targetOf = ({ from, path }: Import): string => posix.join(posix.dirname(from.path), path);

const rowOf = (home: Home): number => rows[home.package ?? ""]?.findIndex((row) => row.includes(home.room)) ?? 0;

function checkPlace(file: SourceFile): readonly Problem[] {
  const home = homeOf(file.path);
  if (home.package !== undefined && packageOrder[home.package] === undefined)
    return [problem(file.path, `package ${home.package} has no place in the order`, "add it to packageOrder")];
  if (home.part !== "src" || rowOf(home) !== -1) return [];
  return [problem(file.path, `${home.room} has no place in the order of ${home.package}`, "give it a row")];
}

/** An import by name of one of our packages: the right direction, and through a public entry. */
function checkPackage({ from, path, place }: Import, root: string): readonly Problem[] {
  const [, target, entry = ""] = /^@prefork\/([^/]+)(\/.*)?$/.exec(path) ?? [];
  if (target === undefined) return [];
  const home = homeOf(from.path);
  if (home.part === "scripts") return [problem(place, "scripts import no package", "ask the tools, not the product")];
  const ofTests = home.part === "src" ? [] : testsMayImport;
  const allowed =
    home.package === undefined
      ? Object.keys(packageOrder)
      : [home.package, ...(packageOrder[home.package] ?? []), ...ofTests];
  if (!allowed.includes(target) || (home.package === target && home.part === "src"))
    return [
      problem(place, `${home.package} may not import ${path}`, "turn the dependency round, or pass the value in"),
    ];
  const manifest = join(root, "packages", target, "package.json");
  const entries = isFile(manifest) ? Object.keys(JSON.parse(readFileSync(manifest, "utf8")).exports ?? {}) : [];
  if (entries.includes(`.${entry}`)) return [];
  return [problem(place, `${path} is not a public entry of @prefork/${target}`, `use ${entries.join(", ") || "none"}`)];
}

function checkJudge(file: SourceFile): readonly Problem[] {
  const { package: name, part } = homeOf(file.path);
  if (name !== judge.package || part !== "src") return [];
  return [...file.text.matchAll(/^(?:import|export)\s+(?:type\s+)?([^;"]*?)\s+from\s+"@prefork\/[^"]+";/gm)].flatMap(
    (found) =>
      (found[1] ?? "")
        .replace(/[{}]/g, "")
        .split(",")
        .map((word) => word.replace(/^\s*type\s/, "").trim())
        .filter((word) => word !== "" && !judge.mayName.has(word))
        .map((word) =>
          problem(
            placeOf(file, found.index),
            `${name} may not share ${word} with what it judges`,
            "write the rule there as data",
          ),
        ),
  );
}

function checkRelative(found: Import): readonly Problem[] {
  const { from, place, path } = found;
  const [home, target] = [homeOf(from.path), homeOf(targetOf(found))];
  const leaves = home.package !== target.package || (home.package === undefined && home.part !== target.part);
  if (leaves) return [problem(place, `${path} leaves its package`, "import the public entry (@prefork/…) by name")];
  if (home.part !== "src") return [];
  if (target.part !== "src")
    return [problem(place, `sources import no ${target.part}`, "move what is shared into src")];
  const problems: Problem[] = [];
  const entered = posix.relative(posix.dirname(from.path), targetOf(found)).replace(/^(?:\.\.\/)+/, "");
  if (entered.includes("/") && !/^[^/]+\/index\.ts$/.test(entered))
    problems.push(
      problem(place, `${path} enters a module past its index.ts`, "export the name there, and import that"),
    );
  if (rowOf(home) !== -1 && rowOf(target) > rowOf(home))
    problems.push(problem(place, `${home.room} stands before ${target.room} and may not import it`, "turn it round"));
  return problems;
}

/** Reports each circle once, at the import that closes it. */
function checkCircles(imports: readonly Import[]): readonly Problem[] {
  const bySource = Map.groupBy(imports, ({ from }) => from.path);
  const done = new Set<string>();
  const problems: Problem[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    for (const found of bySource.get(path) ?? []) {
      const target = targetOf(found);
      const start = trail.indexOf(target);
      if (start !== -1) {
        const circle = [...trail.slice(start), target].map((step) => posix.basename(step)).join(" → ");
        problems.push(problem(found.place, `imports go in a circle: ${circle}`, "move what both need below both"));
      } else if (!done.has(target)) visit(target, [...trail, target]);
    }
    done.add(path);
  };
  for (const path of bySource.keys()) if (!done.has(path)) visit(path, [path]);
  return problems;
}

const problem = (place: string, rule: string, wayOut: string): Problem => ({
  place,
  rule,
  wayOut: `${wayOut} (tables in scripts/checks/layers.ts)`,
});
