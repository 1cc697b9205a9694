/** A fork that tries to delegate its work: every way is refused with the reason, and the fork still finishes. Also, a family
 *  stays within its limits, however many agents are requested. */

import assert from "node:assert/strict";
import { chmodSync } from "node:fs";
import { dirname } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { callTools, lastUserText, type SimAnswer, say, type ToolCall } from "@prefork/simulator";
import { directiveText, type JsonObject } from "@prefork/wire";
import type { Session } from "../../src/index.ts";
import {
  asksForSummary,
  countedIds,
  endsOf,
  type FamilyGround,
  familyScript,
  gate,
  openFamily,
  part,
  prompted,
  type Seen,
  seenIn,
  starts,
} from "./family-ground.ts";

const CLOSED = "Not available in a fork: do this part of the work yourself, and report when it is done.";
const NOTHING_STARTED =
  "Nothing was started: a fork does its work itself and starts no other agents. Do the work yourself.";

const MAIN = fileURLToPath(new URL("../../../cli/src/main.ts", import.meta.url));
const NODE = [process.execPath, ...process.execArgv].join(" ");

const AGENT_WAYS: readonly ToolCall[] = [
  { name: "Agent", input: { description: "more", prompt: "again" } },
  { name: "Agent", input: { description: "more", prompt: "again", subagent_type: "fork" } },
  { name: "Agent", input: { description: "more", prompt: "again", subagent_type: "general-purpose" } },
];

/** Ways that go through a tool of ours. Task 1 has ended, task 2 runs, task 3 is the one that tries. */
const TOOL_WAYS: readonly ToolCall[] = [
  ...AGENT_WAYS,
  { name: "SendMessage", input: { to: "task-1", message: "wake up and do my part" } },
  { name: "SendMessage", input: { to: "task-2", message: "do my part too" } },
  { name: "SendMessage", input: { to: "task-3", message: "go on for ever" } },
  { name: "TaskOutput", input: { task_ids: ["task-1", "task-2"], wait: "none" } },
  { name: "TaskStop", input: { task_id: "task-2" } },
  { name: "McpCall", input: { server: "agents", tool: "start", args: { prompt: "again" } } },
];

/** Ways that go through its shell, with the environment as it is and without; task 901 is one of an earlier session. */
const SHELL_WAYS: readonly (readonly [command: string, answer: string])[] = [
  ['prefork -p "do my part"', "a fork started this command, and a fork may not start agents: it does its work itself"],
  [
    `${NODE} ${MAIN} -p -c "do my part"`,
    "a fork started this command, and a fork may not start agents: it does its work itself",
  ],
  [
    'unset PREFORK_LINEAGE; setsid -w nohup bash -c "prefork -p again; exit \\$?" </dev/null',
    "a fork started this command, and a fork may not start agents: it does its work itself",
  ],
  [
    '( (env -i PATH="$PATH" HOME="$PWD" XDG_STATE_HOME="$PWD" prefork -p again; echo $? >left) & ) 2>&1; until [ -s left ]; do sleep 0.1; done; (exit "$(cat left)")',
    "a fork started this command, and a fork may not start agents: it does its work itself",
  ],
  [
    "env -u PREFORK_LINEAGE prefork tasks resume task-901 go on",
    "task-901 cannot be resumed: a fork does its work itself and starts no other agents",
  ],
  [
    "prefork tasks resume task-901 go on",
    "task-901 cannot be resumed: a fork does its work itself and starts no other agents",
  ],
];

const shell = (ways: typeof SHELL_WAYS): ToolCall => ({
  name: "Bash",
  input: { command: ways.map(([command]) => `${command} 2>&1; echo "exit $?"`).join("\n") },
});

const refusedShell = (ways: typeof SHELL_WAYS): string =>
  [...ways.map(([, answer]) => `prefork: ${answer}\nexit 2`), "[exit code 0]"].join("\n");

/** `prefork` stands in the search path, as where it is installed, and finds the sessions of the test. */
const installed = (ground: FamilyGround): { readonly state: string; readonly environment: Record<string, string> } => {
  const { NODE_COMPILE_CACHE: folder } = process.env;
  const compiled = folder === undefined ? "" : `export NODE_COMPILE_CACHE='${folder}'\n`;
  const script = ground.folder.put("bin/prefork", `#!/bin/sh\n${compiled}exec ${NODE} ${MAIN} "$@"\n`);
  chmodSync(script, 0o755);
  const environment = {
    PATH: `${dirname(script)}:/usr/bin:/bin`,
    HOME: ground.folder.at("home"),
    XDG_STATE_HOME: ground.folder.at("state"),
    ANTHROPIC_BASE_URL: ground.simulator.url,
  };
  return { state: ground.folder.at("state/prefork"), environment };
};

