/** `prefork ps` and `prefork tasks`: which tasks run, in which process, and with which outcome. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";
import { toolResults } from "@prefork/simulator";
import type { JsonObject } from "@prefork/wire";
import { run } from "../../src/main.ts";
import { captured } from "../captured.ts";
import { parsedLines, resultIn, type Started } from "../print/ground.ts";
import { directiveIn, forking, LOOK, looked, openForking, PARTS } from "./family.ts";

/** Polls until the answer is as expected; the other process provides it, or exits and says why. */
const until = async <T>(ask: () => Promise<T>, { isThere, running }: Waiting<T>): Promise<T> => {
  const over: string[] = [];
  void running.ended.then(({ err }) => over.push(err));
  for (;;) {
    const answer = await ask();
    if (isThere(answer)) return answer;
    await after(5);
    assert.deepEqual(over, [], "it ended before");
  }
};

type Waiting<T> = { readonly isThere: (answer: T) => boolean; readonly running: Started };

test("a task of another process is running while that lives, and interrupted once it is killed", async () => {
  const held = Promise.withResolvers<void>();
  const script = forking(PARTS);
  await using ground = await openForking(async (request) => {
    const hasRead = toolResults(request).some(({ text }) => text.includes("content of"));
    if (directiveIn(request) === "service" && hasRead) await held.promise;
    return script(request);
  });
  const running = ground.start(LOOK);
  const ps = async (): Promise<readonly JsonObject[]> => parsedLines((await ground.prefork(["ps", "--json"])).out);
  const isLast = (rows: readonly JsonObject[]): boolean => rows.length === 1 && rows[0]?.turns === 1;
  const [row] = await until(ps, { isThere: isLast, running });
  assert.deepEqual(
    [row?.label, row?.words, row?.isOrphan, (row?.owner as JsonObject | null)?.pid],
    ["look at service", "running", false, running.child.pid],
  );
  const table = (await ground.prefork(["ps"])).out.split("\n");
  assert.match(table[0] ?? "", /^task +session +kind +state +label +turns +tokens +cost +age$/);
  assert.match(
    table[2] ?? "",
    /^[0-9a-f]{10} {2}[0-9a-f]{10} {2}fork {2}running {2}look at service +1 +[\d,]+ +\$[\d.]+ +\d+ s$/,
  );

  const session = String(row?.session);
  const hint = `Session ${session} is running (attach: prefork attach ${session})\n`;
  const isHinted = (out: string): boolean => out.endsWith(hint);
  await until(async () => (await ground.prefork(["ps"])).out, { isThere: isHinted, running });
  const watcher = captured({ env: ground.env, inputIsTerminal: false });
  const attached = run(["attach", String(row?.id).slice(0, 9)], watcher);
  await until(async () => watcher.text(), { isThere: (text) => text.includes("· Bash"), running });
  const shown = await ground.prefork(["tasks", "show", String(row?.id)]);
  const open = `session  ${session} (open in process ${running.child.pid}; attach: prefork attach ${row?.id})`;
  assert.ok(shown.out.includes(`\n${open}\n`), shown.out);

  running.child.kill("SIGKILL");
  await running.ended;
  assert.equal(await attached, 1);
  assert.match(watcher.text(), /^\+ (task-\w+) started: look at service\n· Bash cat service\.txt\n$/);
  const [gone] = await ps();
  assert.deepEqual(
    [gone?.id, gone?.words, gone?.isOrphan, gone?.owner, gone?.turns],
    [row?.id, "interrupted (owner gone)", true, null, 1],
  );
  held.resolve();
});

test("no task is running once all have reported; --all lists them with their cost", async () => {
  await using ground = await openForking();
  assert.equal((await ground.prefork(["ps", "--all"])).out, "There are no tasks.\n");
  const id = await looked(ground);
  assert.equal((await ground.prefork(["ps"])).out, "No task is running. To list ended tasks too: prefork ps --all\n");
  const all = parsedLines((await ground.prefork(["ps", "--all", "--json"])).out);
  assert.deepEqual(
    all
      .map(({ session, kind, label, words, turns, state, cwd }) => ({ session, kind, label, words, turns, state, cwd }))
      .toSorted((a, b) => (String(a.label) < String(b.label) ? -1 : 1)),
    PARTS.map((part) => ({
      ...{ session: id, kind: "fork", label: `look at ${part}`, words: "reported", turns: 2, cwd: ground.work },
      state: { kind: "ended", end: "reported" },
    })),
  );
  assert.deepEqual(
    parsedLines((await ground.prefork(["tasks", "--session", id, "--json"])).out).map(ageless),
    all.map(ageless),
  );
  assert.deepEqual(
    parsedLines((await ground.start(["tasks", "list", "--json"]).ended).out).map(ageless),
    all.map(ageless),
  );
});

const ageless = ({ ageMs: _age, ...row }: JsonObject): JsonObject => row;

test("a task is shown with its directive, its report without control characters, and its requests", async () => {
  await using ground = await openForking();
  const id = await looked(ground);
  const tasks = parsedLines((await ground.prefork(["tasks", "--session", id, "--json"])).out);
  const service = tasks.find(({ label }) => label === "look at service");
  const short = String(service?.id).slice("task-".length, -2);
  const { code, out } = await ground.prefork(["tasks", "show", short]);
  assert.equal(code, 0);
  assert.ok(!out.includes("\u001b"));
  const told = out.slice(out.indexOf("\nDirective"), out.indexOf("\nagent"));
  assert.equal(told, "\nDirective\n  service\n\nReport\n  Scope: service\n  Result: all is well\\u001b[2J\n");
  for (const line of [
    `task     ${service?.id}`,
    "label    look at service",
    "state    reported",
    `session  ${id}`,
    `journal  ${service?.journal}`,
  ])
    assert.ok(out.includes(`${line}\n`), `${line} stands in\n${out}`);
  const shown = resultIn((await ground.prefork(["tasks", "show", String(service?.id), "--json"])).out);
  const explained = resultIn((await ground.prefork(["explain", id, String(service?.id), "--json"])).out);
  assert.deepEqual([shown.directive, shown.requests], ["service", explained.rows]);
});

test("a task that is not there is one line and exit code 2, and so is a folder without sessions", async () => {
  await using ground = await openForking();
  await looked(ground);
  assert.deepEqual(await ground.prefork(["tasks", "show", "nope"]), {
    ...{ code: 2, out: "", err: "prefork: there is no task nope\n" },
  });
  const { code, err } = await ground.start(["tasks"], { cwd: ground.home }).ended;
  assert.deepEqual([code, err], [2, `prefork: there is no session of ${ground.home}\n`]);
});

test("looking at tasks takes no lock: the session can be gone on with at once", async () => {
  await using ground = await openForking();
  const id = await looked(ground);
  await Promise.all(["ps", "tasks", "explain"].map((name) => ground.start([name]).ended));
  const { code, out } = await ground.prefork(["-p", "--resume", id, "Thank you."]);
  assert.deepEqual([code, out], [0, "heard\n"]);
});
