import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { callTools } from "@prefork/simulator";
import { anthropicEngine, type RuntimeEvent, type Session } from "../../src/index.ts";
import { assertGoesOn, endOf, followed, gate, KEY, openGround, reopened, SUMMARY, unasked } from "./fault-ground.ts";
import { stallsBefore } from "./twisting-proxy.ts";

/** Prompts, and interrupts when the event comes. */
const interrupted = async (
  session: Session,
  prompt: string,
  moment: (event: RuntimeEvent) => boolean,
): Promise<readonly RuntimeEvent[]> => {
  const exchange = session.prompt(prompt);
  const { events } = await followed(exchange, (event) => {
    if (moment(event)) exchange.abort();
  });
  assert.equal(endOf(events), "aborted: interrupted");
  return events;
};

const texts = (events: readonly RuntimeEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === "call_ended" ? [`${event.fault}: ${event.text}`] : []));

test("an interruption before any answer keeps only the prompt", async () => {
  const reached = gate();
  await using ground = await openGround({
    wait: () => {
      reached.open();
      return new Promise(() => {});
    },
  });
  await using session = await ground.open();
  const exchange = session.prompt("wait");
  void reached.passed.then(() => exchange.abort());
  const { events } = await followed(exchange);
  assert.equal(endOf(events), "aborted: interrupted");
  await assertGoesOn(ground, session);
});

test("an interruption in the middle of the text keeps the text shown so far in the context", async () => {
  await using ground = await openGround();
  await using session = await ground.open();
  ground.proxy.twist(stallsBefore("content_block_stop"));
  await interrupted(session, "hello", ({ type }) => type === "text_grew");
  await assertGoesOn(ground, session);
  const last = ground.simulator.requests().at(-1)?.body.toString("utf8") ?? "";
  assert.ok(last.includes('{"role":"assistant","content":[{"type":"text","text":"heard hello"'));
});

test("an interruption while a command runs ends the command, and every call has a result", async () => {
  await using ground = await openGround({
    work: callTools([
      { name: "Bash", input: { command: "echo $$ > pid; echo begun; sleep 300" } },
      { name: "Bash", input: { command: "touch ran" } },
      { name: "Read", input: { file_path: "pid" } },
    ]),
  });
  await using session = await ground.open();
  const events = await interrupted(session, "work", ({ type }) => type === "call_progressed");
  assert.deepEqual(texts(events), [
    "aborted: begun\n[interrupted; above is what it had printed]",
    "aborted: Not run: the user interrupted before it began.",
    "aborted: Not run: the user interrupted before it began.",
  ]);
  assert.equal(existsSync(ground.folder.at("work/ran")), false);
  assert.equal(existsSync(`/proc/${readFileSync(ground.folder.at("work/pid"), "utf8").trim()}`), false);
  await assertGoesOn(ground, session);
});

test("a command that ignores signals is ended too", async () => {
  const command = "trap '' TERM INT HUP; echo $$ > pid; echo begun; while :; do sleep 0.05; done";
  await using ground = await openGround({ work: callTools([{ name: "Bash", input: { command } }]) });
  await using session = await ground.open();
  const events = await interrupted(session, "work", ({ type }) => type === "call_progressed");
  assert.deepEqual(texts(events), ["aborted: begun\n[interrupted; above is what it had printed]"]);
  assert.equal(existsSync(`/proc/${readFileSync(ground.folder.at("work/pid"), "utf8").trim()}`), false);
  await assertGoesOn(ground, session);
});

test("an interruption while a question is open keeps the call from running, even if the callback ignores the signal", async () => {
  await using ground = await openGround({ work: callTools([{ name: "Bash", input: { command: "touch ran" } }]) });
  const permissions = { ...unasked, mode: "default" as const, ask: () => new Promise<never>(() => {}) };
  await using session = await ground.open({ permissions });
  const events = await interrupted(session, "work", ({ type }) => type === "question_asked");
  assert.deepEqual(texts(events), ["aborted: Not allowed: the user interrupted before the question was answered"]);
  assert.equal(existsSync(ground.folder.at("work/ran")), false);
  await assertGoesOn(ground, session);
});

test("an interruption while a failed request waits for its next attempt prevents that attempt", async () => {
  await using ground = await openGround();
  const inRealTime = anthropicEngine({ baseUrl: ground.proxy.url, credential: { kind: "api-key", value: KEY } });
  await using session = await ground.open({ engine: inRealTime });
  ground.simulator.fault({ kind: "status", status: 429, retryAfterMs: 300_000 });
  await interrupted(session, "hello", ({ type }) => type === "request_retried");
  assert.equal(ground.proxy.arrived(), 1);
  await session.close();
  // The wait that the provider asked for holds for this client; another life of the session knows nothing of it.
  await assertGoesOn(ground, await reopened(ground, session.id));
});

test("an interruption during a compaction leaves the conversation unchanged", async () => {
  await using ground = await openGround({ [SUMMARY]: () => new Promise(() => {}) });
  const before = await ground.open();
  await before.prompt(`remember ${"words ".repeat(2_000)}`).result();
  await before.close();
  await using session = await reopened(ground, before.id, { window: 50_000, compactAt: 0.1 });
  const exchange = session.prompt("go");
  const { events } = await followed(exchange, (event) => {
    if (event.type === "compaction_started") exchange.abort();
  });
  assert.equal(endOf(events), "aborted: interrupted");
  assert.deepEqual(
    events.flatMap(({ type }) => (type.startsWith("compaction") || type === "turn_started" ? [type] : [])),
    ["compaction_started", "compaction_failed"],
  );
  await session.close();
  await assertGoesOn(ground, await reopened(ground, session.id));
});

test("an exchange that is interrupted before it begins sends nothing, and its prompt is kept", async () => {
  await using ground = await openGround();
  await using session = await ground.open();
  const { events } = await followed(session.prompt("hello", { signal: AbortSignal.abort() }));
  assert.equal(endOf(events), "aborted: interrupted");
  assert.equal(ground.proxy.arrived(), 0);
  await assertGoesOn(ground, session);
});

test("closing a session in the middle of a command ends the command, records it in the journal, and the session can be resumed", async () => {
  await using ground = await openGround({
    work: callTools([{ name: "Bash", input: { command: "echo begun; sleep 300" } }]),
  });
  const session = await ground.open();
  let closing: Promise<void> | undefined;
  const { events } = await followed(session.prompt("work"), ({ type }) => {
    if (type === "call_progressed") closing = session.close();
  });
  assert.equal(endOf(events), "aborted: interrupted");
  await closing;
  const file = ground.folder.at("state/sessions", session.id, "journal.jsonl");
  assert.match(readFileSync(file, "utf8"), /"kind":"exchange_ended","reason":"aborted"[^\n]*\n$/);
  await assertGoesOn(ground, await reopened(ground, session.id));
});
