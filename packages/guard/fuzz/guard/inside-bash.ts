/** Inside the walls: lets bash run texts where every program only notes its words. */

import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [PROGRAMS, EMPTY, NOTES] = ["/tmp/programs", "/tmp/empty", "/tmp/notes"];
const NOTE = `#!/bin/sh\nprintf '%s\\001' "\${0##*/}" "$@" "$(printf '\\002')" >> ${NOTES}\n`;

/** What bash would do itself is given back to programs, so that it is noted too. */
const SCRIPT = 'enable -n echo printf test [ true false pwd kill 2>/dev/null; eval "$1"';

const { names, texts } = JSON.parse(readFileSync(0, "utf8")) as {
  readonly names: readonly string[];
  readonly texts: readonly string[];
};

mkdirSync(PROGRAMS);
mkdirSync(EMPTY);
for (const name of names) {
  writeFileSync(join(PROGRAMS, name), NOTE);
  chmodSync(join(PROGRAMS, name), 0o755);
}

const noted = texts.map((text) => {
  rmSync(NOTES, { force: true });
  writeFileSync(NOTES, "");
  spawnSync("/bin/bash", ["--noprofile", "--norc", "-c", SCRIPT, "bash", text], {
    cwd: EMPTY,
    env: { PATH: PROGRAMS, HOME: "/tmp/place", LC_ALL: "C.UTF-8" },
    stdio: "ignore",
    timeout: 5_000,
  });
  return readFileSync(NOTES, "utf8")
    .split("\u0001\u0002\u0001")
    .filter((line) => line !== "");
});
process.stdout.write(JSON.stringify(noted));
