/** Which files does the published command line consist of? Bundles packages/cli/src, and every package that it uses,
 *  into packages/cli/dist, so that the tarball needs none of our packages beside it.
 *  Invariant: a package is either inside the bundle or a declared dependency of packages/cli; runs on Node 20.
 *  Elsewhere: compiling the libraries (build.mjs), the program that loads the bundle (packages/cli/bin). */

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const TARGET = "node22.18";
const NOTICES = "THIRD-PARTY-LICENSES.txt";

const readJson = (file) => JSON.parse(readFileSync(file, "utf8"));

/** `node_modules/a/lib/x.js` belongs to the folder `node_modules/a`; our own sources belong to none. */
const packageFolder = (path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];

const licenseText = (folder) => {
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  if (file !== undefined) return readFileSync(join(folder, file), "utf8").trim();
  const { license, author } = readJson(join(folder, "package.json"));
  const holder = typeof author === "string" ? author : author?.name;
  if (license === "MIT" && holder) return `MIT License\n\nCopyright (c) ${holder}\n\n${MIT_TERMS}`;
  throw new Error(`${folder} has no license file, so it cannot go into the bundle`);
};

/** For a package that states this license in its manifest and carries no text of it. */
const MIT_TERMS = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;

/** A package that finds a program of its own on disk cannot find it from inside our bundle. */
const carriesBinary = ({ optionalDependencies, os, cpu, gypfile }) =>
  Object.keys(optionalDependencies ?? {}).length > 0 || os !== undefined || cpu !== undefined || gypfile === true;

const licensesOf = (folders) =>
  folders.map((folder) => {
    const manifest = readJson(join(folder, "package.json"));
    const name = `${manifest.name} ${manifest.version}`;
    if (carriesBinary(manifest))
      throw new Error(`${name} has binaries: declare it in the dependencies of packages/cli, so that npm installs it`);
    return `${name}\n\n${licenseText(folder)}\n`;
  });

const writeIfChanged = (file, contents) => {
  if (existsSync(file) && readFileSync(file).equals(contents)) return;
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, contents);
  renameSync(draft, file); // a command that starts meanwhile loads the old file or the new one, never half of it
};

export const bundle = async (root) => {
  const { build } = await import("esbuild");
  const cli = join(root, "packages/cli");
  const outdir = join(cli, "dist");
  const { dependencies = {} } = readJson(join(cli, "package.json"));
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    // The proxy starts its thread from a file of its own, beside the code that starts it.
    entryPoints: { main: "packages/cli/src/main.ts", thread: "packages/xray/src/proxy/thread.ts" },
    outdir,
    bundle: true,
    splitting: true, // a command loads no other command's code
    format: "esm",
    platform: "node",
    target: TARGET,
    conditions: ["prefork-source"],
    mainFields: ["module", "main"],
    external: Object.keys(dependencies),
    legalComments: "none", // every license is in the notices, whole
    metafile: true,
    write: false,
    logLevel: "warning",
  });
  const folders = new Set(Object.keys(metafile.inputs).map(packageFolder).filter(Boolean));
  const licenses = licensesOf([...folders].sort().map((folder) => join(root, folder)));
  const notices = `The bundle in this folder contains these packages.\n\n${licenses.join("\n---\n\n")}`;
  const files = [...outputFiles, { path: join(outdir, NOTICES), contents: Buffer.from(notices) }];
  mkdirSync(outdir, { recursive: true });
  for (const { path, contents } of files) writeIfChanged(path, contents);
  const kept = new Set(files.map(({ path }) => basename(path)));
  for (const name of readdirSync(outdir)) if (!kept.has(name)) rmSync(join(outdir, name), { recursive: true });
};

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  await bundle(dirname(dirname(fileURLToPath(import.meta.url))));
