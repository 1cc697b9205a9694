/** Every shell command in the documentation runs as written, in a small repository that contains what they name.
 *  A comment before a block says what it needs instead: a model (then a simulator answers), or that it is not run. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import {
  globSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { builtInTools } from "@prefork/runtime";
import { startSimulator } from "@prefork/simulator";
import { compiled } from "./compiled.ts";

const repository = fileURLToPath(new URL("../../../", import.meta.url));

type Block = { readonly place: string; readonly needs: string; readonly commands: string };

const BLOCK = /(?:^<!-- (?<needs>[^\n]*) -->\n)?^```sh\n(?<commands>.*?)^```$/gms;

const blocksOf = (file: string): readonly Block[] => {
  const text = readFileSync(join(repository, file), "utf8");
  return [...text.matchAll(BLOCK)].map(({ index, groups = {} }) => ({
    place: `${file}:${text.slice(0, index).split("\n").length}`,
    needs: groups.needs ?? "",
    commands: groups.commands ?? "",
  }));
};

const body = (date: string): string =>
  JSON.stringify({
    model: "claude-sonnet-5",
    max_tokens: 64,
    system: [{ type: "text", text: `Today is ${date}.`, cache_control: { type: "ephemeral" } }],
    messages: [{ role: "user", content: "Hello." }],
  });

const FILES: Readonly<Record<string, string>> = {
  "package.json": '{ "name": "sample", "scripts": { "test": "true" } }\n',
  "src/a.ts": "// TODO: everything\nexport const a = 1;\n",
  "packages/wire/src/cost/prices.ts": "export const multipliersOf = () => 1;\n",
  "docs/economics.md": "one\ntwo\n",
  "cart.ts": "export const oldCart = 1;\n",
  "order.ts": "export const oldOrder = 1;\n",
  "first.json": body("Monday"),
  "second.json": body("Monday"),
  "a.json": body("Monday"),
  "b.json": body("Monday"),
  "session.ndjson": `${body("Monday")}\n${body("Monday")}\n`,
  "usage.json": JSON.stringify([{ input_tokens: 20 }, { input_tokens: 20 }]),
};

/** A repository, and a home folder with `prefork` on the PATH. */
const openPlace = () => {
  const folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-docs-"));
  const [cwd, home, bin] = ["repository", "home", "bin"].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [cwd, home, bin]) mkdirSync(path);
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  symlinkSync(process.execPath, join(bin, "node"));
  symlinkSync(join(repository, "packages/cli/bin/prefork.js"), join(bin, "prefork"));
  const PATH = `${bin}:${process.env.PATH}`;
  const env = { ...compiled, HOME: home, XDG_STATE_HOME: join(home, "state"), PATH, GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...words: readonly string[]) => execFileSync("git", words, { cwd, env, stdio: "pipe" });
  git("init", "-q");
  git("config", "user.email", "me@example.com");
  git("config", "user.name", "Me");
  git("add", ".");
  git("commit", "-qm", "Begin");
  return { cwd, env, [Symbol.dispose]: () => folder[Symbol.dispose]() };
};

type Ended = { readonly place: string; readonly code: number | null; readonly notUnderstood: readonly string[] };

const runBlock = ({ place, commands }: Block, at: { readonly cwd: string; readonly env: NodeJS.ProcessEnv }) =>
  new Promise<Ended & { readonly printed: string }>((done, fail) => {
    const child = spawn("bash", ["-euo", "pipefail", "-c", commands], { ...at, stdio: ["ignore", "pipe", "pipe"] });
    const printed: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => printed.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => printed.push(chunk));
    child.on("error", fail);
    child.on("close", (code) => {
      const text = Buffer.concat(printed).toString();
      const notUnderstood = text.split("\n").filter((line) => /not understood|command not found/.test(line));
      done({ place, code, notUnderstood, printed: text });
    });
  });

test("every shell command of the documentation runs as it is written", async () => {
  await using simulator = await startSimulator();
  const blocks = ["README.md", ...globSync("docs/*.md", { cwd: repository }).sort()].flatMap(blocksOf);
  assert.ok(blocks.length >= 9, `${blocks.length} blocks`);
  const runOne = async (block: Block) => {
    using place = openPlace();
    const model = { ANTHROPIC_BASE_URL: simulator.url, ANTHROPIC_API_KEY: "any" };
    const env = block.needs === "needs a model" ? { ...place.env, ...model } : place.env;
    return await runBlock(block, { cwd: place.cwd, env });
  };
  const ends = await Promise.all(blocks.filter(({ needs }) => !needs.startsWith("not run:")).map(runOne));
  assert.deepEqual(
    ends.map(({ place, code, notUnderstood }) => ({ place, code, notUnderstood })),
    ends.map(({ place }) => ({ place, code: 0, notUnderstood: [] })),
    ends.map(({ place, printed }) => `${place}\n${printed}`).join("\n\n"),
  );
});

test("pictures and pages count the tools that a session has", () => {
  const files = globSync(["README.md", "docs/*.md", "docs/images/*.svg", "packages/*/README.md"], { cwd: repository });
  const counted = files.flatMap((file) =>
    [...readFileSync(join(repository, file), "utf8").matchAll(/\b(\d+) tools\b/g)].map(([, count]) => [file, count]),
  );
  assert.deepEqual(
    counted,
    counted.map(([file]) => [file, String(builtInTools.length)]),
  );
});
