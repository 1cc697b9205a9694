/** Which files a search visits where a repository says what there is. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { contextOf } from "@prefork/testing/policies";
import { AgentGuard } from "../../src/agent/guard.ts";
import { bench } from "./tool-bench.ts";

/** An index with any names; git itself would write no such one. */
const indexOf = (names: readonly string[]): Buffer => {
  const head = Buffer.from("DIRC\0\0\0\x02\0\0\0\0", "latin1");
  head.writeUInt32BE(names.length, 8);
  const entries = names.map((name) => {
    const entry = Buffer.alloc((62 + name.length + 8) & ~7);
    entry.writeUInt32BE(0o100644, 24);
    entry.fill(0x11, 40, 60);
    entry.writeUInt16BE(name.length, 60);
    entry.write(name, 62);
    return entry;
  });
  const body = Buffer.concat([head, ...entries]);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
};

test("names outside of the folder that a repository's index invents are neither listed nor searched", async () => {
  await using place = await bench({ fileOptions: { ripgrep: null } });
  place.base.put("outside/notes.txt", "found outside\n");
  place.put("a.txt", "found inside\n");
  execFileSync("git", ["init", "-q"], { cwd: place.work });
  writeFileSync(place.at(".git/index"), indexOf(["../outside/notes.txt", "a.txt"]));
  const [grep, glob] = [{ pattern: "found" }, { pattern: "**" }];
  const note = "[ripgrep is not installed; searching without it is slower and knows fewer patterns]";
  assert.deepEqual(await place.call("Grep", grep), { content: `a.txt\n${note}` });
  assert.deepEqual(await place.call("Glob", glob), { content: "a.txt" });
});

test("a search shows files below its folder and in the workspace, and no others", () => {
  const guard = new AgentGuard({
    ...{ policy: contextOf({}, {}).policy, mode: "default", roots: ["/ws"], cwd: "/ws", home: "/home/me" },
    ...{ outputs: "/out", readingTools: [], tools: [], asks: "person" },
  });
  const mayShow = guard.mayShow("/elsewhere/src");
  const paths = ["/ws/a", "/elsewhere/src/a", "/elsewhere/b", "/ws/../elsewhere/b", "/elsewhere/src/../b"];
  assert.deepEqual(paths.map(mayShow), [true, true, false, false, false]);
});
