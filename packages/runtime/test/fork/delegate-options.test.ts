/** Forks that a program starts: their options and filters, their observers, and what remains of them afterwards. */

import assert from "node:assert/strict";
import { mkdirSync, mkdtempDisposableSync, readdirSync, readFileSync, renameSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";
import { type FilterVerdict, memoryOnly, only, readOnly, type ToolFilter } from "@prefork/guard";
import { callTools, say } from "@prefork/simulator";
import { scratch, treeOf } from "@prefork/testing/scratch";
import { type JsonObject, type Message, userText } from "@prefork/wire";
import * as z from "zod";
import { RunAudit } from "../../src/children/run-audit.ts";
import type { EventBody } from "../../src/events.ts";
import { builtInTools, defineTool, type ForkOptions, type RuntimeEvent } from "../../src/index.ts";
import { createRegistry } from "../../src/internal.ts";

import {
  asksForSummary,
  bash,
  begun,
  ended,
  openFamily,
  openListening,
  prompted,
  seenIn,
  watched,
  withoutMarkers,
} from "./family-ground.ts";

// --- what it is told and allowed ---------------------------------------------------------------------------------------

test("invalid fork options are refused before anything starts", async () => {
  await using place = await openListening(() => say("never"));
  await using session = await begun(place);
  const wrong: readonly (readonly [ForkOptions, RegExp])[] = [
    [{}, /a fork needs a prompt or messages/],
    [{ prompt: "  " }, /a fork needs a prompt or messages/],
    [{ prompt: "x", messages: [userText("y")] }, /a fork takes a prompt or messages, not both/],
    [
      { messages: [userText("y"), { role: "assistant", content: [{ type: "text", text: "z" }] }] },
      /must end with a user message/,
    ],
    [{ messages: [{ role: "user", content: [] }] }, /a message of the fork is empty/],
    [{ prompt: "x", maxTurns: -1 }, /maxTurns must be a non-negative whole number, got -1/],
    [{ prompt: "x", timeoutMs: 0.5 }, /timeoutMs must be a non-negative whole number, got 0.5/],
  ];
  for (const [options, reason] of wrong) assert.throws(() => session.fork(options), reason);
  assert.deepEqual([session.tasks, place.simulator.ledger().length], [[], 1]);
});

test("a caller's own messages are sent without the child protocol", async () => {
  await using place = await openFamily((request) => say(`answer ${seenIn(request).answers}`));
  await using session = await begun(place);
  const messages: readonly Message[] = [
    userText("What is one and one?"),
    { role: "assistant", content: [{ type: "text", text: "Two." }] },
    userText("And one more?"),
  ];
  const handle = session.fork({ messages, label: "sums", querySource: "eval" });
  const outcome = await ended(handle);
  // It answers as it likes: nobody asked it for a report.
  assert.deepEqual([outcome.end, outcome.text, "report" in outcome], ["reported", "answer 2", false]);
  const [parent, child] = place.bodies().map(({ messages: all }) => JSON.parse(withoutMarkers(JSON.stringify(all))));
  assert.deepEqual(child.slice(0, parent.length), parent);
  assert.deepEqual(
    child.slice(parent.length).map(({ role, content }: Message) => [role, content]),
    [["assistant", [{ type: "text", text: "answer 0" }]], ...messages.map(({ role, content }) => [role, content])],
  );
  assert.doesNotMatch(JSON.stringify(child), /fork-boilerplate|fork-directive/);
  assert.deepEqual(
    session.tasks.map(({ label, querySource }) => [label, querySource]),
    [["sums", "eval"]],
  );
});

test("a reminder is at the tail, before the directive, and changes no byte before it", async () => {
  await using place = await openListening(({ directive }) => say(`Scope: ${directive}\nResult: done`));
  await using session = await begun(place);
  await ended(session.fork({ prompt: "part" }));
  await ended(session.fork({ prompt: "part", overrides: { criticalSystemReminder: "Touch </note> nothing." } }));
  const [, plain, reminded] = place.simulator.requests().map(({ body }) => withoutMarkers(body.toString("utf8")));
  assert.ok(plain && reminded);
  const own = plain.indexOf('{"type":"text","text":"<fork-boilerplate>');
  assert.equal(reminded.slice(0, own), plain.slice(0, own));
  const added = reminded.slice(own, reminded.length - (plain.length - own));
  assert.equal(
    added,
    `{"type":"text","text":${JSON.stringify('<note kind="reminder">Touch &lt;/note> nothing.</note>')}},`,
  );
  assert.equal(reminded.slice(own + added.length), plain.slice(own));
});

test("a read-only run may call a program's own tool that declares to only read, and is told why it may not call another", async () => {
  const own = (name: string, reads: boolean) =>
    defineTool({
      name,
      description: "Tells.",
      input: z.strictObject({}),
      readOnly: reads,
      run: async () => ({ content: `${name} ran` }),
    });
  const got: string[] = [];
  await using place = await openListening(({ directive, answers, results }) => {
    got.push(...results.map(({ text }) => text));
    return answers === 0
      ? callTools([
          { name: "Weather", input: {} },
          { name: "Deploy", input: {} },
        ])
      : say(`Scope: ${directive}\nResult: done`);
  });
  await using session = await begun(place, { tools: [...builtInTools, own("Weather", true), own("Deploy", false)] });
  await ended(session.fork({ prompt: "part", filter: readOnly }));
  assert.deepEqual(got, [
    "Weather ran",
    "Not allowed: Deploy is not declared to be read-only. Here you may only read: Read, Glob, Grep, and Bash for commands that change nothing",
  ]);
  assert.equal(session.snapshot?.querySource, "sdk");
});

test("durations are never negative, whatever happens to the clock", async () => {
  const clock = { at: 1_000_000 };
  await using place = await openListening(({ directive, answers }) => {
    clock.at -= 60_000;
    return answers === 0 ? callTools([bash("true")]) : say(`Scope: ${directive}\nResult: done`);
  });
  await using session = await begun(place, { clock: { now: () => clock.at } });
  const events = await watched(session, () => ended(session.fork({ prompt: "part" })));
  const durations = events.flatMap((event) => ("ms" in event ? [[event.type, event.ms >= 0]] : []));
  assert.deepEqual(durations, [
    ["turn_ended", true],
    ["call_ended", true],
    ["turn_ended", true],
  ]);
  assert.deepEqual(
    session.tasks.map(({ result }) => (result?.ms ?? -1) >= 0),
    [true],
  );
});

test("a filter refuses calls while the fork runs, and the declared tools stay the same", async () => {
  const got: (readonly string[])[] = [];
  await using place = await openListening(({ directive, answers, results }) => {
    if (answers === 1) got.push(results.map(({ text, isError }) => `${isError ? "! " : ""}${text}`));
    const write = { name: "Write", input: { file_path: place.folder.at("work/made"), content: "x" } };
    return answers === 0
      ? callTools([write, { name: "Read", input: { file_path: place.folder.at("work/notes") } }])
      : say(`Scope: ${directive}\nResult: done`);
  });
  place.folder.put("work/notes", "noted\n");
  await using session = await begun(place);
  const events = await watched(session, async () => {
    const { end, toolUses } = await ended(session.fork({ prompt: "part", filter: only(["Read"]) }));
    assert.deepEqual([end, toolUses], ["reported", 1]);
  });
  assert.deepEqual(got, [["! Not allowed: Write is not allowed in this run. Here you may use: Read", "1\tnoted"]]);
  assert.deepEqual(readdirSync(place.work), ["notes"]);
  assert.deepEqual(
    events.flatMap((event) => (event.type === "fork_tool_denied" ? [[event.level, event.tool, event.reason]] : [])),
    [["debug", "Write", "Not allowed: Write is not allowed in this run. Here you may use: Read"]],
  );
  const [parent, child] = place.bodies();
  assert.deepEqual(child?.tools, parent?.tools);
});

// --- the one folder that it may write in -------------------------------------------------------------------------------

/** Lets everything pass, as a filter with a fault would; the run is compared before and after all the same. */
const faulty = (folder: string): ToolFilter => {
  const { memory } = memoryOnly(folder);
  assert.ok(memory);
  return Object.assign((): FilterVerdict => ({ allowed: true }), { memory });
};

test("a change outside its folder fails a memory run, and is reported, reverted and saved; changes by others stay", async () => {
  await using place = await openListening(async ({ directive, answers }) => {
    const at = (name: string): string => place.folder.at("work", name);
    const write = (name: string) => ({ name: "Write", input: { file_path: at(name), content: "by the run\n" } });
    if (answers === 0) return callTools([write("made"), write("memory/notes.md")]);
    if (answers === 1) return callTools([bash("echo by the run > changed; rm gone; mkdir -p deep/er")]);
    // None of its calls runs now, nor did by the clock of the file system, which lags behind.
    await after(50);
    place.folder.put("work/users/notes", "by a person\n");
    return say(`Scope: ${directive}\nResult: done`);
  });
  for (const name of ["changed", "gone", "memory/old.md", "users/old"]) place.folder.put(`work/${name}`, "before\n");
  await using session = await begun(place);
  let told = "";
  const events = await watched(session, async () => {
    const filter = faulty(place.folder.at("work/memory"));
    const { end, text } = await ended(session.fork({ prompt: "part", filter }));
    assert.equal(end, "failed");
    told = text;
  });
  assert.deepEqual(treeOf(place.work), {
    ...{
      changed: "644 before\n",
      gone: "644 before\n",
      "users/": "755",
      "users/old": "644 before\n",
      "users/notes": "644 by a person\n",
    },
    ...{ "memory/": "755", "memory/notes.md": "600 by the run\n", "memory/old.md": "644 before\n" },
  });
  const [breach, ...more] = events.flatMap((event) => (event.type === "fork_breached" ? [event] : []));
  assert.deepEqual([breach?.level, breach?.folder, more], ["warn", place.folder.at("work/memory"), []]);
  const files = breach?.files.map(({ copy, path, ...file }) => {
    const kept = copy === undefined ? undefined : readFileSync(copy, "utf8");
    return { ...file, path: path.slice(place.work.length + 1), kept };
  });
  assert.deepEqual(files, [
    { change: "changed", reverted: true, path: "changed", kept: "by the run\n" },
    { change: "created", reverted: true, path: "deep", kept: undefined },
    { change: "created", reverted: true, path: "deep/er", kept: undefined },
    { change: "removed", reverted: true, path: "gone", kept: undefined },
    { change: "created", reverted: true, path: "made", kept: "by the run\n" },
  ]);
  assert.match(
    told,
    /^Ended as failed: it changed what its filter does not let it change, outside \S+memory: changed /,
  );
  assert.match(
    told,
    /\[while it ran, this was done outside \S+ when no call of it could .*: created \S+users\/notes\]$/,
  );
});

test("a memory run that stays in its folder reports normally, also through links, `..` and dollar signs", async () => {
  const got: string[] = [];
  await using place = await openListening(({ directive, answers, results }) => {
    const at = (name: string): string => place.folder.at("linked", name);
    const write = (name: string) => ({ name: "Write", input: { file_path: at(name), content: `${name}\n` } });
    got.push(...results.map(({ text }) => text.split(" ")[0] ?? ""));
    return answers === 0
      ? callTools([write("a.md"), write("sub/../b.md"), write("cost in $USD.md"), write("../work/out.md")])
      : say(`Scope: ${directive}\nResult: done`);
  });
  mkdirSync(place.folder.at("memory"));
  symlinkSync(place.folder.at("memory"), place.folder.at("linked"));
  await using session = await begun(place);
  const events = await watched(session, async () => {
    const filter = memoryOnly(place.folder.at("linked"));
    const { end } = await ended(session.fork({ prompt: "part", filter }));
    assert.equal(end, "reported");
  });
  assert.deepEqual(got, ["Made", "Made", "Made", "Not"]);
  assert.deepEqual(Object.keys(treeOf(place.folder.at("memory"))).sort(), ["a.md", "b.md", "cost in $USD.md"]);
  assert.deepEqual(
    events.filter(({ type }) => type === "fork_breached"),
    [],
  );
});

test("a memory folder that was replaced before the run prevents its start, with the reason", async () => {
  await using place = await openListening(() => say("never"));
  mkdirSync(place.folder.at("memory"));
  await using session = await begun(place);
  const filter = memoryOnly(place.folder.at("memory"));
  renameSync(place.folder.at("memory"), place.folder.at("moved"));
  mkdirSync(place.folder.at("memory"));
  const { end, text } = await ended(session.fork({ prompt: "part", filter }));
  assert.equal(end, "failed");
  assert.match(text, /^Not started: the memory folder \S+memory was replaced since/);
});

test("what another agent may have written while a memory run had a command running does not fail the run", async () => {
  using place = scratch();
  for (const name of ["memory", "kept"]) mkdirSync(place.at("work", name), { recursive: true });
  const memory = memoryOnly(place.at("work/memory")).memory;
  assert.ok(memory);
  let follower: (event: RuntimeEvent) => void = () => {};
  const tell = (agent: string, body: EventBody): void =>
    follower({ session: "s", ...body, seq: 0, at: 0, level: "info", agent });
  const audit = await RunAudit.begin({
    ...{
      memory,
      roots: [place.at("work")],
      cwd: place.at("work"),
      agent: "task-1",
      ignoredFolders: [],
      othersRun: false,
    },
    keep: place.at("work/kept"),
    hasReadOnlySandbox: async () => false,
    follow: (one) => {
      follower = one;
      return { [Symbol.dispose]: () => {} };
    },
  });
  assert.ok(audit instanceof RunAudit);
  const { touches } = createRegistry(builtInTools);
  const proposed = (callId: string, tool: string, args: JsonObject): EventBody => ({
    ...{ type: "call_proposed", callId, tool, args },
    touches: touches({ name: tool, input: JSON.stringify(args) }) ?? {},
  });
  const started = (callId: string, tool: string): EventBody => ({
    type: "call_started",
    callId,
    tool,
    reason: "allowed",
  });
  tell("main", proposed("1", "Write", { file_path: "edited", content: "" }));
  tell("main", started("1", "Write"));
  tell("task-1", proposed("1", "Bash", { command: "ls" }));
  tell("task-1", started("1", "Bash"));
  tell("main", proposed("2", "Bash", { command: "make" }));
  tell("main", started("2", "Bash"));
  for (const name of ["edited", "built"]) place.put(`work/${name}`, "by the parent\n");
  assert.deepEqual(await audit.end(), {
    notes: [
      `while it ran, this was done outside ${memory.path} when no call of it could have done it, and is left as it is: created ${place.at("work/built")}`,
    ],
  });
  assert.deepEqual(Object.keys(treeOf(place.at("work"))).sort(), ["built", "edited", "kept/", "memory/"]);
  await audit[Symbol.asyncDispose]();
});

test("tools and events name a fork by the id it was given, or else by its task's id, and its parent's name stays", async () => {
  const callers: string[] = [];
  const whoTool = defineTool({
    name: "Who",
    description: "Says who calls.",
    input: z.strictObject({}),
    readOnly: true,
    run: async (_input, { agent }) => {
      callers.push(agent);
      return { content: agent };
    },
  });
  await using place = await openFamily((request) => {
    const { results, words } = seenIn(request);
    return results.length > 0 ? say(`I am ${words}`) : callTools([{ name: "Who" }]);
  });
  await using session = await place.open({ tools: [...builtInTools, whoTool] });
  await prompted(session, "who?");
  const named = await ended(session.fork({ prompt: "who?", overrides: { agentId: "reviewer" } }));
  const plain = await ended(session.fork({ prompt: "who?" }));
  await prompted(session, "who now?");
  assert.deepEqual(callers, ["main", "reviewer", "task-2", "main"]);
  assert.deepEqual([named.taskId, plain.taskId], ["task-1", "task-2"]);
  const events = await watched(session, () =>
    ended(session.fork({ prompt: "who?", overrides: { agentId: "reviewer" } })),
  );
  assert.deepEqual([...new Set(events.map(({ agent }) => agent))].sort(), ["main", "reviewer"]);
});

// --- who looks on ------------------------------------------------------------------------------------------------------

const shapeOf = ({ role, content }: Message): string => `${role}: ${content.map(({ type }) => type).join(" ")}`;

test("each observer sees exactly the fork's own messages, and one that throws affects nothing else", async () => {
  await using place = await openListening(({ directive, answers }) =>
    answers === 0 ? callTools([bash("true"), bash("true")], "I look.") : say(`Scope: ${directive}\nResult: done`),
  );
  await using session = await begun(place);
  const seen: Message[][] = [[], []];
  const onMessage = [
    (message: Message) => void seen[0]?.push(message),
    () => {
      throw new Error("no good");
    },
    (message: Message) => void seen[1]?.push(message),
  ];
  const events = await watched(session, async () => {
    assert.equal((await ended(session.fork({ prompt: "part", onMessage }))).end, "reported");
  });
  assert.deepEqual(seen[0]?.map(shapeOf), [
    "user: text",
    "assistant: text tool_use tool_use",
    "user: tool_result tool_result",
    "assistant: text",
  ]);
  assert.deepEqual(seen[1], seen[0]);
  const [first] = seen[0] ?? [];
  assert.match(JSON.stringify(first), /fork-directive: part/);
  assert.deepEqual(
    events.flatMap((event) => (event.type === "observer_failed" ? [[event.level, event.taskId, event.reason]] : [])),
    Array(4).fill(["warn", "task-1", "no good"]),
  );
  // Alone it does no harm either.
  const alone = session.fork({
    prompt: "part",
    onMessage: () => {
      throw new Error("no good");
    },
  });
  assert.equal((await ended(alone)).end, "reported");
});

// --- what is left ------------------------------------------------------------------------------------------------------

/** Until it is disposed: other programs make folders in the machine's own at any time. */
const ownTemporaryFolder = (): Disposable => {
  const { TMPDIR: usual } = process.env;
  const own = mkdtempDisposableSync(join(tmpdir(), "prefork-test-"));
  process.env.TMPDIR = own.path;
  return {
    [Symbol.dispose]: () => {
      if (usual === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = usual;
      own[Symbol.dispose]();
    },
  };
};

test("a fork without a transcript leaves no row, journal or folder, and its cost is counted", async () => {
  await using place = await openListening(({ directive, answers }) =>
    answers === 0 ? callTools([bash("seq 1 60000")]) : say(`Scope: ${directive}\nResult: done`),
  );
  await using session = await begun(place);
  using _temporary = ownTemporaryFolder();
  const folders = (): readonly string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("prefork-unkept-"));
  const [kept, before, spent] = [place.kept(), folders(), session.spent.usd];
  let during = 0;
  const handle = session.fork({
    prompt: "part",
    skipTranscript: true,
    onMessage: () => {
      during = Math.max(during, folders().length);
    },
  });
  const { end, usd } = await ended(handle);
  assert.equal(end, "reported");
  assert.deepEqual([session.tasks, place.kept(), folders()], [[], kept, before]);
  assert.ok(during > before.length && Math.abs(session.spent.usd - spent - usd) < 1e-9);
  await session.close();
  await using again = await place.resume(session.id);
  assert.deepEqual(again.tasks, []);
});

test("a compaction in a fork leaves the shared prefix unchanged for its parent and its siblings", async () => {
  await using place = await openFamily(
    (request) => {
      const seen = seenIn(request);
      if (asksForSummary(seen)) return say("<summary>Half of it is done.</summary>");
      if (seen.directive === undefined) return say("heard");
      if (seen.directive === "long" && seen.answers === 0 && !seen.words.includes("Half of it")) {
        place.simulator.fault({ kind: "status", status: 413 });
        return callTools([bash("true")]);
      }
      return say(`Scope: ${seen.directive}\nResult: done`);
    },
    { conventions: 6_000 },
  );
  await using session = await begun(place);
  const snapshot = session.snapshot?.prefix.hash;
  const events = await watched(session, async () => {
    assert.equal((await ended(session.fork({ prompt: "long" }))).end, "reported");
  });
  assert.deepEqual(
    events.flatMap((event) => (event.type === "epoch_started" ? [event.agent] : [])),
    ["task-1"],
  );
  assert.equal(session.snapshot?.prefix.hash, snapshot);
  // The parent's request, and its answer, which the first fork has written.
  const [parent, first] = place.simulator.ledger();
  assert.ok(parent && first && first.read === parent.promptTokens);
  const since = place.simulator.ledger().length;
  assert.equal((await ended(session.fork({ prompt: "short" }))).end, "reported");
  await prompted(session, "and now?");
  const answer = 2; // tokens of "heard"
  assert.deepEqual(
    place.simulator.ledger(since).map(({ read }) => read),
    [parent.promptTokens + answer, parent.promptTokens + answer],
  );
});

test("sessions that fork alternately each read their own cache, and raise no alarm", async () => {
  await using place = await openListening(({ directive }) => say(`Scope: ${directive}\nResult: done`), 3_000);
  await using one = await place.open({ appendSystemPrompt: "You are the first." });
  await using other = await place.open({ appendSystemPrompt: "You are the second.", state: place.folder.at("other") });
  const alarms: RuntimeEvent[] = [];
  for (const session of [one, other, one, other]) {
    const events = await watched(session, async () => {
      await prompted(session, "hello");
      await Promise.all(session.forkAll([{ prompt: "a" }, { prompt: "b" }]).map(ended));
    });
    alarms.push(...events.filter(({ type }) => type === "fork_cache_missed"));
  }
  assert.deepEqual(alarms, []);
});
