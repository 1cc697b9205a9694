/** Does each check catch what it should, and ignore what only looks like it? The cases are planted in a scratch folder. */

import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempDisposableSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { checkApi } from "./api.ts";
import { checkLayers } from "./layers.ts";
import { checkLinks } from "./links.ts";
import { checkPurity } from "./purity.ts";
import { checkSize } from "./size.ts";
import { blank, type Verdict } from "./source.ts";
import { checkFormatAndLint, checkTypes } from "./tools.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));

/** Runs a check on a folder that holds just these files. */
async function inFolder<T>(files: Readonly<Record<string, string>>, check: (root: string) => T): Promise<Awaited<T>> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "prefork-check-"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder.path, path)), { recursive: true });
    writeFileSync(join(folder.path, path), text);
  }
  return await check(folder.path);
}

const brief = ({ problems }: Verdict): readonly string[] => problems.map(({ place, rule }) => `${place} ${rule}`);

const wire = (files: Readonly<Record<string, string>>): Readonly<Record<string, string>> => ({
  "packages/wire/package.json": JSON.stringify({
    name: "@prefork/wire",
    exports: { ".": { types: "./dist/index.d.ts" }, "./internal": { types: "./dist/internal.d.ts" } },
  }),
  ...Object.fromEntries(Object.entries(files).map(([path, text]) => [`packages/wire/${path}`, text])),
});

test("blanking keeps length, lines and code, and drops comments, strings, templates and patterns", () => {
  const source = `a("x\\"y", 'z'); // c\n/* d\n e */ \`t \${f({ b: \`u\` })} v\` / 2; const r = /["\`/]/g;`;
  const expected = `a("    ", ' ');     \n    \n      \`  \${f({ b: \` \` })}  \` / 2; const r =         ;`;
  assert.equal(blank(source), expected);
});

test("layers: wire imports no other package, and a package is entered by its public entries", async () => {
  const files = {
    ...wire({ "src/request.ts": 'import { x } from "@prefork/runtime";\n' }),
    "packages/cli/src/main.ts":
      'import { y } from "@prefork/wire/src/prefix.ts";\nimport { z } from "@prefork/wire";\n',
    "examples/01-a.ts": 'import { q } from "../packages/wire/src/prefix.ts";\nimport "@prefork/wire/internal";\n',
  };
  assert.deepEqual(brief(await inFolder(files, checkLayers)), [
    "examples/01-a.ts:1 ../packages/wire/src/prefix.ts leaves its package",
    "packages/cli/src/main.ts:1 @prefork/wire/src/prefix.ts is not a public entry of @prefork/wire",
    "packages/wire/src/request.ts:1 wire may not import @prefork/runtime",
  ]);
});

test("layers: inside a package the order of the table holds, and every file has its row", async () => {
  const files = wire({
    "src/errors.ts": '// import { no } from "./prefix.ts"\nimport type { Json } from "./json.ts";\n',
    "src/json.ts": 'import { m } from "./errors.ts";\n',
    "src/stray.ts": "export const s = 1;\n",
  });
  assert.deepEqual(brief(await inFolder(files, checkLayers)), [
    "packages/wire/src/stray.ts stray has no place in the order of wire",
    "packages/wire/src/errors.ts:2 errors stands before json and may not import it",
    "packages/wire/src/json.ts:1 imports go in a circle: errors.ts → json.ts → errors.ts",
  ]);
});

test("layers: a module is entered by its index", async () => {
  const files = wire({
    "src/prepare.ts": 'import { a } from "./protocols/anthropic.ts";\nimport { b } from "./protocols/index.ts";\n',
  });
  assert.deepEqual(brief(await inFolder(files, checkLayers)), [
    "packages/wire/src/prepare.ts:1 ./protocols/anthropic.ts enters a module past its index.ts",
  ]);
});

