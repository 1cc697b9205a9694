import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, truncateSync } from "node:fs";
import { test } from "node:test";
import { callTools, type SimScript, say, toolResults } from "@prefork/simulator";
import { anthropic } from "@prefork/wire";
import * as z from "zod";
import { builtInTools, defineTool, type Question, type RuntimeEvent } from "../../src/index.ts";
import {
  assertGoesOn,
  endOf,
  followed,
  type Ground,
  gate,
  openGround,
  reopened,
  SUMMARY,
  unasked,
} from "./fault-ground.ts";

const ended = (events: readonly RuntimeEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === "call_ended" ? [`${event.fault ?? "ok"}: ${event.text}`] : []));

const ASKING = { ...unasked, mode: "default" as const };

// --- one at a time ---------------------------------------------------------------------------------------------------

test("a caller that has the result or the last event can prompt again at once", async () => {
  await using ground = await openGround();
  await using session = await ground.open();
  assert.equal((await session.prompt("one").result()).text, "heard one");
  assert.equal(endOf((await followed(session.prompt("two"))).events), "done: end");
  for await (const event of session.prompt("three")) if (event.type === "exchange_ended") break;
  const last = session.prompt("four");
  assert.throws(() => session.prompt("five"), {
    name: "InputError",
    message: "an exchange is running; wait for its result or abort it",
  });
  assert.equal((await last.result()).text, "heard four");
  await assertGoesOn(ground, session);
});

test("while an exchange runs another prompt and a compaction are refused, and it is not disturbed", async () => {
  const held = gate();
  await using ground = await openGround({ slow: () => held.passed.then(() => say("at last")) });
  await using session = await ground.open();
  const exchange = session.prompt("slow");
  const refusal = { name: "InputError", message: "an exchange is running; wait for its result or abort it" };
  assert.throws(() => session.prompt("fast"), refusal);
  await assert.rejects(async () => session.compact(), refusal);
  held.open();
  assert.equal((await exchange.result()).text, "at last");
  await assertGoesOn(ground, session);
});

test("a session that is closed, once or twice, takes no prompt; an empty prompt is refused", async () => {
  await using ground = await openGround();
  await using session = await ground.open();
  assert.throws(() => session.prompt(" \n"), { name: "InputError", message: "the prompt is empty" });
  await Promise.all([session.close(), session.close()]);
  await session.close();
  assert.throws(() => session.prompt("hello"), { name: "InputError", message: "the session is closed" });
});

test("an internal error rejects the result and the event stream, and ends neither the session nor a loop", async () => {
  await using ground = await openGround();
  const defect = new TypeError("a defect");
  const fails = { now: false };
  const options = ground.options();
  const engine: typeof options.engine = {
    ...options.engine,
    connect: () => {
      const client = options.engine.connect();
      return {
        ...client,
        send: (prepared, signal, told) => {
          if (fails.now) throw defect;
          return client.send(prepared, signal, told);
        },
      };
    },
  };
  await using session = await ground.open({ engine });
  fails.now = true;
  await assert.rejects(session.prompt("one").result(), defect);
  await assert.rejects(followed(session.prompt("two")), defect);
  fails.now = false;
  await assertGoesOn(ground, session);
});

// --- events ----------------------------------------------------------------------------------------------------------

test("every reader gets every event in order, numbered without gaps; a reader that leaves affects no other", async () => {
  await using ground = await openGround();
  const session = await ground.open();
  const [one, two] = [session.events(), session.events()];
  const exchange = await followed(session.prompt("hello"));
  await two.return?.();
  await session.prompt("again").result();
  await session.close();
  const all: RuntimeEvent[] = [];
  for await (const event of one) all.push(event);
  assert.deepEqual(
    all.map(({ seq }) => seq),
    all.map((_, at) => at + 1),
  );
  assert.deepEqual(exchange.events, all.slice(0, exchange.events.length));
  assert.equal(all.filter(({ type }) => type === "exchange_ended").length, 2);
  assert.deepEqual(await two.next(), { value: undefined, done: true });
  assert.deepEqual(await session.events().next(), { value: undefined, done: true });
});

