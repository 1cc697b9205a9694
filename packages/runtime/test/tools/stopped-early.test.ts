/** A command that is stopped while its sandbox is still being set up must not begin later unnoticed. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";
import { openSandbox } from "@prefork/guard";
import { needs } from "@prefork/testing/optional";
import { until } from "@prefork/testing/processes";
import { scratch } from "@prefork/testing/scratch";
import { startCommand } from "../../src/tools/run-command.ts";

const SLEEP = `sleep ${1_000_000 + process.pid}`;

const sleeping = (): readonly string[] =>
  readdirSync("/proc").filter((name) => {
    try {
      return (
        /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "latin1").replaceAll("\0", " ").includes(SLEEP)
      );
    } catch {
      return false; // it has ended
    }
  });

test("a command that is stopped at any moment of its start leaves no process", await needs("bwrap"), async () => {
  using folder = scratch();
  const opened = await openSandbox({ mode: "required", workspace: folder.path });
  assert.ok(opened.kind === "on");
  const { sandbox } = opened;
  const stoppedAfter = async (ms: number): Promise<number> => {
    const running = await startCommand({
      command: `${SLEEP} & ${SLEEP}`,
      cwd: folder.path,
      environment: { PATH: "/usr/bin:/bin" },
      sandbox,
      output: async () => {},
    });
    assert.ok(running.ok);
    await after(ms);
    running.stop();
    return (await running.ended).exitCode;
  };
  const codes = await Promise.all([0, 2, 4, 8, 12, 16, 24, 32, 48, 64].map(stoppedAfter));
  assert.ok(codes.every((code) => code !== 0));
  await until(() => sleeping().length === 0);
  await sandbox[Symbol.asyncDispose]();
});
