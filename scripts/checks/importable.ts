/** Can a user import every type that a public signature names?
 *  Every type in the declarations of what a package promises (all entries but `./internal`) is exported by one of its
 *  entries. Names are followed through re-exports to where they are declared, so a type may have another name outside.
 *  Elsewhere: the lists of exported names (api.ts), building the declarations (tools.ts). */

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { blank, isFile, type Problem } from "./source.ts";

export type Entry = { readonly name: string; readonly path: string };

type Reference = { readonly name: string; readonly from: string };
type Declaration = { readonly text: string; readonly isType: boolean; readonly isExported: boolean };

type Module = {
  readonly path: string;
  readonly imports: ReadonlyMap<string, Reference>;
  readonly exports: ReadonlyMap<string, Reference>;
  readonly declarations: ReadonlyMap<string, Declaration>;
};

export function findUnimportable(root: string, entries: readonly Entry[]): readonly Problem[] {
  const modules = new Map<string, Module>();
  const load = (path: string): Module => {
    const module = modules.get(path) ?? readModule(root, path);
    modules.set(path, module);
    return module;
  };
  const declared = (path: string, name: string): string | undefined => {
    const { declarations, exports, imports } = load(path);
    if (declarations.has(name)) return `${path}#${name}`;
    const reference = exports.get(name) ?? imports.get(name);
    if (!reference?.from.startsWith(".")) return undefined;
    const target = join(dirname(path), reference.from.replace(/\.[jt]s$/, ".d.ts"));
    return isFile(join(root, target)) ? declared(target, reference.name) : undefined;
  };
  const importable = new Set<string>();
  const promised: string[] = [];
  for (const { name, path } of entries.filter((entry) => isFile(join(root, entry.path)))) {
    const { exports, declarations } = load(path);
    const own = [...declarations].flatMap(([each, { isExported }]) => (isExported ? [each] : []));
    for (const found of [...exports.keys(), ...own].flatMap((each) => declared(path, each) ?? [])) {
      importable.add(found);
      if (!name.endsWith("/internal")) promised.push(found);
    }
  }
  return [...new Set(promised)].flatMap((found) => {
    const [path = "", name = ""] = found.split("#");
    const { declarations, imports } = load(path);
    const words = new Set(declarations.get(name)?.text.match(/\b[A-Z][\w$]*\b/g) ?? []);
    return [...words].flatMap((word): readonly Problem[] => {
      if (word === name || !(declarations.has(word) || imports.has(word))) return [];
      const target = declared(path, word);
      const [file = "", original = ""] = target?.split("#") ?? [];
      if (target === undefined || importable.has(target) || !load(file).declarations.get(original)?.isType) return [];
      const rule = `${name} names ${original}, which no entry of its package exports`;
      return [{ place: path, rule, wayOut: `export the type ${original} from an entry, ./internal if need be` }];
    });
  });
}

function readModule(root: string, path: string): Module {
  const text = blank(readFileSync(join(root, path), "utf8"));
  const original = readFileSync(join(root, path), "utf8");
  const lists = [...original.matchAll(/^(import|export)\s+(?:type\s+)?\{([^}]*)\}\s*from\s*"([^"]+)"/gm)];
  const references = (keyword: string): ReadonlyMap<string, Reference> =>
    new Map(
      lists
        .filter(([, word]) => word === keyword)
        .flatMap(([, , names = "", from = ""]) => names.split(",").map((item) => referenceIn(item, from)))
        .filter(([name]) => name !== ""),
    );
  const starts = [
    ...text.matchAll(/^(export\s+)?(?:declare\s+)?(?:abstract\s+)?(type|interface|class|const|function)\s+([\w$]+)/gm),
  ];
  const declarations = starts.map(({ 1: exported, 2: keyword = "", 3: name = "", index }, at) => {
    // Private members of a class have no type in declarations, but a private constructor has its parameters.
    const body = text.slice(index, starts[at + 1]?.index ?? text.length).replace(/^\s*(?:private\b|#).*$/gm, "");
    return [name, { text: body, isType: !/const|function/.test(keyword), isExported: exported !== undefined }] as const;
  });
  return { path, imports: references("import"), exports: references("export"), declarations: new Map(declarations) };
}

const referenceIn = (item: string, from: string): readonly [string, Reference] => {
  const [name = "", alias = name] = item
    .trim()
    .replace(/^type\s+/, "")
    .split(/\s+as\s+/);
  return [alias, { name, from }];
};