test("the events of an exchange can be read once, from the first one, even after it ended, but not after its result", async () => {
  await using ground = await openGround();
  await using session = await ground.open();
  const late = session.prompt("hello");
  for await (const event of session.events()) if (event.type === "exchange_ended") break;
  const { events } = await followed(late);
  assert.deepEqual([events[0]?.type, endOf(events)], ["session_opened", "done: end"]);
  await assert.rejects(followed(late), {
    name: "InputError",
    message: "the events of an exchange can be read only once",
  });
  const taken = session.prompt("again");
  await taken.result();
  await assert.rejects(followed(taken), {
    name: "InputError",
    message: "the events of an exchange are kept only until its result is requested; read them first",
  });
});

// --- several at once -------------------------------------------------------------------------------------------------

test("three sessions in one process share nothing by accident", async () => {
  const script: SimScript = (request) => {
    const body = JSON.stringify(request.body.messages);
    const [, name = ""] = /I am (\w+)/.exec(body) ?? [];
    const results = toolResults(request);
    if (results.length > 0) return say(results.map(({ text }) => text).join(" "));
    return callTools([
      { name: "Bash", input: { command: "cat name.txt" } },
      { name: "TodoWrite", input: { todos: [{ content: name, status: "pending" }] } },
      { name: "Bash", input: { command: `echo ${name} >> made.txt; cat made.txt` } },
    ]);
  };
  await using ground = await openGround(script);
  // Long enough that no hash among the events holds one by chance.
  const names = ["Adalbert", "Beatrice", "Cordelia"];
  const sessions = await Promise.all(
    names.map((name) => {
      ground.folder.put(`${name}/name.txt`, name);
      return ground.open({ cwd: ground.folder.at(name) });
    }),
  );
  for (const [at, session] of sessions.entries()) if (at > 0) session.setMode("accept-edits");
  sessions[0]?.setMode("bypass");
  const told = sessions.map((session) => session.events());
  const outcomes = await Promise.all(sessions.map((session, at) => session.prompt(`I am ${names[at]}`).result()));
  assert.deepEqual(
    sessions.map(({ todos, mode }) => [todos.map(({ content }) => content), mode]),
    [
      [["Adalbert"], "bypass"],
      [["Beatrice"], "accept-edits"],
      [["Cordelia"], "accept-edits"],
    ],
  );
  assert.match(outcomes[0]?.text ?? "", /^Adalbert\n\[exit code 0\] .* Adalbert\n\[exit code 0\]$/);
  assert.match(outcomes[1]?.text ?? "", /^Beatrice\n\[exit code 0\] .* Not allowed: /);
  assert.deepEqual(
    names.map((name) => existsSync(ground.folder.at(name, "made.txt"))),
    [true, false, false],
  );
  for (const [at, session] of sessions.entries()) {
    assert.deepEqual(session.spent.usage, outcomes[at]?.usage);
    await session.close();
    const events: RuntimeEvent[] = [];
    for await (const event of told[at] ?? []) events.push(event);
    const others = names.filter((name) => name !== names[at]);
    assert.ok(!others.some((name) => JSON.stringify(events).includes(name)));
    const journal = readFileSync(ground.folder.at("state/sessions", session.id, "journal.jsonl"), "utf8");
    assert.ok(!others.some((name) => journal.includes(name)));
  }
  assert.equal(new Set(sessions.map(({ id }) => id)).size, 3);
});

// --- permissions -----------------------------------------------------------------------------------------------------

const touch = (name: string) => ({ name: "Bash", input: { command: `touch ${name}` } });

test("with nobody to ask, a call that is not allowed is denied with the missing rule, and that rule allows it", async () => {
  await using ground = await openGround({ work: callTools([touch("a")]) });
  const { policy } = unasked;
  await using strict = await ground.open({ permissions: { ...(policy ? { policy } : {}) } });
  const { events } = await followed(strict.prompt("work"));
  assert.equal(ended(events).length, 1);
  assert.match(
    ended(events)[0] ?? "",
    /^denied: Not allowed: .*there is nobody to ask, and the rule Bash\(touch .*\) would allow it$/,
  );
  await using loose = await ground.open({ permissions: { allow: ["Bash(touch:*)"] } });
  assert.match(ended((await followed(loose.prompt("work"))).events)[0] ?? "", /^ok: .*\[exit code 0\]$/);
});

