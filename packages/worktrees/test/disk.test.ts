import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratch } from "@prefork/testing/scratch";

const PROCESS = fileURLToPath(new URL("disk-process.ts", import.meta.url));

/** A separate file system, which only the processes in it can see. */
const MOUNT = 'mount -t tmpfs -o size=24m tmpfs "$1" && shift && exec "$@"';

test("a disk that is full at any step leaves the checkout and the copy as they were", (context) => {
  using place = scratch();
  const disk = place.at("disk");
  mkdirSync(disk);
  const inside = (words: readonly string[]): ReturnType<typeof spawnSync> =>
    spawnSync("unshare", ["-Urm", "sh", "-c", MOUNT, "sh", disk, ...words], {
      encoding: "utf8",
      env: { ...process.env, TMPDIR: disk },
    });
  if (inside(["true"]).status !== 0)
    return context.skip("a file system of its own cannot be mounted here without rights");
  const { stdout, stderr } = inside([process.execPath, ...process.execArgv, PROCESS, "4"]);
  assert.equal(String(stderr), "");
  const trials = JSON.parse(String(stdout)) as Record<string, { failures: number }>;
  assert.deepEqual(
    Object.entries(trials).map(([name, { failures }]) => [name, failures > 0]),
    ["create", "finish", "merge", "undo"].map((name) => [name, true]),
  );
});
