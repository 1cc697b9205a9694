/** What could not be checked does not count as harmless. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import { checkSecretsHidden, repositoryWithSecrets, runReadOnly } from "@prefork/testing/with-keys";

/** A link so deep that its absolute path is too long for the system, while a program can open its relative one. */
const putDeepLink = (folder: string, target: string): string => {
  const depth = 20;
  const names = Array.from({ length: depth }, (_, at) => "d".repeat(at === 0 ? 250 : 200));
  const before = process.cwd();
  process.chdir(folder);
  for (const name of names) {
    mkdirSync(name);
    process.chdir(name);
  }
  symlinkSync(`${"../".repeat(depth)}${target}`, "link");
  process.chdir(before);
  return [...names, "link"].join("/");
};

test("a link whose absolute path is too long to look up is not read", async () => {
  using place = repositoryWithSecrets();
  const name = putDeepLink(place.work, "../.netrc");
  try {
    assert.equal(spawnSync("cat", [name], { cwd: place.work, encoding: "utf8" }).status, 0); // a program can open it
    const read = await runReadOnly(`cat ${name}`, place);
    assert.deepEqual(
      [read.isRefused, read.shown.includes("secret"), /could not be checked \(ENAMETOOLONG\)/.test(read.shown)],
      [true, false, true],
    );
    await checkSecretsHidden(place, [
      [`head -1 < ${name}`],
      [`sort ${name}`],
      [`diff plain.txt ${name}`],
      ["find . -name link | xargs cat"],
      [`cat ${name.slice(0, -5)}/*`],
      [`grep -r secret ${name}`],
      ["grep -rh plain sub plain.txt", /plain/],
    ]);
  } finally {
    spawnSync("rm", ["-rf", ...readdirSync(place.work).filter((one) => /^d+$/.test(one))], { cwd: place.work });
  }
});

test("a walk that lacks file descriptors fails, and takes no folder for empty", () => {
  using place = scratch();
  place.put("sub/.env", "TOKEN=x\n");
  const program = `
    import { openSync, closeSync } from "node:fs";
    import { findSecrets } from "${new URL("../../src/run/secret-walk.ts", import.meta.url).href}";
    const held = [];
    try { for (;;) held.push(openSync("/dev/null", "r")); } catch {}
    let answer;
    try { answer = findSecrets([process.argv[1]]).found.length; } catch (error) { answer = error.message; }
    for (const descriptor of held) closeSync(descriptor);
    console.log(JSON.stringify([answer, findSecrets([process.argv[1]]).found.length]));`;
  const node = [process.execPath, ...process.execArgv.filter((word) => word.startsWith("--conditions"))];
  const script = ["-c", 'ulimit -n 64; exec "$@"', "bash", ...node, "--input-type=module", "-e", program, place.path];
  const { stdout } = spawnSync("/bin/bash", script, { encoding: "utf8" });
  assert.deepEqual(JSON.parse(stdout), [`${place.path} could not be checked (EMFILE)`, 1]);
});