test("a rule that denies wins over one that allows and over every mode", async () => {
  await using ground = await openGround({ work: callTools([touch("a")]) });
  const permissions = { allow: ["Bash(touch:*)"], deny: ["Bash(touch:*)"], mode: "bypass" as const };
  await using session = await ground.open({ permissions });
  const { events } = await followed(session.prompt("work"));
  assert.deepEqual(ended(events), ["denied: Not allowed: denied by Bash(touch:*) (the program)"]);
  assert.equal(existsSync(ground.folder.at("work/a")), false);
});

test("an invalid rule is refused before a session is created", async () => {
  await using ground = await openGround();
  await assert.rejects(ground.open({ permissions: { allow: ["Bash(touch"] } }), { name: "InputError" });
  assert.equal(existsSync(ground.folder.at("state")), false);
});

test("a question shows what would run, and each answer takes effect", async () => {
  await using ground = await openGround({
    one: callTools([touch("one")]),
    two: callTools([touch("two")]),
    three: callTools([touch("three")]),
    four: callTools([
      { name: "Bash", input: { command: "mkdir four" } },
      { name: "Bash", input: { command: "touch five" } },
    ]),
  });
  const asked: Question[] = [];
  const remembered: string[] = [];
  await using session = await ground.open({
    permissions: {
      ...ASKING,
      ask: async (question) => {
        asked.push(question);
        const { command } = question.args;
        if (command === "touch one") return { kind: "deny", reason: "not today" };
        if (command === "touch two") return { kind: "always", rule: "Bash(touch:*)" };
        return { kind: "deny", stop: true };
      },
      remember: async (rule) => void remembered.push(rule),
    },
  });
  assert.deepEqual(ended((await followed(session.prompt("one"))).events), ["denied: Not allowed: not today"]);
  for (const prompt of ["two", "three"])
    assert.deepEqual(ended((await followed(session.prompt(prompt))).events), ["ok: [exit code 0]"]);
  const { events } = await followed(session.prompt("four"));
  assert.deepEqual(ended(events), [
    "denied: Not allowed: the user said no",
    "aborted: Not run: the user interrupted before it began.",
  ]);
  assert.equal(endOf(events), "aborted: stopped by the answer to a question");
  assert.deepEqual(
    asked.map(({ agent, tool, args }) => ({ agent, tool, args })),
    ["touch one", "touch two", "mkdir four"].map((command) => ({ agent: "main", tool: "Bash", args: { command } })),
  );
  assert.equal(new Set(asked.map(({ id }) => id)).size, 3);
  assert.deepEqual(remembered, ["Bash(touch:*)"]);
  await assertGoesOn(ground, session);
});

test("an ask callback that throws, or answers with an invalid rule, denies the call", async () => {
  await using ground = await openGround({ one: callTools([touch("one")]), two: callTools([touch("two")]) });
  await using session = await ground.open({
    permissions: {
      ...ASKING,
      ask: async ({ args }) => {
        if (args.command === "touch one") throw new Error("the line is dead");
        return { kind: "always", rule: "Bash(touch" };
      },
    },
  });
  assert.deepEqual(ended((await followed(session.prompt("one"))).events), [
    "denied: Not allowed: nobody could answer (the line is dead), so the policy did: no",
  ]);
  const [second = ""] = ended((await followed(session.prompt("two"))).events);
  assert.match(second, /^denied: Not allowed: the question could not be answered: /);
  assert.equal(existsSync(ground.folder.at("work/two")), false);
  await assertGoesOn(ground, session);
});

test("a new mode applies from the next call on, and the model is told without changing an earlier byte", async () => {
  const write = (name: string) => (): ReturnType<typeof callTools> =>
    callTools([{ name: "Write", input: { file_path: `${ground.work}/${name}`, content: name } }]);
  await using ground: Ground = await openGround({ first: write("a"), second: write("b") });
  await using session = await ground.open({ permissions: { ...unasked, mode: "plan" } });
  assert.match(ended((await followed(session.prompt("first"))).events)[0] ?? "", /^denied: /);
  session.setMode("accept-edits");
  const { events } = await followed(session.prompt("second"));
  assert.match(ended(events)[0] ?? "", /^ok: /);
  const notes = events.flatMap((event) => (event.type === "note_entered" ? [event.kind] : []));
  assert.deepEqual(notes, ["mode"]);
  await assertGoesOn(ground, session, { permissions: { ...unasked, mode: "accept-edits" } });
});

