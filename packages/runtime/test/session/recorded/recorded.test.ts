/** A session and a fork that an earlier version recorded go on with the very bytes that were sent then. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startSimulator } from "@prefork/simulator";
import { scratch } from "@prefork/testing/scratch";
import { resumeSession } from "../../../src/index.ts";
import { type Sent, sentTo } from "../as-sent.ts";
import { GO_ON, type Line, optionsIn, script } from "./conversation.ts";

type Recording = {
  readonly session: string;
  readonly tasks: readonly { readonly id: string }[];
  readonly lines: { readonly main: readonly Line[]; readonly forks: readonly Line[] };
};

const FIXTURE = join(import.meta.dirname, "fixtures/before-packages");

/** How many of these lines does a request go on from, byte for byte? */
const extended = ({ bytes }: Sent, lines: readonly Line[]): number =>
  lines.filter((line) => createHash("sha256").update(bytes.subarray(0, line.bytes)).digest("hex") === line.sha256)
    .length;

test("a session and its fork that were recorded by an earlier version continue with the same bytes", async () => {
  using place = scratch();
  for (const name of ["work", "home"]) mkdirSync(place.at(name));
  writeFileSync(place.at("work/greeting.txt"), "hello\n");
  cpSync(join(FIXTURE, "state"), place.at("state"), { recursive: true });
  // A checkout does not keep that only the user may read them.
  for (const entry of readdirSync(place.at("state"), { recursive: true, withFileTypes: true }))
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o700 : 0o600);
  chmodSync(place.at("state"), 0o700);
  const { session: id, tasks, lines } = JSON.parse(readFileSync(join(FIXTURE, "sent.json"), "utf8")) as Recording;
  await using simulator = await startSimulator({ keepBodies: true, script });
  await using session = await resumeSession(id, optionsIn(place.path, simulator));
  const { end } = await session.prompt(GO_ON, { tasks: "wait" }).result();
  const [main] = sentTo(simulator);
  const [task] = tasks;
  assert.ok(main && task);
  const woken = await session.resumeTask(task.id, { message: GO_ON });
  const fork = sentTo(simulator).at(-1);
  assert.ok(fork);
  assert.deepEqual(
    { end, main: extended(main, lines.main), woken: woken.state.kind, fork: extended(fork, lines.forks) },
    { end: "done", main: 1, woken: "ended", fork: 1 },
  );
});