test("layers: the simulator shares only words with what it judges, and tests alone lean on it", async () => {
  const files = {
    ...wire({
      "src/send-family.ts": 'import { say } from "@prefork/simulator";\n',
      "test/client.test.ts": 'import { say } from "@prefork/simulator";\n',
    }),
    "packages/simulator/package.json": JSON.stringify({ exports: { ".": {} } }),
    "packages/simulator/src/cache.ts":
      'import { type Json, knownModels } from "@prefork/wire";\nimport { FrozenPrefix, type Ttl } from "@prefork/wire";\n',
  };
  assert.deepEqual(brief(await inFolder(files, checkLayers)), [
    "packages/wire/src/send-family.ts:1 wire may not import @prefork/simulator",
    "packages/simulator/src/cache.ts:2 simulator may not share FrozenPrefix with what it judges",
  ]);
});

test("size: 500 lines are fine and 501 are not, in tests too", async () => {
  const files = { "packages/wire/src/a.ts": "\n".repeat(500), "packages/wire/test/b.test.ts": "\n".repeat(501) };
  assert.deepEqual(brief(await inFolder(files, checkSize)), [
    "packages/wire/test/b.test.ts:501 a file has at most 500 lines; this one has 501",
  ]);
});

test("size: every form of function is counted, calls and conditions are not", async () => {
  const source = [
    "function one<T extends Map<A, B>>(a: T, b: Map<A, B>, c: [A, B], d: string): void {}",
    "const two = (a: number, b: number, c: number, d = f(1, 2)): number => a;",
    "const three = async (a, b, c, d) => a;",
    "class K {",
    "  constructor(a: A, b: B, c: C, d: D) {}",
    "  async *four(a: A, b: B, c: C, d: D): AsyncGenerator<void> {}",
    "}",
    "type Five = (a: A, b: B, c: C, d: D) => void;",
    "call(1, 2, 3, 4);",
    "const fine = ({ a, b, c, d }: Four, [e, f]: Two, ...rest: readonly Map<A, B>[]) => call(1, 2, 3, 4);",
    "const x = yes ? call(1, 2, 3, 4) : { a };",
    "for (const y of call(1, 2, 3, 4)) {}",
    'const text = "function no(a, b, c, d) {}"; // function no(a, b, c, d) {}',
  ].join("\n");
  const rule = "a function has at most 3 parameters; this one has 4";
  assert.deepEqual(
    brief(await inFolder({ "a.ts": source }, checkSize)),
    [1, 2, 3, 5, 6, 8].map((line) => `a.ts:${line} ${rule}`),
  );
});

test("purity: clock, timer, chance and environment are refused in pure code, not at the edges", async () => {
  const impure = "const a = Date.now;\nconst b = new Date();\nsetTimeout(f, 1);\nrandomUUID();\nprocess.env.HOME;\n";
  const files = wire({
    "src/cost/plans.ts": `${impure}// Date.now()\nconst c = "Math.random()";\nconst d = new Date(0);\n`,
    "src/send/transport.ts": impure,
    "test/a.test.ts": impure,
  });
  const simulator = { "packages/simulator/src/server.ts": impure, "packages/simulator/src/ledger.ts": "Date.now();\n" };
  assert.deepEqual(brief(await inFolder({ ...files, ...simulator }, checkPurity)), [
    "packages/simulator/src/ledger.ts:1 no clock in pure code (Date.now)",
    "packages/wire/src/cost/plans.ts:1 no clock in pure code (Date.now)",
    "packages/wire/src/cost/plans.ts:2 no clock in pure code (new Date)",
    "packages/wire/src/cost/plans.ts:3 no timer in pure code (setTimeout)",
    "packages/wire/src/cost/plans.ts:4 no chance in pure code (randomUUID)",
    "packages/wire/src/cost/plans.ts:5 no environment in pure code (process.env)",
  ]);
});