// --- tools of one's own ----------------------------------------------------------------------------------------------

const counting = () => {
  const calls: number[] = [];
  const tool = defineTool({
    name: "Add",
    description: "Adds to a sum",
    input: z.strictObject({ by: z.int().default(1) }),
    readOnly: true,
    run: async ({ by }) => {
      calls.push(by);
      return { content: `now ${calls.reduce((sum, value) => sum + value, 0)}` };
    },
  });
  return { calls, tool };
};

test("a program's own tool is declared, checked and run like the others", async () => {
  await using ground = await openGround({
    add: callTools([{ name: "Add", input: { by: 2 } }, { name: "Add" }, { name: "Add", input: { by: "much" } }]),
  });
  const { calls, tool } = counting();
  await using session = await ground.open({ tools: [tool] });
  const { events } = await followed(session.prompt("add"));
  assert.deepEqual(ended(events).toSorted(), [
    'bad-input: Add: "by" must be a number, not text',
    "ok: now 2",
    "ok: now 3",
  ]);
  assert.deepEqual(calls, [2, 1]);
  const body = JSON.parse(ground.simulator.requests()[0]?.body.toString("utf8") ?? "{}");
  assert.deepEqual(
    body.tools.map(({ name }: { name: string }) => name),
    ["Add"],
  );
  await assertGoesOn(ground, session, { tools: [tool] });
});

/** Ends the journal behind the first answer with a call in it, as a crash would. */
const crashedAfterCall = (ground: Ground, id: string): void => {
  const file = ground.folder.at("state/sessions", id, "journal.jsonl");
  const text = readFileSync(file, "utf8");
  const call = text.indexOf('"tool_use"');
  let end = text.indexOf('"kind":"response"', call);
  // Entries of one write say how many follow them.
  for (let more = 1; more > 0; ) {
    const start = text.lastIndexOf("\n", end) + 1;
    end = text.indexOf("\n", end) + 1;
    more = Number(/^\{[^}]*?"more":(\d+)/.exec(text.slice(start, end))?.[1] ?? 0);
  }
  truncateSync(file, Buffer.byteLength(text.slice(0, end)));
};

test("a call of an answer that was cut off is not run by a later run of the session either", async () => {
  await using ground = await openGround({ add: { ...callTools([{ name: "Add" }]), stopReason: "max_tokens" } });
  const { calls, tool } = counting();
  const session = await ground.open({ tools: [tool] });
  await session.prompt("add").result();
  await session.close();
  crashedAfterCall(ground, session.id);
  ground.simulator.reset(); // what was sent after the crash, as it were, is not to be gone on from
  const again = await reopened(ground, session.id, { tools: [tool] });
  await assertGoesOn(ground, again, { tools: [tool] });
  assert.deepEqual(calls, []);
  assert.match(ground.simulator.requests().at(-1)?.body.toString("utf8") ?? "", /Not run: the answer was cut/);
});

test("a session that a crash left with open calls can be compacted before the next prompt", async () => {
  await using ground = await openGround({
    add: callTools([{ name: "Add" }, touch("a")]),
    [SUMMARY]: say("<summary>they added</summary>"),
  });
  const { calls, tool } = counting();
  const tools = [...builtInTools, tool];
  const session = await ground.open({ tools });
  await session.prompt("add").result();
  await session.close();
  crashedAfterCall(ground, session.id);
  await using again = await reopened(ground, session.id, { tools });
  assert.equal((await again.compact()).kind, "compacted");
  assert.deepEqual(calls, [1, 1]);
  assert.equal((await again.prompt("go on").result()).text, "heard go on");
  const illegal = ground.simulator.ledger().flatMap(({ status, error }) => (status === 400 ? [error] : []));
  assert.deepEqual(illegal, []);
});

test("sessions of one engine have their own connections, and an engine can be used again", async () => {
  await using ground = await openGround();
  const options = ground.options();
  assert.equal(options.engine.protocol, anthropic);
  mkdirSync(ground.folder.at("other"));
  const one = await ground.open({ engine: options.engine });
  await using two = await ground.open({ engine: options.engine, cwd: ground.folder.at("other") });
  await one.prompt("hello").result();
  await one.close();
  assert.equal((await two.prompt("still here").result()).text, "heard still here");
});
