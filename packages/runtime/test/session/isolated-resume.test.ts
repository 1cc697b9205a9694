/** Forks in worktrees over several runs of a session: set up, resumed, killed with their session, and under other rules. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { mergeLayers, parseRule, type Rule } from "@prefork/guard";
import { callTools, say } from "@prefork/simulator";
import type { Answer, Question } from "../../src/index.ts";
import { bash, endsOf, gate, prompted, starts } from "../fork/family-ground.ts";
import { copyIn, git, isolated, openRepository, read, report, withRules, working, write } from "./isolated-ground.ts";

test("configured ignored files and a set-up command prepare a worktree before its agent works", async () => {
  await using ground = await openRepository({
    main: starts([isolated("first")]),
    fork: working((seen) => ({ first: [[bash("cat .env made.txt")], [write(`${copyIn(seen)}/c.txt`, "c\n")]] })),
  });
  ground.folder.put("work/.gitignore", ".env\nmade.txt\n");
  ground.folder.put("work/.env", "KEY=1\n");
  await using session = await ground.open(withRules({ copyIgnored: [".env"], setUp: "cp a.txt made.txt" }));
  const { events } = await prompted(session, "Split it");
  const [shown] = events.flatMap((event) => (event.type === "call_ended" && event.tool === "Bash" ? [event.text] : []));
  assert.match(shown ?? "", /^KEY=1\none\ntwo/);
  assert.equal(git(ground.work, "ls-tree", "-r", "--name-only", "prefork/task-1").includes(".env"), false);
});

test("an agent does not start if its set-up command fails, and the reason names the command", async () => {
  await using ground = await openRepository({ main: starts([isolated("first")]), fork: working(() => ({})) });
  await using session = await ground.open(withRules({ setUp: "echo broken >&2; exit 3" }));
  await prompted(session, "Split it");
  assert.deepEqual(endsOf(session), { first: "failed" });
  assert.match(
    session.tasks[0]?.result?.text ?? "",
    /worktrees\.setUp \(echo broken.*\) failed in the new worktree: broken/,
  );
  assert.equal(git(ground.work, "worktree", "list").trim().split("\n").length, 1);
});

test("an agent that starts empty works in a worktree too", async () => {
  await using ground = await openRepository({
    main: (seen) => {
      if (seen.words.includes("Make a file") && seen.words.includes("git worktree of your own"))
        return callTools([write(`${copyIn(seen)}/made.txt`, "made\n")]);
      if (seen.results.some(({ text }) => text.startsWith("Made "))) return say("done");
      return starts([{ ...isolated("Make a file"), subagent_type: "general-purpose" }])(seen);
    },
    fork: () => say("no fork here"),
  });
  await using session = await ground.open();
  await prompted(session, "Split it");
  assert.equal(existsSync(ground.folder.at("work/made.txt")), false);
  assert.equal(git(ground.work, "show", "prefork/task-1:made.txt"), "made\n");
});

test("a rule for files of the checkout applies to the same files of a worktree, and a denied file stays denied", async () => {
  const got: string[] = [];
  await using ground = await openRepository({
    main: starts([isolated("first")]),
    fork: (seen) => {
      const at = (name: string): string => `${copyIn(seen)}/${name}`;
      if (seen.answers > 0) got.push(...seen.results.map(({ text }) => text));
      if (seen.answers > 0) return report("first");
      return callTools([write(at("src/new.txt"), "x"), write(at("other.txt"), "x"), read(at("b.txt"))]);
    },
  });
  const rule = (text: string, list: "allow" | "deny"): Rule => {
    const parsed = parseRule(text, { base: ground.work, list, origin: "a test" });
    return parsed.kind === "rule" ? parsed.rule : assert.fail(parsed.reason);
  };
  const policy = {
    ...mergeLayers([]),
    sandbox: "off" as const,
    allow: [rule("Write(src/**)", "allow")],
    deny: [rule("Read(./b.txt)", "deny")],
  };
  await using session = await ground.open({ permissions: { policy, stated: true } });
  await prompted(session, "Split it");
  for (const [at, form] of [
    /^Made .*\/src\/new\.txt/,
    /^Not allowed: Write changes/,
    /^Not allowed: denied by Read/,
  ].entries())
    assert.match(got[at] ?? "", form);
  assert.equal(got.length, 3);
});

test("an answer of always creates a rule for the checkout, which applies in every worktree", async () => {
  const asked: string[] = [];
  const first = gate();
  await using ground = await openRepository({
    main: starts([isolated("first"), isolated("second")]),
    fork: async (seen) => {
      if (seen.answers > 0) {
        if (seen.directive === "first") first.open();
        return report(seen.directive);
      }
      if (seen.directive === "second") await first.passed;
      return callTools([write(`${copyIn(seen)}/src/${seen.directive}.txt`, "x")]);
    },
  });
  const ask = async ({ rule = "" }: Question): Promise<Answer> => {
    asked.push(rule);
    return { kind: "always", rule };
  };
  await using session = await ground.open({ permissions: { policy: { ...mergeLayers([]), sandbox: "off" }, ask } });
  await prompted(session, "Split it");
  assert.deepEqual(asked, [`Write(/${ground.work}/src/**)`]);
  assert.equal(git(ground.work, "show", "prefork/task-2:src/second.txt"), "x");
});

const PROGRAM = fileURLToPath(new URL("isolated-process.ts", import.meta.url));

test("a fork's work in its worktree when its session was killed is committed by the next run, and the fork resumes there", async () => {
  const [written, never] = [gate(), gate()];
  let lives = 0;
  await using ground = await openRepository({
    main: starts([isolated("first")]),
    fork: async (seen) => {
      if (seen.answers === 0) return callTools([write(`${copyIn(seen)}/half.txt`, "half\n")]);
      lives += 1;
      if (lives === 1) {
        written.open();
        await never.passed;
      }
      return seen.words.includes("interrupted")
        ? callTools([write(`${copyIn(seen)}/rest.txt`, "rest\n")])
        : report("first");
    },
  });
  const child = spawn(process.execPath, [...process.execArgv, PROGRAM, ground.simulator.url, ground.folder.path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => child.on("close", resolve));
  const [id] = await new Promise<string[]>((resolve) =>
    child.stdout.on("data", (chunk) => resolve([`${chunk}`.trim()])),
  );
  await written.passed;
  child.kill("SIGKILL");
  await ended;
  never.open();
  await using session = await ground.resume(id ?? "", { forking: { interrupted: "resume" } });
  for await (const event of session.events()) if (event.type === "task_ended") break;
  assert.deepEqual(endsOf(session), { first: "reported" });
  const branch = session.tasks[0]?.id ?? "";
  assert.equal(git(ground.work, "show", `prefork/${branch}:half.txt`), "half\n");
  assert.equal(git(ground.work, "show", `prefork/${branch}:rest.txt`), "rest\n");
  const [outcome] = await session.merge([branch]);
  assert.equal(outcome?.kind, "merged");
  assert.equal(readFileSync(ground.folder.at("work/half.txt"), "utf8"), "half\n");
});