test("purity: module-level let and var are refused in every package", async () => {
  const files = { "packages/cli/src/main.ts": "export let a = 1;\nvar b = 2;\nfunction f() {\n  let c = 3;\n}\n" };
  const rule = "no let or var at module level: state has an owner";
  assert.deepEqual(brief(await inFolder(files, checkPurity)), [
    `packages/cli/src/main.ts:1 ${rule}`,
    `packages/cli/src/main.ts:2 ${rule}`,
  ]);
});

test("api: the list is compared by name and kind, and rewritten on request", async () => {
  const files = wire({
    "dist/index.d.ts": 'export { b, type A, c as d } from "./x.ts";\nexport type { E } from "./y.ts";\n',
    "dist/internal.d.ts": "export declare function start(): void;\nexport interface Rules {}\n",
    "api.txt": "@prefork/wire\n  A value\n  b value\n",
  });
  await inFolder(files, (root) => {
    assert.deepEqual(brief(checkApi(root, { update: false })), [
      "packages/wire/api.txt exported names are those of the list (- @prefork/wire: A value, + @prefork/wire: A type, " +
        "+ @prefork/wire: E type, + @prefork/wire: d value, + @prefork/wire/internal: Rules type, " +
        "+ @prefork/wire/internal: start value)",
    ]);
    assert.deepEqual(brief(checkApi(root, { update: true })), []);
    assert.deepEqual(brief(checkApi(root, { update: false })), []);
    assert.equal(
      readFileSync(join(root, "packages/wire/api.txt"), "utf8").split("\n").slice(1).join("\n"),
      "\n@prefork/wire\n  A type\n  E type\n  b value\n  d value\n\n@prefork/wire/internal\n  Rules type\n  start value\n",
    );
  });
});

test("api: an entry that exports everything, or a default, is refused", async () => {
  const files = wire({
    "dist/index.d.ts": 'export * from "./x.ts";\n// export * from "./y.ts";\nexport default x;\n',
    "dist/internal.d.ts": "export {};\n",
  });
  assert.deepEqual(brief(await inFolder(files, (root) => checkApi(root, { update: true }))), [
    "packages/wire/dist/index.d.ts:1 an entry exports by name only (export *)",
    "packages/wire/dist/index.d.ts:3 an entry exports by name only (export default)",
  ]);
});

test("api: every type that a public signature names can be imported from an entry, under whatever name", async () => {
  const files = wire({
    "dist/index.d.ts": 'export { open, type Shown } from "./x.ts";\n',
    "dist/internal.d.ts": 'export { type Known as Renamed, secret } from "./x.ts";\n',
    "dist/x.d.ts": [
      'import { type Elsewhere } from "./y.ts";',
      'import { type Foreign } from "other";',
      "type Hidden = string;",
      "export type Known = Hidden;",
      "export type Shown = { readonly known: Known; readonly foreign: Foreign; readonly self?: Shown };",
      "export declare const open: (hidden: Hidden, elsewhere: Elsewhere) => Promise<Shown>;",
      "export declare const secret: (hidden: Hidden) => void;",
    ].join("\n"),
    "dist/y.d.ts": "export type Elsewhere = number;\n",
  });
  assert.deepEqual(brief(await inFolder(files, (root) => checkApi(root, { update: true }))), [
    "packages/wire/dist/x.d.ts open names Hidden, which no entry of its package exports",
    "packages/wire/dist/x.d.ts open names Elsewhere, which no entry of its package exports",
  ]);
});

