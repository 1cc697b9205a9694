/** Rules about files of a checkout apply to the copies of these files in its worktrees, for whoever reads them. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { decide, mergeLayers, settingsOfFlags } from "@prefork/guard";
import { scratch } from "@prefork/testing/scratch";
import { gitIn } from "@prefork/testing/with-keys";
import { Worktrees } from "@prefork/worktrees";
import { AgentGuard } from "../../src/agent/guard.ts";

test("what a rule by place denies or asks about is not read in a worktree, and other worktrees are not affected", async () => {
  using place = scratch();
  const state = place.at("state");
  mkdirSync(state, { mode: 0o700 });
  const treeOf = async (name: string): Promise<string> => {
    for (const file of ["secrets/key", "asked/key", "plain"]) place.put(`${name}/${file}`, "text\n");
    gitIn(place.at(name), "init", "-q");
    gitIn(place.at(name), "add", "-A");
    gitIn(place.at(name), "commit", "-qm", "one");
    const worktrees = await Worktrees.open({ cwd: place.at(name), state });
    return (await worktrees.create({ task: "t1", label: "", snapshot: await worktrees.snapshot() })).path;
  };
  const [own, others] = [await treeOf("work"), await treeOf("other")];
  const cwd = place.at("work");
  const where = { base: cwd, home: place.at("home") };
  const written = {
    deny: ["Read(./secrets/**)", `Read(/${cwd}/never.txt)`, `Edit(/${cwd}/**)`],
    ask: ["Read(./asked/**)"],
    allow: ["Read"],
  };
  const settings = settingsOfFlags(written, where);
  assert.ok(typeof settings !== "string", JSON.stringify(settings));
  const guardAt = (folder: string): AgentGuard =>
    new AgentGuard({
      ...{ policy: mergeLayers([settings]), mode: "default", roots: [folder], cwd: folder, home: place.at("home") },
      ...{ outputs: `${state}/sessions/s1/outputs`, readingTools: ["Read"], tools: [], asks: "person" },
    });
  // The parent, and a session in another folder.
  for (const folder of [cwd, place.at("home")]) {
    const context = guardAt(folder).context();
    const kinds = (tree: string): readonly string[] =>
      ["secrets/key", "asked/key", "plain"].flatMap((file) => [
        decide({ tool: "Read", args: { file_path: `${tree}/${file}` } }, context).kind,
        decide({ tool: "Bash", args: { command: `cat ${tree}/${file}` } }, context).kind,
      ]);
    assert.deepEqual(kinds(own), ["deny", "deny", "ask", "ask", "allow", "allow"], folder);
    assert.deepEqual(kinds(others), Array(6).fill("allow"), folder);
  }
});
