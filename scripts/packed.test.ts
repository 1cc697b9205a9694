/** What others get: the tarball that `npm pack` makes of packages/cli, unpacked far from the clone (a real install needs
 *  the package registry and is tried by verify-install.ts), and the declarations of our libraries, compiled strictly. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempDisposableSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
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

const CONSUMER = {
  compilerOptions: {
    ...{ target: "es2023", lib: ["es2023"], module: "nodenext", types: ["node"] },
    ...{ strict: true, skipLibCheck: false, noEmit: true, noUnusedLocals: true },
  },
};

const EVERYTHING = `
import * as runtime from "@prefork/runtime";
import { type SimRequest, say } from "@prefork/simulator";
import * as wire from "@prefork/wire";
import * as xray from "@prefork/xray";
import * as proxy from "@prefork/xray/proxy";

export const last = ({ body }: SimRequest): string => {
  const content = body.messages.at(-1)?.content ?? "";
  return typeof content === "string" ? content : content.map(({ text = "" }) => text).join(body.model);
};
export { proxy, runtime, say, wire, xray };
`;

test("our declarations and the README's program compile with lib es2023 and without skipLibCheck", () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), "prefork-consumer-"));
  const at = (path: string): string => join(folder.path, path);
  for (const name of ["@prefork/wire", "@prefork/simulator", "@prefork/xray", "@prefork/runtime", "@types/node"]) {
    mkdirSync(dirname(at(`node_modules/${name}`)), { recursive: true });
    symlinkSync(join(repository, "node_modules", name), at(`node_modules/${name}`));
  }
  const [, program = ""] = /```ts\n(.*?)```/s.exec(readFileSync(join(repository, "README.md"), "utf8")) ?? [];
  const files = { "package.json": '{ "type": "module" }', "everything.ts": EVERYTHING, "readme.ts": program };
  for (const [path, text] of Object.entries({ ...files, "tsconfig.json": JSON.stringify(CONSUMER) }))
    writeFileSync(at(path), text);
  const tsc = join(repository, "node_modules/typescript/bin/tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", folder.path], { encoding: "utf8" });
  assert.deepEqual([program.includes("forkRequests"), status, stdout], [true, 0, ""]);
});