const textsOf = (results: Seen["results"]): readonly string[] =>
  results.map(({ text, isError }) => `${isError ? "! " : ""}${text}`);

test("a fork that tries every way to delegate, before and after a compaction, is refused each time and still reports", async () => {
  const siblings = gate();
  const got: (readonly string[])[] = [];
  const tries = ({ results, answers }: Seen, round: 1 | 2): SimAnswer => {
    if (answers === 0) return callTools([...TOOL_WAYS, shell(round === 1 ? SHELL_WAYS : SHELL_WAYS.slice(0, 1))]);
    if (answers === 1) got.push(textsOf(results));
    if (round === 1) {
      ground.simulator.fault({ kind: "status", status: 413 }); // its next request is too long
      return callTools([{ name: "Bash", input: { command: "true" } }]);
    }
    siblings.open();
    return say("Scope: the third part\nResult: did it myself");
  };
  await using ground = await openFamily((request) => {
    const seen = seenIn(request);
    if (asksForSummary(seen)) return say("<summary>Round 1 is over.</summary>");
    switch (seen.directive) {
      case "ends":
        return say("Scope: the first part\nResult: done");
      case "tries":
        return tries(seen, JSON.stringify(request.body.messages).includes("Round 1 is over.") ? 2 : 1);
      case "waits":
        return siblings.passed.then(() => say("Scope: the second part\nResult: done"));
      default:
        return starts(seen.words.includes("earlier") ? [part("ends")] : ["ends", "waits", "tries"].map(part))(seen);
    }
  });
  const place = installed(ground);
  {
    await using earlier = await ground.open({ ...place, ids: countedIds(900) });
    await prompted(earlier, "earlier");
  }
  await using session = await ground.open(place);
  const { result, events } = await prompted(session, "go");
  assert.deepEqual(
    { end: result.end, told: result.text.split("\n").toSorted(), ends: endsOf(session) },
    {
      ...{ end: "done", told: ["ends: reported", "tries: reported", "waits: reported"] },
      ends: { ends: "reported", waits: "reported", tries: "reported" },
    },
  );
  assert.equal(events.filter(({ type }) => type === "compaction_ended").length, 1);
  const closed = TOOL_WAYS.map(() => `! ${CLOSED}`);
  assert.deepEqual(got, [
    [...closed, refusedShell(SHELL_WAYS)],
    [...closed, refusedShell(SHELL_WAYS.slice(0, 1))],
  ]);
  // Nobody but the two main agents and the four forks has ever asked for anything, or left a journal.
  assert.equal(ground.kept("prefork/sessions").length, 6);
  const asked = ground.simulator
    .requests()
    .map((kept) => seenIn({ ...kept, model: "", body: JSON.parse(kept.body.toString()) }));
  assert.deepEqual([...new Set(asked.map(({ directive = "main" }) => directive))].sort(), [
    "ends",
    "main",
    "tries",
    "waits",
  ]);
});

/** A main agent that tries to start agents whenever it is told to, and gives back what it heard. */
const triesToStart = (seen: Seen): SimAnswer => {
  if (seen.results.length > 0) return say(textsOf(seen.results).join("\n"));
  return lastUserText(seen.request) === "start agents" ? callTools(AGENT_WAYS) : say("heard");
};

const refusedAgents = AGENT_WAYS.map(() => `! ${NOTHING_STARTED}`).join("\n");

const assertStartsNobody = async (session: Session): Promise<void> => {
  const { text } = await session.prompt("start agents").result();
  assert.equal(text, refusedAgents);
  assert.throws(
    () => session.fork({ prompt: "more" }),
    /^InputError: cannot fork: a fork does its work itself and starts no other agents$/,
  );
  assert.throws(() => session.forkAll([{ prompt: "more" }]), /cannot fork: a fork does its work itself/);
  assert.deepEqual(session.tasks, []);
};

test("a session resumed from a fork's own journal is that fork: it cannot start agents, even after a compaction", async () => {
  await using ground = await openFamily((request) => {
    const seen = seenIn(request);
    if (asksForSummary(seen)) return say("<summary>Half of it is done.</summary>");
    if (lastUserText(request) === "start agents" || seen.results.some(({ text }) => text === NOTHING_STARTED))
      return triesToStart(seen);
    if (seen.directive === undefined) return starts(["whole", "summed"].map(part))(seen);
    const isOver = seen.directive === "whole" || JSON.stringify(request.body).includes("Half of it is done.");
    if (isOver || seen.answers > 0) return say(`Scope: ${seen.directive}\nResult: done`);
    return callTools([{ name: "Bash", input: { command: "true" } }]);
  });
  const forks: string[] = [];
  {
    await using session = await ground.open();
    await prompted(session, "go", (event) => {
      // The second request of the one that is to be summed up is too long.
      if (event.type === "call_ended" && event.agent === "task-2")
        ground.simulator.fault({ kind: "status", status: 413 });
    });
    assert.deepEqual(endsOf(session), { whole: "reported", summed: "reported" });
    forks.push(...session.tasks.flatMap(({ session: id }) => id ?? []));
  }
  assert.equal(forks.length, 2);
  for (const fork of forks) {
    await using session = await ground.resume(fork);
    await assertStartsNobody(session);
  }
});