test("links: targets, headings, lines and path spans must exist", async () => {
  const files = {
    "docs/a.md": [
      "# Some Title, here",
      "[ok](b.md#part-two) [ok](../src.ts#L2) [ok](https://example.org/x) [ok](#some-title-here) `docs/a.md` `docs/*.md`",
      "[gone](c.md)",
      "[no heading](b.md#part-nine)",
      "[too far](../src.ts#L9)",
      "`docs/gone.md` and `docs/b.md:40`",
      "```\n[not a link](nowhere.md)\n```",
    ].join("\n"),
    "docs/b.md": "## Part two\n",
    "src.ts": "1\n2\n3\n",
  };
  const rule = "what a document points at exists";
  assert.deepEqual(brief(await inFolder(files, checkLinks)), [
    `docs/a.md:3 ${rule} (docs/c.md is not there)`,
    `docs/a.md:4 ${rule} (docs/b.md has no heading #part-nine)`,
    `docs/a.md:5 ${rule} (src.ts has 3 lines, not 9)`,
    `docs/a.md:6 ${rule} (docs/gone.md is not there)`,
    `docs/a.md:6 ${rule} (docs/b.md has 1 lines, not 40)`,
  ]);
});

test("links: the files that a header names must exist", async () => {
  const header = [
    "/** Header.",
    " *  Elsewhere: here.ts, the root (index.ts), (../b), (../b: one.ts, two.ts), another package (@prefork/other:",
    " *  three.ts), gone.ts, (../c), (../b: one.ts and gone-too.ts), (@prefork/other: one.ts). */",
    "// never.ts",
  ].join("\n");
  const files = {
    "packages/x/src/a/file.ts": header,
    ...{ "packages/x/src/a/here.ts": "", "packages/x/src/index.ts": "" },
    ...{ "packages/x/src/b/one.ts": "", "packages/x/src/b/two.ts": "", "packages/other/src/three.ts": "" },
  };
  assert.deepEqual(
    brief(await inFolder(files, checkLinks)),
    ["gone.ts", "../c", "gone-too.ts", "one.ts"].map(
      (name) => `packages/x/src/a/file.ts:3 what a header names exists (${name} is not there)`,
    ),
  );
});

test("links: quoted code equals the example or its region", async () => {
  const files = {
    "examples/01-a.ts": "const a = 1;\n{\n  // #region middle\n  const b = 2;\n  // #endregion\n}\n",
    "good.md": "<!-- from examples/01-a.ts#middle -->\n```ts\nconst b = 2;\n```\n",
    "stale.md": "<!-- from examples/01-a.ts -->\n```ts\nconst a = 2;\n```\n",
    "bare.md": "<!-- from examples/01-a.ts -->\n\ntext\n",
  };
  const rule = "code in documents comes from a program that runs";
  assert.deepEqual(brief(await inFolder(files, checkLinks)), [`bare.md:1 ${rule}`, `stale.md:1 ${rule}`]);
});

const withTools = (root: string): string => {
  for (const file of ["biome.json", "tsconfig.json", "tsconfig.base.json"])
    cpSync(join(repository, file), join(root, file));
  writeFileSync(join(root, ".gitignore"), "node_modules\n");
  symlinkSync(join(repository, "node_modules"), join(root, "node_modules"));
  return root;
};

test("format: a floating promise, an unused import, an assertion and stray spaces are refused", async () => {
  const files = {
    "packages/wire/src/a.ts": [
      'import { join } from "node:path";',
      "export async function later(): Promise<void> {}",
      "export const now = (names: readonly string[]) => {",
      "  later();",
      "  return names[0]!;",
      "};",
      "export const spaced   =   1;",
    ].join("\n"),
  };
  const { output = "" } = await inFolder(files, (root) => checkFormatAndLint(withTools(root)));
  for (const rule of ["noFloatingPromises", "noUnusedImports", "noNonNullAssertion", "Formatter would have printed"])
    assert.ok(output.includes(rule), `${rule} is not in:\n${output}`);
});

test("types: an index that may be absent is refused", async () => {
  const files = {
    "package.json": '{ "type": "module" }',
    "packages/wire/src/a.ts": "export const first = (names: readonly string[]): string => names[0];\n",
  };
  const verdict = await inFolder(files, (root) => checkTypes(withTools(root)));
  assert.match(verdict.output ?? "", /^packages\/wire\/src\/a\.ts\(1,\d+\): error TS2322: [^\n]*undefined[^\n]*string/);
  assert.equal(verdict.files, 1);
});
