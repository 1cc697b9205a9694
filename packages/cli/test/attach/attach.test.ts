/** `prefork attach`: a session in one process, and people in other terminals who watch it and answer its questions. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, lstatSync } from "node:fs";
import { createConnection } from "node:net";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { anthropicEngine, createSession, type RuntimeEvent, type Session } from "@prefork/runtime";
import { callTools, lastUserText, type SimScript, say, toolResults } from "@prefork/simulator";
import {
  type ConnectedControl,
  connectControl,
  findSockets,
  listRunning,
  type RunningSession,
  serveControl,
} from "../../src/attach/index.ts";
import { hasBwrap, uses, withBwrap } from "../optional.ts";
import { type Ground, openGround } from "../print/ground.ts";
import { TerminalScreen } from "../tui/pty.ts";

const stateOf = ({ home }: Ground): string => join(home, ".local/state/prefork");
const placeOf = (ground: Ground) => ({ state: stateOf(ground), env: ground.env });

/** Its socket, once it has one. */
const socketOf = async (ground: Ground): Promise<string> => {
  for (;;) {
    const [found] = await findSockets(placeOf(ground));
    if (found) return found.path;
    await sleep(10);
  }
};

/** The running session, once a question of it waits. */
const waitingSession = async (ground: Ground): Promise<NonNullable<RunningSession["about"]>> => {
  for (;;) {
    const [running] = await listRunning(placeOf(ground));
    if (running?.about?.questions === 1) return running.about;
    await sleep(20);
  }
};

const HOSTILE = "\u001b]0;owned\u0007\u001b[2J\u009b31m";

/** Asks for two files one after the other, then says something, and is held before that. */
const twoFiles =
  (held: Promise<void>): SimScript =>
  (request) => {
    const { length } = toolResults(request);
    if (length === 0) return callTools([{ name: "Bash", input: { command: "touch one" } }], `first${HOSTILE}`);
    if (length === 1) return callTools([{ name: "Bash", input: { command: `touch two # ${HOSTILE}` } }]);
    return { ...say("both"), hold: held };
  };

