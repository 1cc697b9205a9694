/** What does a test process load? Bundles of the test files and of the programs that they start: a few large files
 *  instead of hundreds of small ones, because loading modules was half of the time of a test run.
 *  Invariant: a bundle behaves as its source does: it is found under the source's path and knows the source's
 *  `import.meta`; its name has the hash of its content, so runs at the same time never change each other's files.
 *  Elsewhere: serving bundles to a process (serve-bundles.mjs), starting the processes (test.ts). */

import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { SourceMap } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { BuildOptions, OutputFile, Plugin } from "esbuild";
import { filesThatShare } from "./share-process.ts";

export type Bundles = {
  /** Flags for every process that should load bundles instead of sources. */
  readonly flags: readonly string[];
  /** Replaces bundles with their sources in a stack trace. */
  readonly toSources: (stack: string) => string;
  /** Files that may run in a process with others. */
  readonly shared: ReadonlySet<string>;
  /** Saves a program next to the bundles and returns its path. */
  readonly keepProgram: (text: string) => string;
};

/** Third-party packages are tested as installed; few files use them. */
const EXTERNAL = ["@ai-sdk/*", "@anthropic-ai/*", "@google/*", "@lydell/*", "ai", "esbuild", "openai", "typescript"];
const SEED = 20_261_116;
const UNUSED_MS = 3 * 24 * 3_600_000;

/** Bundles `files` (paths below `root`), or returns why that is not possible; then the sources run instead, only slower. */
export async function bundleTests(root: string, files: readonly string[]): Promise<Bundles | { readonly why: string }> {
  const folder = join(root, "node_modules/.cache/test-bundles");
  const entries = [...new Set([...files.map((file) => join(root, file)), ...startedPrograms(root)])].sort();
  try {
    const { build } = await import("esbuild");
    const { outputFiles, metafile } = await build(optionsFor({ root, folder, entries }));
    removeUnused(folder);
    for (const file of outputFiles) writeOnce(file);
    const served = Object.entries(metafile.outputs).flatMap(([output, { entryPoint }]) =>
      entryPoint === undefined ? [] : [[urlOf(root, entryPoint), urlOf(root, output)]],
    );
    const list = Buffer.from(JSON.stringify(Object.fromEntries(served)));
    const path = join(folder, `served-${shortHash(list)}.json`);
    writeOnce({ path, contents: list });
    const hook = pathToFileURL(join(import.meta.dirname, "serve-bundles.mjs")).href;
    return {
      flags: [`--import=${hook}?${path}`],
      toSources: (stack) => toSources(stack, folder),
      shared: filesThatShare(root, metafile.inputs),
      keepProgram: (text) => keepProgram(folder, text),
    };
  } catch (error) {
    return { why: error instanceof Error ? (error.message.split("\n")[1] ?? error.message) : String(error) };
  }
}

const shortHash = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex").slice(0, 16);

function keepProgram(folder: string, text: string): string {
  const contents = Buffer.from(text);
  const path = join(folder, `shared-${shortHash(contents)}.mjs`);
  writeOnce({ path, contents });
  return path;
}

const urlOf = (root: string, path: string): string => pathToFileURL(resolve(root, path)).href;

type Wanted = { readonly root: string; readonly folder: string; readonly entries: readonly string[] };

const optionsFor = ({ root, folder, entries }: Wanted) =>
  ({
    absWorkingDir: root,
    entryPoints: [...entries],
    outdir: folder,
    outbase: root,
    entryNames: "[dir]/[name]-[hash]",
    chunkNames: "chunk-[hash]",
    outExtension: { ".js": ".mjs" }, // states the module type: otherwise Node compiles the text once more to detect it
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "esnext", // every process runs on this runtime, and a lowered `using` would carry an error into the next loop iteration
    conditions: ["prefork-source"],
    mainFields: ["module", "main"],
    external: EXTERNAL,
    define: META,
    plugins: [ownMeta, seeded],
    sourcemap: "external",
    metafile: true,
    write: false,
    logLevel: "silent",
  }) as const satisfies BuildOptions;

/** A bundled module sees the `import.meta` of its source; the main module is the one that was started. */
const META = {
  "import.meta.url": "ownMeta.url",
  "import.meta.dirname": "ownMeta.dirname",
  "import.meta.main": "ownMeta.main",
};

