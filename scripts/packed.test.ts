/** What users get: the tarballs of our packages, unpacked outside the clone, and run and compiled there. A real install
 *  needs the package registry; verify-install.ts does that. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("..", import.meta.url));

type Packed = { readonly filename: string; readonly files: readonly { readonly path: string }[] };

test("the packed command line has its bundle, needs none of our packages, and runs alone", () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), "prefork-packed-"));
  const flags = ["--json", "--offline", "--loglevel=error", `--pack-destination=${folder.path}`];
  const json = execFileSync("npm", ["pack", ...flags], {
    cwd: join(repository, "packages/cli"),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [packed] = JSON.parse(json) as [Packed];
  const folders = new Set(packed.files.map(({ path }) => path.split("/")[0]));
  assert.deepEqual([...folders].sort(), ["LICENSE", "README.md", "bin", "dist", "package.json"]);

  execFileSync("tar", ["-xzf", packed.filename], { cwd: folder.path });
  const at = (path: string): string => join(folder.path, "package", path);
  const { dependencies = {} } = JSON.parse(readFileSync(at("package.json"), "utf8"));
  const names = Object.keys(dependencies);
  assert.deepEqual(
    names.filter((name) => name.startsWith("@prefork/")),
    [],
  );
  for (const name of names) {
    mkdirSync(dirname(at(`node_modules/${name}`)), { recursive: true });
    symlinkSync(join(repository, "node_modules", name), at(`node_modules/${name}`));
  }
  const env = { HOME: folder.path, PATH: process.env.PATH };
  const prefork = (...parameters: readonly string[]) => {
    const options = { cwd: folder.path, env, encoding: "utf8" } as const;
    const { status, stdout } = spawnSync(process.execPath, [at("bin/prefork.js"), ...parameters], options);
    return { status, stdout };
  };
  const { version } = JSON.parse(readFileSync(join(repository, "packages/cli/package.json"), "utf8"));
  assert.deepEqual(prefork("--version"), { status: 0, stdout: `${version}\n` });
  const { status, stdout } = prefork("-p", "Run `echo alone`");
  assert.deepEqual([status, stdout.includes("alone")], [0, true], stdout);
  const ripgrep = join(repository, `node_modules/@vscode/ripgrep-${process.platform}-${process.arch}/bin/rg`);
  const { layers } = JSON.parse(prefork("doctor", "--json").stdout) as { layers: { name: string; detail: string }[] };
  const { detail = "" } = layers.find(({ name }) => name === "ripgrep") ?? {};
  assert.equal(detail.startsWith(`${ripgrep}, `), existsSync(ripgrep), detail);
});

/** In the order of their dependencies. */
const LIBRARIES = ["wire", "simulator", "xray", "guard", "worktrees", "runtime"] as const;

const EVERYTHING = `
import * as guard from "@prefork/guard";
import * as runtime from "@prefork/runtime";
import * as observe from "@prefork/runtime/observe";
import { type SimRequest, say } from "@prefork/simulator";
import * as wire from "@prefork/wire";
import * as worktrees from "@prefork/worktrees";
import * as xray from "@prefork/xray";
import * as proxy from "@prefork/xray/proxy";

export const last = ({ body }: SimRequest): string => {
  const content = body.messages.at(-1)?.content ?? "";
  return typeof content === "string" ? content : content.map(({ text = "" }) => text).join(body.model);
};
export { guard, observe, proxy, runtime, say, wire, worktrees, xray };
`;

const RESOLUTIONS = {
  nodenext: { module: "nodenext" },
  bundler: { module: "esnext", moduleResolution: "bundler" },
};

const consumer = (resolution: keyof typeof RESOLUTIONS) => ({
  compilerOptions: {
    ...{ target: "es2023", lib: ["es2023"], types: ["node"], ...RESOLUTIONS[resolution] },
    ...{ strict: true, skipLibCheck: false, noEmit: true, noUnusedLocals: true },
  },
  files: ["everything.ts", "readme.ts"],
});

test("every library works from its tarball in an empty project, for Node and for two ways of resolving", () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), "prefork-consumer-"));
  const at = (path: string): string => join(folder.path, path);
  const link = (name: string): void => {
    mkdirSync(dirname(at(`node_modules/${name}`)), { recursive: true });
    if (!existsSync(at(`node_modules/${name}`)))
      symlinkSync(join(repository, "node_modules", name), at(`node_modules/${name}`));
  };
  const flags = ["--json", "--offline", "--loglevel=error", `--pack-destination=${folder.path}`];
  const workspaces = LIBRARIES.map((name) => `--workspace=@prefork/${name}`);
  const json = execFileSync("npm", ["pack", ...flags, ...workspaces, "--ignore-scripts"], {
    cwd: repository,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
  const packed = JSON.parse(json) as readonly (Packed & { readonly name: string })[];
  assert.deepEqual(packed.map(({ name }) => name).sort(), LIBRARIES.map((name) => `@prefork/${name}`).sort());
  for (const { name, filename } of packed) {
    mkdirSync(at(`node_modules/${name}`), { recursive: true });
    execFileSync("tar", ["-xzf", at(filename), "--strip-components=1", "-C", at(`node_modules/${name}`)]);
    const { dependencies = {} } = JSON.parse(readFileSync(at(`node_modules/${name}/package.json`), "utf8"));
    for (const dependency of Object.keys(dependencies)) if (!dependency.startsWith("@prefork/")) link(dependency);
  }
  link("@types/node");
  const [, program = ""] = /```ts\n(.*?)```/s.exec(readFileSync(join(repository, "README.md"), "utf8")) ?? [];
  const files = { "package.json": '{ "type": "module" }', "everything.ts": EVERYTHING, "readme.ts": program };
  for (const [path, text] of Object.entries(files)) writeFileSync(at(path), text);
  cpSync(join(repository, "examples/consumer/use-libraries.mjs"), at("use.mjs"));
  const env = { HOME: folder.path, PATH: process.env.PATH };
  const used = spawnSync(process.execPath, ["use.mjs"], { cwd: folder.path, env, encoding: "utf8" });
  assert.deepEqual(
    [used.stderr, JSON.parse(used.stdout || "null")],
    [
      "",
      {
        ...{ wire: true, simulator: "alone", xray: "messages[0].content", proxy: 1 },
        ...{ guard: "read-only", worktrees: "WorktreeError", sessions: 1 },
      },
    ],
  );
  const tsc = join(repository, "node_modules/typescript/bin/tsc");
  for (const resolution of ["nodenext", "bundler"] as const) {
    writeFileSync(at("tsconfig.json"), JSON.stringify(consumer(resolution)));
    const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", folder.path], { encoding: "utf8" });
    assert.deepEqual([resolution, program.includes("forkRequests"), status, stdout], [resolution, true, 0, ""]);
  }
});