test("people in other terminals answer the questions of a script; neither their end nor its own goes unnoticed", async () => {
  const held = Promise.withResolvers<void>();
  await using ground = await openGround(twoFiles(held.promise));
  const script = ground.start(["-p", "--ask-attached", "make two files"]);
  const path = await socketOf(ground);
  const modes = [dirname(path), path].map((name) => (lstatSync(name).mode & 0o777).toString(8));
  assert.deepEqual(modes, ["700", "600"]);
  const { session, ...about } = await waitingSession(ground);
  assert.deepEqual(
    { ...about, openedAt: 0 },
    { ...{ pid: script.child.pid, cwd: ground.work, title: "make two files" }, openedAt: 0, questions: 1 },
  );

  const place = { env: ground.env, cwd: ground.work, columns: 100 };
  await using first = new TerminalScreen(["attach", "--plain"], place);
  await first.shows(/touch one\n.*reason: .*stop >\s*$/s);
  first.press("y", "enter");
  await first.shows(/touch two.*stop >\s*$/s);
  assert.equal(existsSync(ground.at("one")), true);
  first.kill("SIGKILL");
  assert.equal(await first.ended, 137);

  await using second = new TerminalScreen(["attach", "--plain", session.slice(0, 6)], place);
  await second.shows(/touch two.*stop >\s*$/s);
  using other = await connectControl(path);
  const [question] = other.questions();
  assert.deepEqual([question?.agent, question?.tool], ["main", "Bash"]);
  assert.equal(await other.answer(question?.id ?? "", { kind: "allow" }), true);
  await second.shows(/settled elsewhere: allowed\n.*· Bash touch two/s);
  for (const terminal of [first, second]) {
    assert.match(terminal.output, /first\\u001b\]0;owned\\u0007\\u001b\[2J\\u009b31m\r\n/);
    assert.match(terminal.output, /touch two # \\u001b\]0;owned\\u0007\\u001b\[2J\\u009b31m/);
    for (const sequence of ["\u001b]", "\u001b[2J", "\u009b", "\u0007"])
      assert.equal(terminal.output.includes(sequence), false);
  }

  assert.deepEqual((await ground.prefork(["sessions", "--all"])).out.split("\n").slice(-2), [
    ...[`Session ${session} is running (attach: prefork attach ${session})`, ""],
  ]);
  script.child.kill("SIGKILL");
  assert.equal(await second.ended, 1);
  assert.match(
    second.output,
    new RegExp(
      `\nprefork: the connection to session ${session} was lost: process ${script.child.pid} has ended. To resume: prefork -p --resume ${session} "…"\r\n$`,
    ),
  );
  assert.deepEqual([await listRunning(placeOf(ground)), existsSync(path)], [[], false], "its socket was removed");
  held.resolve();
});

test("without a terminal it only watches, Ctrl-C detaches, and the session ends as if nobody had been there", async () => {
  const held = Promise.withResolvers<void>();
  await using ground = await openGround(() => ({ ...say("spoken"), hold: held.promise }));
  const running = ground.prefork(["-p", "speak"]);
  await socketOf(ground);
  const leaving = new AbortController();
  const watched = ground.prefork(["attach", "--read-only"], { input: [], signal: leaving.signal });
  const ended = ground.prefork(["attach"], { input: [] });
  while ((await listRunning(placeOf(ground))).length !== 1) await new Promise((resolve) => setImmediate(resolve));
  leaving.abort();
  const { code, err } = await watched;
  assert.equal(code, 0);
  assert.match(err, /\nprefork: detached; session (\w+) continues \(prefork attach \1\)\n$/);
  held.resolve();
  assert.deepEqual(await running, { code: 0, out: "spoken\n", err: "" });
  const { out, err: last, code: alsoDone } = await ended;
  assert.deepEqual([alsoDone, out.split("\n").slice(0, 2)], [0, ["> speak", "spoken"]]);
  assert.match(last, /^prefork: attached to session .*\nprefork: session \w+ has ended \(to resume: .*\)\n$/);
  assert.deepEqual(await findSockets(placeOf(ground)), []);
});

test("what does not run, or cannot be attached to, is refused with the command that helps", async () => {
  await using ground = await openGround(() => say("done"));
  const refused = async (argv: readonly string[], env = {}): Promise<string> => {
    const { code, out, err } = await ground.prefork(argv, { env });
    assert.deepEqual([code, out], [2, ""]);
    return err;
  };
  const none = "o session is running that could be attached to. Saved ones: prefork sessions --all\n";
  assert.equal(await refused(["attach"]), `prefork: n${none}`);
  assert.equal((await ground.prefork(["attach", "--list"])).out, `N${none}`);
  assert.equal(
    await refused(["attach", "nothing"]),
    "prefork: there is no session or task nothing (prefork attach --list shows what runs)\n",
  );
  assert.match(await refused(["attach"], { PREFORK_LINEAGE: "fork:task-1" }), /a fork may not attach to sessions/);
  const { out } = await ground.prefork(["-p", "--no-attach", "--output-format", "json", "speak"]);
  const { session_id: id } = JSON.parse(out) as { readonly session_id: string };
  assert.equal(
    await refused(["attach", id]),
    `prefork: session ${id} is not running; to resume it: prefork -p --resume ${id} "…"\n`,
  );
  assert.equal(
    await refused(["-p", "--ask-attached", "--no-attach", "speak"]),
    "prefork: --ask-attached and --no-attach exclude each other: nobody could answer\n",
  );
  assert.match(
    await refused(["-p", "--ask-attached", "--cwd", "/tmp", "speak"]),
    /^prefork: --ask-attached: nobody could attach to this session: \/tmp\/prefork-\d+ is in the workspace \/tmp\n$/,
  );

  const engine = anthropicEngine({
    baseUrl: ground.simulator.url,
    credential: { kind: "api-key", value: "any" },
  });
  const options = { engine, cwd: ground.work, state: stateOf(ground), home: ground.home, environment: ground.env };
  const ids = {
    next: (kind: string) => (kind === "session" ? `session-ab${counter.next++}` : `${kind}-${counter.next++}`),
  };
  const counter = { next: 0 };
  await using one = await createSession({ ...options, ids });
  await using two = await createSession({ ...options, ids });
  const serve = (session: Session, openedAt: number) =>
    serveControl(session.control(), {
      ...{ ...placeOf(ground), ...SERVED },
      about: () => ({ cwd: "/", title: "", openedAt }),
    });
  await using _one = await serve(one, 1);
  assert.match(
    await refused(["attach", two.id]),
    new RegExp(`which process ${process.pid} runs and nobody can attach to`),
  );
  await using _two = await serve(two, 2);
  const ambiguous = await refused(["attach", "ab"]);
  assert.match(ambiguous, /^prefork: 2 running sessions begin with ab: ab\d+, ab\d+\n$/);
  const listed = await ground.prefork(["attach"]);
  assert.deepEqual(
    listed.out.split("\n").map((line) => line.split(/ {2,}/)[0]),
    [...["id", listed.out.split("\n")[1], two.id, one.id], "To attach to one: prefork attach <id>", ""],
  );
});

const SERVED = { workspaces: [], about: () => ({ cwd: "/", title: "", openedAt: 0 }) };

type Served = AsyncDisposable & { readonly session: Session; readonly connect: () => Promise<ConnectedControl> };

/** A session of this process that asks attached clients, and its socket. */
const openServed = async (ground: Ground): Promise<Served & { readonly path: string }> => {
  const session = await createSession({
    engine: anthropicEngine({ baseUrl: ground.simulator.url, credential: { kind: "api-key", value: "any" } }),
    ...{ cwd: ground.work, state: stateOf(ground), home: ground.home, environment: ground.env },
    permissions: { mode: "default", ask: "attached" },
  });
  const served = await serveControl(session.control(), { ...placeOf(ground), ...SERVED });
  return {
    ...{ session, path: served.path },
    connect: () => connectControl(served.path),
    [Symbol.asyncDispose]: async () => {
      await served.stopAccepting();
      await session.close();
      await served[Symbol.asyncDispose]();
    },
  };
};

const asking: SimScript = (request) =>
  lastUserText(request) === "ask" && toolResults(request).length === 0
    ? callTools([{ name: "Bash", input: { command: "touch made" } }])
    : say(`heard ${lastUserText(request)}`);

/** The events until the exchange ends, without progress. */
const untilEnd = async (events: AsyncIterable<RuntimeEvent>): Promise<readonly RuntimeEvent[]> => {
  const seen: RuntimeEvent[] = [];
  for await (const event of events) {
    if (event.level !== "debug") seen.push(event);
    if (event.type === "exchange_ended") break;
  }
  return seen;
};

test("of two clients that answer at once one wins; prompts, steering and stops go through the socket too", async () => {
  await using ground = await openGround(asking);
  await using served = await openServed(ground);
  using one = await served.connect();
  using other = await served.connect();
  const watching = untilEnd(other.subscribe(1));
  const answers: boolean[] = [];
  const answering = (async () => {
    for await (const event of one.subscribe()) {
      if (event.type !== "question_opened") continue;
      const { questionId: id } = event;
      assert.equal(one.questions()[0]?.id, id);
      answers.push(...(await Promise.all([one, other].map((each) => each.answer(id, { kind: "allow" })))));
      return;
    }
  })();
  const { end, text, turns } = await one.prompt("ask");
  await answering;
  assert.deepEqual([end, text, turns, answers.toSorted()], ["done", "heard ", 2, [false, true]]);
  assert.equal(existsSync(ground.at("made")), true);
  const seen = await watching;
  assert.equal(seen.filter(({ type }) => type === "question_closed").length, 1);
  assert.deepEqual([one.questions(), await other.answer("none", { kind: "deny" })], [[], false]);
  await assert.rejects(other.steer("hello"), { message: /^nothing is running that could be steered/ });
  await assert.rejects(other.prompt([{ type: "text", text: "" }]), { message: /empty/ });
  await assert.rejects(other.stop("task-none"), { message: /there is no task task-none/ });

  const [node] = await other.tree();
  assert.equal(node?.title, "ask");
  await assert.rejects(other.rewind({ to: "nowhere", preview: true }), { message: /nowhere/ });

  // Again from the middle: no gap, no duplicate, then live ones.
  const middle = seen[3]?.seq ?? 0;
  using late = await served.connect();
  const replay = late.subscribe(middle);
  assert.deepEqual(await untilEnd(replay), seen.slice(3));
  using watcher = await connectControl(served.path, { readOnly: true });
  await assert.rejects(Promise.resolve(watcher.answer("any", { kind: "allow" })), { message: /only watches/ });
  const live = late.subscribe((seen.at(-1)?.seq ?? 0) + 1);
  assert.equal((await one.prompt("next")).text, "heard next");
  assert.deepEqual((await untilEnd(live)).map(({ seq }) => seq > (seen.at(-1)?.seq ?? 0)).every(Boolean), true);
  const last = late.subscribe();
  await served[Symbol.asyncDispose]();
  assert.deepEqual([await last.next(), (await late.ended).kind], [{ value: undefined, done: true }, "ended"]);
  await assert.rejects(late.prompt("gone"), { message: "the session has ended" });
  await assert.rejects(served.connect(), { name: "ConnectError", reason: "dead" });
});

test("whatever a client sends gets an error, and nobody else notices", async () => {
  await using ground = await openGround(asking);
  await using served = await openServed(ground);
  using good = await served.connect();
  const events = untilEnd(good.subscribe());
  const talk = async (text: string | Buffer): Promise<readonly unknown[]> => {
    const socket = createConnection(served.path);
    socket.write(text);
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      if (Buffer.concat(chunks).toString().split("\n").length > text.toString().split("\n").length) socket.end();
    });
    socket.on("error", () => undefined);
    await once(socket, "close");
    return Buffer.concat(chunks)
      .toString()
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => {
        const { type, id, message } = JSON.parse(line) as Record<string, unknown>;
        return [type, id, message];
      });
  };
  const lines = [
    ...["not json", "null", "[]", '{"id":1}', '{"id":2,"method":"close"}', '{"id":"3","method":"stop"}'],
    ...['{"id":4,"method":"answer","questionId":7,"answer":{"kind":"allow"}}', '{"id":5,"method":"stop","taskId":{}}'],
    ...['{"id":6,"method":"stop","__proto__":{"a":1},"more":true}', '{"id":7,"method":"prompt","prompt":[]}'],
    '{"id":8,"method":"answer","questionId":"q","answer":{"kind":"maybe"}}',
  ];
  const replies = await talk(`${lines.join("\n")}\n`);
  assert.deepEqual(
    replies.map((reply) => (reply as readonly unknown[]).slice(0, 2)),
    [undefined, undefined, undefined, 1, 2, undefined, 4, 5, 6, 7, 8].map((id) => ["error", id]),
  );
  const [large] = await talk(Buffer.alloc(8 * 1024 * 1024 + 1, 0x61));
  assert.deepEqual(large, ["goodbye", undefined, "a request has more than 8388608 bytes"]);
  const crowd = await Promise.all(Array.from({ length: 16 }, () => served.connect()));
  assert.deepEqual(await crowd.at(-1)?.ended, { kind: "full", message: "16 clients are attached already" });
  for (const control of crowd) control[Symbol.dispose]();
  assert.equal((await good.prompt("still there")).text, "heard still there");
  assert.equal((await events).at(-1)?.type, "exchange_ended");
});