const ownMeta: Plugin = {
  name: "own-meta",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.(?:ts|m?js)$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      if (!text.includes("import.meta.")) return undefined;
      const facts = JSON.stringify({ url: pathToFileURL(path).href, dirname: dirname(path) });
      const own = `const ownMeta = { ...${facts}, main: process.argv[1] === ${JSON.stringify(path)} };`;
      return { contents: `${own} ${text}`, loader: path.endsWith(".ts") ? "ts" : "js" };
    }),
};

/** Properties use the same values in every run, so that a run fails because of a change and not by chance. Each uses half
 *  of its stated number of runs. `npm run soak -- properties` uses other values and the full number, and reports the seed
 *  of a failure. */
const seeded: Plugin = {
  name: "seeded",
  setup: ({ onLoad, onResolve, resolve: find }) => {
    onResolve({ filter: /^fast-check$/ }, async ({ kind, resolveDir, pluginData }) => {
      if (pluginData === "real") return undefined;
      const { path } = await find("fast-check", { kind, resolveDir, pluginData: "real" });
      return { path, namespace: "seeded" };
    });
    onLoad({ filter: /.*/, namespace: "seeded" }, ({ path }) => ({
      contents: [
        `import fc from ${JSON.stringify(path)};`,
        `const { PREFORK_PROPERTY_SEED: chosen } = process.env;`,
        "const half = ({ numRuns = 100 } = {}) => ({ numRuns: Math.ceil(numRuns / 2) });",
        `const given = (options) => ({ seed: ${SEED}, ...options, ...half(options) });`,
        "const drawn = (options) => ({ ...options, seed: Number(chosen) });",
        "const assert = (law, options) => fc.assert(law, chosen === undefined ? given(options) : drawn(options));",
        `export * from ${JSON.stringify(path)};`,
        "export default { ...fc, assert };",
      ].join("\n"),
      resolveDir: dirname(path),
    }));
  },
};

/** Sources that other files start as programs: `new URL("writer-process.ts", import.meta.url)`. */
function startedPrograms(root: string): readonly string[] {
  const sources = globSync("packages/*/{src,test}/**/*.ts", { cwd: root }).map((path) => join(root, path));
  const named = sources.flatMap((source) =>
    [...readFileSync(source, "utf8").matchAll(/new URL\("([^"]+\.ts)", import\.meta\.url\)/g)].map(([, name = ""]) =>
      fileURLToPath(new URL(name, pathToFileURL(source))),
    ),
  );
  return [...named, join(root, "packages/xray/src/proxy/thread.ts")].filter((path) => existsSync(path));
}

/** Writes to a temporary name first, because a process of another run may be looking for the file now. */
function writeOnce({ path, contents }: Pick<OutputFile, "path" | "contents">): void {
  if (existsSync(path)) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.${process.pid}`, contents);
  renameSync(`${path}.${process.pid}`, path);
}

/** Removes all bundles if the oldest is days old: those in use are rebuilt within seconds. */
function removeUnused(folder: string): void {
  const stamp = join(folder, "since");
  if (existsSync(stamp) && Date.now() - statSync(stamp).mtimeMs > UNUSED_MS)
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
  if (existsSync(stamp)) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(stamp, "");
}

const PLACE = /file:\/\/([^\s()]+\.mjs):(\d+):(\d+)/g;

function toSources(stack: string, folder: string): string {
  const maps = new Map<string, SourceMap>();
  const mapOf = (path: string): SourceMap => {
    const known = maps.get(path) ?? new SourceMap(JSON.parse(readFileSync(`${path}.map`, "utf8")));
    maps.set(path, known);
    return known;
  };
  return stack.replace(PLACE, (place, ...[path, line, column]: string[]) => {
    if (path === undefined || relative(folder, path).startsWith("..") || !existsSync(`${path}.map`)) return place;
    const found = mapOf(path).findEntry(Number(line) - 1, Number(column) - 1);
    if (!("originalSource" in found)) return place;
    const source = pathToFileURL(resolve(dirname(path), found.originalSource)).href;
    return `${source}:${found.originalLine + 1}:${found.originalColumn + 1}`;
  });
}