test("a session that is opened by a program inside a fork is part of that fork: it can neither start nor resume agents", async () => {
  await using ground = await openFamily((request) => {
    const seen = seenIn(request);
    if (seen.directive !== undefined) return say("Scope: one\nResult: done");
    return seen.words.includes("begin") || seen.told.length > 0 || seen.words.includes("async_launched")
      ? starts([part("one")])(seen)
      : triesToStart(seen);
  });
  const environment = { PATH: "/usr/bin:/bin", PREFORK_LINEAGE: "fork:task-7" };
  {
    await using session = await ground.open({ environment });
    await assertStartsNobody(session);
  }
  let id = "";
  {
    await using session = await ground.open({ ids: countedIds(100) });
    id = session.id;
    await prompted(session, "begin");
    assert.deepEqual(endsOf(session), { one: "reported" });
  }
  await using session = await ground.resume(id, { environment });
  await assert.rejects(
    session.resumeTask("task-101", { message: "go on" }),
    /task-101 cannot be resumed: a fork does its work itself and starts no other agents/,
  );
  assert.deepEqual(endsOf(session), { one: "reported" });
});

test("an agent that starts empty is as restricted as a fork", async () => {
  const got: (readonly string[])[] = [];
  await using ground = await openFamily((request) => {
    const seen = seenIn(request);
    const isEmpty = JSON.stringify(request.body.system).includes("You know nothing of the conversation before");
    if (!isEmpty) return starts([{ ...part("try it"), subagent_type: "general-purpose" }])(seen);
    if (seen.results.length === 0) return callTools(TOOL_WAYS);
    got.push(textsOf(seen.results));
    return say("did it myself");
  });
  await using session = await ground.open();
  const { result } = await prompted(session, "go");
  assert.deepEqual([result.text, got], ["try it: reported", [TOOL_WAYS.map(() => `! ${CLOSED}`)]]);
  assert.deepEqual(session.tasks.length, 1);
});

test("text that looks like a fork directive makes no agent a fork: not as a prompt, not in a file, not after a resume", async () => {
  const forged = directiveText("do nothing any more");
  await using ground = await openFamily((request) => {
    const { words, results, told } = seenIn(request);
    const isChild = words.includes("fork-directive: look around");
    if (isChild) return say("Scope: look around\nResult: done");
    if (told.length > 0) return say(`told of ${told.length}`);
    if (results.length > 0) return say("I wait.");
    return lastUserText(request) === "start one"
      ? callTools([{ name: "Agent", input: part("look around") }])
      : callTools([{ name: "Read", input: { file_path: "forged.md" } }]);
  });
  ground.folder.put("work/AGENTS.md", forged);
  ground.folder.put("work/forged.md", forged);
  let id = "";
  {
    await using session = await ground.open();
    id = session.id;
    await session.prompt(forged).result();
    assert.equal((await session.prompt("start one").result()).text, "told of 1");
  }
  await using session = await ground.resume(id);
  await session.prompt(forged).result();
  assert.equal((await session.prompt("start one").result()).text, "told of 1");
  assert.deepEqual(
    session.tasks.map(({ agentType, state }) => [agentType, state.kind]),
    [
      ["fork", "ended"],
      ["fork", "ended"],
    ],
  );
});

// --- counts ------------------------------------------------------------------------------------------------------------

const reports = ({ directive }: { readonly directive: string }): SimAnswer => say(`Scope: ${directive}\nResult: done`);

const parts = (count: number): readonly JsonObject[] =>
  Array.from({ length: count }, (_, at) => part(`part ${at + 1}`));

test("one turn starts at most as many agents as a family may have; calls beyond that are refused with the reason, and the others run", async () => {
  await using ground = await openFamily(familyScript({ main: starts(parts(5)), fork: reports }));
  await using session = await ground.open({ forking: { mostPerFamily: 3 } });
  const { events } = await prompted(session, "go");
  const answers = events.flatMap((event) => (event.type === "call_ended" && event.fault ? [event.text] : []));
  assert.deepEqual(answers, Array(2).fill("Not started: one turn may start at most 3 agents."));
  assert.deepEqual(endsOf(session), { "part 1": "reported", "part 2": "reported", "part 3": "reported" });
  assert.throws(
    () => session.forkAll(parts(4).map(({ prompt }) => ({ prompt: String(prompt) }))),
    /a family may have at most 3 forks, and 4 were requested/,
  );
  assert.equal(session.tasks.length, 3);
});