test("a client that does not read is dropped with a message, and learns from the next connection what it missed", async () => {
  await using ground = await openGround(asking);
  await using served = await openServed(ground);
  const socket = createConnection(served.path);
  await once(socket, "data");
  socket.pause();
  socket.write('{"id":1,"method":"subscribe","fromSeq":0}\n');
  for (let round = 0; round < ROUNDS; round += 1) {
    for (let at = 0; at < 250; at += 1) for (const mode of ["plan", "default"] as const) served.session.setMode(mode);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.resume();
  await once(socket, "close");
  const frames = Buffer.concat(chunks)
    .toString()
    .trim()
    .split("\n")
    .map(
      (line) => JSON.parse(line) as { readonly type: string; readonly reason?: string; readonly event?: RuntimeEvent },
    );
  assert.deepEqual([frames.at(-1)?.type, frames.at(-1)?.reason], ["goodbye", "slow"]);
  const seqs = frames.flatMap(({ event }) => (event ? [event.seq] : []));
  const [from = 0, to = 0] = [seqs[0], seqs.at(-1)];
  assert.deepEqual(
    seqs,
    Array.from({ length: to - from + 1 }, (_, at) => from + at),
  );
  assert.ok(seqs.length < ROUNDS * 500, `${seqs.length} events were sent`);
  using again = await served.connect();
  const rest = again.subscribe(to + 1);
  const { value } = await rest.next();
  assert.deepEqual([value?.seq, rest.keptFrom > to], [rest.keptFrom, true]);
});

/** 500 events each: more than the 20,000 that may wait. */
const ROUNDS = 54;

test("a command in the sandbox cannot reach the socket of its session", uses("bwrap"), async () => {
  await using ground = await openGround((request) => {
    const [result] = toolResults(request);
    return result ? say(result.text) : callTools([{ name: "Bash", input: { command: LOOK } }]);
  });
  const { out } = await ground.start(["-p", "--ask-attached", "--permission-mode", "bypass", "look"], {
    env: withBwrap,
  }).ended;
  assert.match(out, (await hasBwrap()) ? /^none\n/ : /^\w+-\w+\.sock\n/m);
  assert.equal(existsSync(ground.at("made")), true);
});

/** Not provably read-only, so it runs in the sandbox. */
const LOOK = `touch made; ls /tmp/prefork-${process.getuid?.()} 2>/dev/null || echo none`;
