/** Fifty turns with eight forks, a compaction and a crash: is every token written once? */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Mode } from "@prefork/guard";
import type { RuntimeEvent } from "@prefork/runtime";
import { readSession } from "@prefork/runtime/observe";
import { type KeptRequest, ManualClock, type Simulator, say, startSimulator } from "@prefork/simulator";
import { scratch } from "@prefork/testing/scratch";
import { parseNotifications, tasksIn } from "../../src/tasks/index.ts";
import { sentTo } from "./as-sent.ts";
import { FORKS, forkingModel } from "./forking-session.ts";
import { makePlace, type Place, type Standing, storeOf } from "./long-session.ts";
import { doneWith } from "./scripted-model.ts";
import { rewritingOf } from "./shared-prompts.ts";
import { TURNS, tasks as taskList } from "./tasks.ts";

const PROGRAM = fileURLToPath(new URL("forking-session-process.ts", import.meta.url));

type Life = { readonly shown: readonly RuntimeEvent[]; readonly signal: NodeJS.Signals | null };

const live = async (parameters: readonly string[], isOver: (event: RuntimeEvent) => boolean): Promise<Life> => {
  const child = spawn(process.execPath, [...process.execArgv, PROGRAM, ...parameters], {
    stdio: ["ignore", "pipe", "inherit"],
    // If there is none yet, beside the place, so that later processes start faster.
    env: { NODE_COMPILE_CACHE: `${parameters[0]}-compiled`, ...process.env },
    timeout: 240_000,
    killSignal: "SIGKILL",
  });
  const ended = new Promise<NodeJS.Signals | null>((done) => child.once("close", (_, signal) => done(signal)));
  const shown: RuntimeEvent[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.endsWith("}")) continue; // the last one of a process that was killed may be cut
    const event: RuntimeEvent = JSON.parse(line);
    shown.push(event);
    if (isOver(event)) child.kill("SIGKILL");
  }
  return { shown, signal: await ended };
};

/** What whoever sat before the screen would know. */
const standingAfter = (shown: readonly RuntimeEvent[]): Standing => ({
  turn: shown.findLast((event) => event.type === "turn_started")?.turn ?? 0,
  mode: (shown.findLast((event) => event.type === "mode_changed")?.to ?? "default") as Mode,
});

/** Killed when every fork of the last family has come to this: after the compaction. */
type Moment = "fork_started" | "turn_ended";
const MOMENTS: Readonly<Record<Moment, string>> = {
  fork_started: "when the last family begins",
  turn_ended: "in the middle of the last family's work",
};

const run = async (simulator: Simulator, { place, base, moment }: Running) => {
  const begun = new Set<string>();
  const first = await live([base, simulator.url], (event) => {
    const agent = event.type === "fork_started" ? event.taskId : event.agent;
    if (event.type === moment && agent !== "main") begun.add(agent);
    return begun.size === FORKS;
  });
  const opened = first.shown.find((event) => event.type === "session_opened");
  const id = opened?.sessionId ?? "";
  const second = await live([base, simulator.url, id, JSON.stringify(standingAfter(first.shown))], () => false);
  const { reading, replayed } = await readSession(storeOf(place), id);
  return { first, second, entries: reading.entries.map(({ entry }) => entry), tasks: tasksIn(replayed.state) };
};

type Running = { readonly place: Place; readonly base: string; readonly moment: Moment };

/** The same requests in the same order, for a provider that counts positions in another way. */
const sendAgain = async (requests: readonly KeptRequest[], simulator: Simulator): Promise<void> => {
  for (const { path, headers, body } of requests) {
    const { "content-length": _length, host: _host, connection: _connection, ...kept } = headers;
    const answer = await fetch(new URL(path, simulator.url), {
      method: "POST",
      headers: { ...kept, "x-api-key": "any" },
      body: new Uint8Array(body),
    });
    await answer.text();
    assert.equal(answer.status, 200);
  }
};

for (const [moment, when] of Object.entries(MOMENTS) as [Moment, string][])
  test(`fifty turns with eight forks, a compaction and a crash ${when} write every token once, however positions are counted`, async (context) => {
    using base = scratch();
    const place = makePlace(base.at("run"));
    const clock = new ManualClock();
    await using simulator = await startSimulator({
      ...{ script: forkingModel(place.project), lookback: "singly", clock, keepBodies: true },
    });
    const { first, second, entries, tasks } = await run(simulator, { place, base: base.at("run"), moment });
    const blocks = entries.flatMap((entry) => {
      if (entry.kind === "message") return entry.message.content;
      return entry.kind === "blocks" ? entry.blocks : [];
    });
    const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
    assert.deepEqual(
      {
        signals: [first.signal, second.signal],
        hasFiftyTurns: entries.filter((entry) => entry.kind === "response" && entry.turn > 0).length >= TURNS,
        epochs: entries.filter(({ kind }) => kind === "epoch").length,
        ends: tasks.map(({ kind, state }) => `${kind} ${state.kind === "ended" && state.end}`),
        told: texts.flatMap(parseNotifications).map(({ status }) => status),
        last: texts.at(-1),
      },
      {
        signals: ["SIGKILL", null],
        hasFiftyTurns: true,
        epochs: 2,
        ends: Array.from({ length: FORKS }, () => "fork reported"),
        told: Array.from({ length: FORKS }, () => "reported"),
        last: doneWith(taskList.length),
      },
    ); // else the figures below would show nothing
    const singly = await rewritingOf(simulator, sentTo(simulator));
    await using other = await startSimulator({ script: () => say("again"), lookback: "runs", clock, keepBodies: true });
    await sendAgain(simulator.requests(), other);
    const runs = await rewritingOf(other, sentTo(other));
    context.diagnostic(`positions counted singly: ${JSON.stringify(singly)}, as runs: ${JSON.stringify(runs)}`);
    assert.ok(singly.factor <= 1.02 && runs.factor <= 1.02);
  });