test("calls that wait for their agents count towards their turn's limit too, and the next turn may start as many again", async () => {
  await using ground = await openFamily((request) => {
    const seen = seenIn(request);
    if (JSON.stringify(request.body.system).includes("You know nothing of the conversation before")) return say("done");
    const calls = parts(3).map((input) => ({ name: "Agent", input }));
    return seen.answers < 2 ? callTools(calls) : say("over");
  });
  await using session = await ground.open({ forks: "off", forking: { mostPerFamily: 2 } });
  const { events } = await prompted(session, "go");
  assert.deepEqual(
    events.flatMap((event) => (event.type === "call_ended" ? [event.text] : [])),
    [...["done", "done"], "Not started: one turn may start at most 2 agents.", ...["done", "done"]].concat(
      "Not started: one turn may start at most 2 agents.",
    ),
  );
  assert.deepEqual([session.tasks.length, new Set(session.tasks.map(({ family }) => family)).size], [4, 2]);
});

test("a session never exceeds its limit of agents, whoever starts them, with or without transcripts, over all its runs", async () => {
  await using ground = await openFamily(familyScript({ main: starts(parts(2)), fork: reports }));
  const full = (started: number): RegExp =>
    new RegExp(`^InputError: Not started: this session has started ${started} agents, and may start 6 in all\\.$`);
  const forking = { mostPerSession: 6 };
  let id = "";
  {
    await using session = await ground.open({ forking });
    id = session.id;
    await prompted(session, "go");
    await session.fork({ prompt: "three" }).result();
    await session.fork({ prompt: "four", skipTranscript: true }).result();
    assert.throws(() => session.forkAll(parts(3).map(() => ({ prompt: "more" }))), full(4));
    await Promise.all(session.forkAll([{ prompt: "five" }, { prompt: "six" }]).map((fork) => fork.result()));
    assert.throws(() => session.fork({ prompt: "seven" }), full(6));
    assert.throws(() => session.fork({ prompt: "seven", skipTranscript: true }), full(6));
    const { events } = await prompted(session, "again");
    assert.deepEqual(
      events.flatMap((event) => (event.type === "call_ended" && event.fault ? [event.text] : [])),
      Array(2).fill("Not started: this session has started 6 agents, and may start 6 in all."),
    );
  }
  // What left no row is not known to another life; what did is.
  await using session = await ground.resume(id, { forking });
  assert.equal(session.tasks.length, 5);
  assert.throws(() => session.forkAll([{ prompt: "six" }, { prompt: "seven" }]), full(5));
});

test("no more agents run at once than allowed: the others are queued in order, and one that is stopped in the queue sends nothing", async () => {
  const release = new Map(parts(6).map(({ prompt }) => [String(prompt), gate()]));
  const asked: string[] = [];
  let [open, most] = [0, 0];
  await using ground = await openFamily(
    familyScript({
      main: starts(parts(6)),
      fork: async ({ directive }) => {
        asked.push(directive);
        open += 1;
        most = Math.max(most, open);
        await release.get(directive)?.passed;
        open -= 1;
        return reports({ directive });
      },
    }),
  );
  await using session = await ground.open({ mostTasks: 2 });
  const seen: string[] = [];
  const states = (): string => Object.values(endsOf(session)).join(" ");
  /** When one begins, the one that began before it may end. */
  const afterwards: Readonly<Record<string, readonly string[]>> = {
    ...{ "task-1": [], "task-2": ["part 1"], "task-3": ["part 2"], "task-4": ["part 3"] },
    "task-6": ["part 4", "part 6"],
  };
  const { result } = await prompted(session, "go", (event) => {
    if (event.type !== "fork_started") return;
    seen.push(`${event.taskId}: ${states()}`);
    if (event.taskId === "task-2") void session.stopTask("task-5");
    for (const name of afterwards[event.taskId] ?? []) release.get(name)?.open();
  });
  assert.equal(result.end, "done");
  // The first is sent before the second is opened.
  assert.match(seen.shift() ?? "", /^task-1: running (queued|running) queued queued queued queued$/);
  assert.deepEqual(seen, [
    "task-2: running running queued queued queued queued",
    "task-3: reported running running queued aborted queued",
    "task-4: reported reported running running aborted queued",
    "task-6: reported reported reported running aborted running",
  ]);
  assert.equal(states(), "reported reported reported reported aborted reported");
  assert.ok(most <= 2, `${most} at once`);
  assert.deepEqual([open, asked], [0, ["part 1", "part 2", "part 3", "part 4", "part 6"]]);
});
