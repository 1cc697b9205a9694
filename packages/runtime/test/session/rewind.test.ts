/** Going back in a conversation: the bytes of the next request, and that nothing is lost or told twice. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { callTools, lastUserText, type SimScript, type Simulator, say, toolResults } from "@prefork/simulator";
import { treeOf } from "@prefork/testing/scratch";
import fc from "fast-check";
import type { Session } from "../../src/index.ts";
import { readEntries, replay } from "../../src/journal/index.ts";
import { readFamily, sessionTree } from "../../src/observe.ts";
import { rewindClosed } from "../../src/session/index.ts";
import { type Ground, gate, openGround, reopened, unasked } from "./fault-ground.ts";

/** Enough to be cached. */
const LONG = { appendSystemPrompt: "Be brief. ".repeat(1_500) };

const talk = async (session: Session, ...prompts: readonly string[]): Promise<void> => {
  for (const words of prompts) assert.equal((await session.prompt(words).result()).end, "done");
};

/** A tree as a test compares it: the place of the parent, then what the node is. */
const shown = (session: Session): readonly string[] => {
  const nodes = session.tree();
  return nodes.map(({ parent, title, kind, current, onLine }) => {
    const above = parent === undefined ? "-" : nodes.findIndex(({ id }) => id === parent);
    return `${above} ${kind} ${title}${onLine ? "" : " (left)"}${current ? " *" : ""}`;
  });
};

const nodeOf = (session: Session, title: string): string =>
  session.tree().findLast((each) => each.title === title)?.id ?? assert.fail(`there is no node ${title}`);

type SentBlock = { readonly type: string; readonly text?: string };
type SentBody = { readonly messages: readonly { readonly content: string | readonly SentBlock[] }[] };

/** Every text of the last request's conversation, without what surrounds the first prompt. */
const wordsSent = ({ requests }: Simulator): readonly string[] => {
  const { messages }: SentBody = JSON.parse(requests().at(-1)?.body.toString("utf8") ?? "");
  return messages.flatMap(({ content }, at) => {
    if (typeof content === "string") return [content];
    const texts = content.flatMap(({ type, text = "" }) => (type === "text" ? [text] : []));
    return at === 0 ? texts.slice(-1) : texts;
  });
};

/** What the request sent up to the end of its messages, without markers. */
const bytesSent = ({ requests }: Simulator, at: number): string => {
  const body = requests().at(at)?.body.toString("utf8") ?? "";
  const bare = body.replaceAll(/,"cache_control":\{[^{}]*\}/g, "");
  return bare.slice(0, bare.lastIndexOf('],"max_tokens"'));
};

/** Request `later` continues the bytes of request `earlier`, and reads all that is cached of them. */
const assertContinues = ({ simulator }: Ground, later: number, earlier: number): void => {
  assert.ok(bytesSent(simulator, later).startsWith(bytesSent(simulator, earlier)), "it does not begin with its bytes");
  const rows = simulator.ledger();
  assert.ok((rows.at(earlier)?.nextRead ?? 0) > 3_000);
  assert.equal(rows.at(later)?.read, rows.at(earlier)?.nextRead);
};

const journalOf = (ground: Ground, { id }: Session): string => ground.folder.at(`state/sessions/${id}/journal.jsonl`);

// --- bytes ---------------------------------------------------------------------------------------------------------------

test("the request after a rewind begins with the bytes that were sent up to there, and reads them from the cache", async () => {
  await using ground = await openGround();
  const { simulator } = ground;
  await using session = await ground.open(LONG);
  await talk(session, "one", "two", "three");
  const back = await session.rewind({ to: nodeOf(session, "two") });
  assert.deepEqual(back, { node: session.tree().at(-1)?.id, prompt: "two" });
  await talk(session, "other");
  assert.deepEqual(wordsSent(simulator), ["one", "heard one", "other"]);
  assertContinues(ground, 3, 0);
  // The line that was left is continued in the same way.
  await session.rewind({ to: nodeOf(session, "three"), place: "after" });
  await talk(session, "four");
  assert.deepEqual(wordsSent(simulator), ["one", "heard one", "two", "heard two", "three", "heard three", "four"]);
  assertContinues(ground, 4, 2);
  assert.deepEqual(shown(session), [
    "- prompt one",
    "0 prompt two",
    "1 prompt three",
    "0 branch continues one (left)",
    "3 prompt other (left)",
    "2 branch continues three",
    "5 prompt four *",
  ]);
});

test("a session that went back resumes on its newest branch, and can go back there again", async () => {
  await using ground = await openGround();
  const { simulator } = ground;
  await using session = await ground.open(LONG);
  await talk(session, "one", "two", "three");
  await session.rewind({ to: nodeOf(session, "two") });
  await session.close();
  await using again = await reopened(ground, session.id);
  await talk(again, "other");
  assert.deepEqual(wordsSent(simulator), ["one", "heard one", "other"]);
  assertContinues(ground, 3, 0);
  const undo = again.tree().find(({ kind }) => kind === "branch")?.id ?? "";
  await again.rewind({ to: undo }); // before the branch: where the conversation was when it went back
  await again.close();
  await using third = await reopened(ground, session.id);
  await talk(third, "four");
  assert.deepEqual(wordsSent(simulator), ["one", "heard one", "two", "heard two", "three", "heard three", "four"]);
  assertContinues(ground, 4, 2);
  await third.rewind({ to: nodeOf(third, "one") });
  await talk(third, "anew");
  assert.deepEqual(wordsSent(simulator), ["anew"]);
});

test("going back to before a compaction sends the old bytes, and the next compaction starts an epoch of its own", async () => {
  await using ground = await openGround({ "goes on from a summary": say("<summary>what was said</summary>") });
  const { simulator } = ground;
  await using session = await ground.open(LONG);
  const epochs: number[] = [];
  const reading = (async () => {
    for await (const event of session.events()) if (event.type === "epoch_started") epochs.push(event.epoch);
  })();
  await talk(session, "one", "two");
  assert.equal((await session.compact()).kind, "compacted");
  await talk(session, "three");
  assert.deepEqual(shown(session), ["- prompt one", "0 prompt two", "1 compaction compacted", "2 prompt three *"]);
  await session.rewind({ to: nodeOf(session, "compacted") });
  await talk(session, "other");
  assert.deepEqual(wordsSent(simulator), ["one", "heard one", "two", "heard two", "other"]);
  assertContinues(ground, 4, 1);
  assert.equal((await session.compact()).kind, "compacted");
  await session.rewind({ to: nodeOf(session, "three"), place: "after" });
  await talk(session, "four");
  assertContinues(ground, 6, 3);
  await session.close();
  await reading;
  assert.deepEqual(epochs, [1, 2, 3]);
});

test("a price to continue: what is warm is read, what has expired is written again", async () => {
  await using ground = await openGround();
  let now = 1_000_000;
  await using session = await ground.open({ ...LONG, clock: { now: () => now } });
  await talk(session, "one");
  now += 200_000;
  await talk(session, "two");
  now += 200_000;
  const [one, two] = session.tree();
  const rows = ground.simulator.ledger();
  assert.deepEqual([one?.warmUntil, two?.warmUntil], [1_300_000, 1_500_000]);
  assert.equal(one?.priceToContinue?.read, 0);
  assert.equal(two?.priceToContinue?.read, rows[1]?.promptTokens);
  const [cold, warm] = [one?.priceToContinue?.usd ?? 0, two?.priceToContinue?.usd ?? 0];
  assert.ok(warm > 0 && cold > warm * 8, `${cold} ${warm}`);
});

// --- what belongs to the conversation, and what to the session ----------------------------------------------------------

test("to-dos, the files that were read and the last prompt go back with the conversation", async () => {
  const todos = [{ content: "all of it", status: "pending" as const }];
  await using ground = await openGround({
    plan: callTools([{ name: "TodoWrite", input: { todos } }]),
    read: () => callTools([{ name: "Read", input: { file_path: `${ground.work}/a.txt` } }]),
    edit: () =>
      callTools([{ name: "Edit", input: { file_path: `${ground.work}/a.txt`, old_string: "a", new_string: "b" } }]),
  });
  writeFileSync(`${ground.work}/a.txt`, "a\n");
  await using session = await ground.open();
  await talk(session, "plan", "read");
  assert.deepEqual(session.todos, todos);
  await session.rewind({ to: nodeOf(session, "read") });
  assert.deepEqual(session.todos, todos);
  assert.match((await session.prompt("edit").result()).text, /^saw ! .*read/i);
  assert.equal(readFileSync(`${ground.work}/a.txt`, "utf8"), "a\n");
  await session.rewind({ to: nodeOf(session, "plan") });
  assert.deepEqual(session.todos, []);
});

test("a rewind is refused while an exchange runs, a question is open or no such node exists, and changes nothing", async () => {
  await using ground = await openGround({ run: callTools([{ name: "Bash", input: { command: "touch made" } }]) });
  await using session = await ground.open({ permissions: { ...unasked, mode: "default", ask: "attached" } });
  const control = session.control();
  await talk(session, "one");
  const before = readFileSync(journalOf(ground, session));
  await assert.rejects(control.rewind({ to: "n999" }), { name: "InputError", message: /^there is no node "n999"/ });
  assert.deepEqual(readFileSync(journalOf(ground, session)), before);
  for await (const event of session.prompt("run"))
    if (event.type === "question_opened") {
      const to = (await control.tree())[0]?.id ?? "";
      const refusal = {
        name: "InputError",
        message: "an exchange is running; wait for its end or stop it, then rewind",
      };
      await assert.rejects(control.rewind({ to }), refusal);
      await control.answer(event.questionId, { kind: "deny" });
    }
  await control.rewind({ to: (await control.tree())[0]?.id ?? "" });
  assert.deepEqual(shown(session).at(-1), "- branch starts over *");
  await session.close();
  assert.throws(() => session.tree(), { message: "the session is closed" });
  await assert.rejects(session.rewind({ to: "n1" }), { message: "the session is closed" });
});

test("a task's report reaches every line that knows the task, once each, and no other", async () => {
  const held = gate();
  const agent = callTools([{ name: "Agent", input: { description: "the job", prompt: "do the job" } }]);
  await using ground = await openGround({
    "do the job": { ...say("Scope: the job\nResult: all done"), hold: held.passed },
    async_launched: say("I wait."),
    "go and": agent,
  });
  const { simulator } = ground;
  await using session = await ground.open(LONG);
  const told = (): number => wordsSent(simulator).filter((words) => words.startsWith("<task-notification>")).length;
  await talk(session, "zero");
  await session.prompt("go and", { tasks: "leave" }).result();
  // It runs while the conversation goes back, and keeps what it started from.
  const { node: branch = "" } = await session.rewind({ to: nodeOf(session, "go and"), place: "after" });
  const reader = session.events();
  held.open();
  for await (const event of reader) if (event.type === "exchange_ended") break;
  assert.equal(told(), 1, "the idle session continues by itself, on the line where it is now");
  await session.rewind({ to: nodeOf(session, "go and"), place: "after" });
  await talk(session, "again");
  assert.equal(told(), 1, "a line that started the task and was not told of its end is told");
  await talk(session, "more");
  assert.equal(told(), 1, "and only once");
  await session.rewind({ to: branch, place: "after" });
  await talk(session, "forward");
  assert.equal(told(), 1, "a line that was told is not told again");
  await session.rewind({ to: nodeOf(session, "go and") });
  await session.close();
  await using later = await reopened(ground, session.id);
  await talk(later, "something else");
  assert.equal(told(), 0, "a line that never started it is not told what another was told");
  const [start] = later.tree().filter(({ forks }) => forks.length > 0);
  const forks = start?.forks.map(({ label, state }) => ({ label, state }));
  assert.deepEqual([start?.title, forks], ["go and", [{ label: "the job", state: "reported" }]]);
  assert.equal((await later.resumeTask(start?.forks[0]?.task ?? "", { message: "and?" })).state.kind, "ended");
});

// --- journals ------------------------------------------------------------------------------------------------------------

test("a rewind that was cut off at any byte leaves the old conversation, and a whole one the new", async () => {
  await using ground = await openGround();
  await using session = await ground.open();
  await talk(session, "one", "two");
  const path = journalOf(ground, session);
  const before = readFileSync(path).length;
  await session.rewind({ to: nodeOf(session, "two") });
  const whole = readFileSync(path);
  const messagesAt = (length: number): number =>
    replay(readEntries(whole.subarray(0, length), "cut").entries).messages.length;
  for (let cut = before; cut < whole.length - 1; cut += 5) assert.equal(messagesAt(cut), 4);
  assert.equal(messagesAt(whole.length), 2);
  const versions = whole
    .toString()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  // Only what an earlier version would misread has the version that it refuses.
  assert.deepEqual(
    [...new Set(versions.map(({ v, kind }) => (kind === "branch" ? `branch ${v}` : v)))],
    [1, "branch 2"],
  );
});

test("the ledger compares a request after a rewind with the request that it continues", async () => {
  await using ground = await openGround();
  await using session = await ground.open(LONG);
  await talk(session, "one", "two", "three");
  await session.rewind({ to: nodeOf(session, "two") });
  await talk(session, "other");
  await session.close();
  const store = { state: ground.folder.at("state"), now: Date.now, newId: () => "unused" };
  const { rows } = await readFamily(store, session.id);
  assert.deepEqual(
    rows.map(({ usage, expected }) => usage.read - expected),
    [0, 0, 0, 0],
  );
  assert.deepEqual(
    (await sessionTree(store, session.id)).map(({ title }) => title),
    ["one", "two", "three", "continues one", "other"],
  );
});

type Step =
  | { readonly kind: "prompt" }
  | { readonly kind: "resume" }
  | { readonly kind: "rewind"; readonly node: number; readonly place: "before" | "after" };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>({ kind: "prompt" }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: "resume" }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("rewind" as const),
      node: fc.nat(20),
      place: fc.constantFrom("before" as const, "after" as const),
    }),
  },
);

test("after any prompts, rewinds and resumes the conversation is that of a tree in memory", async () => {
  await using ground = await openGround();
  const { simulator } = ground;
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 4, maxLength: 10 }), async (steps) => {
      let session = await ground.open();
      try {
        /** The prompts up to before and after each node. */
        const model: { readonly before: readonly string[]; readonly after: readonly string[] }[] = [];
        let line: readonly string[] = [];
        for (const [at, step] of [...steps, { kind: "prompt" } as const].entries()) {
          if (step.kind === "prompt") {
            await talk(session, `p${at}`);
            model.push({ before: line, after: [...line, `p${at}`] });
            line = [...line, `p${at}`];
            assert.deepEqual(
              wordsSent(simulator),
              line.flatMap((words, place) => (place === line.length - 1 ? [words] : [words, `heard ${words}`])),
            );
          } else if (step.kind === "resume") {
            await session.close();
            session = await reopened(ground, session.id);
          } else if (model.length > 0) {
            const place = step.node % model.length;
            const [node, known] = [session.tree()[place], model[place]];
            assert.ok(node && known);
            await session.rewind({ to: node.id, place: step.place });
            model.push({ before: line, after: known[step.place] });
            line = known[step.place];
          }
        }
        assert.equal(session.tree().length, model.length);
        assert.deepEqual(
          simulator.ledger().flatMap(({ error }) => error ?? []),
          [],
        );
      } finally {
        await session.close();
      }
    }),
    { numRuns: 5, seed: 14 },
  );
});

// --- files ---------------------------------------------------------------------------------------------------------------

/** A model that runs what it is told: `write a.txt: text`, `run: command`. */
const doesAsTold: SimScript = (request) => {
  const words = lastUserText(request);
  const { path, content, command } =
    /^(?:write (?<path>[^:]+): (?<content>.*)|run: (?<command>.*))$/s.exec(words)?.groups ?? {};
  if (toolResults(request).length > 0 && words === "") return say("done");
  if (command !== undefined) return callTools([{ name: "Bash", input: { command } }]);
  if (path !== undefined && content !== undefined)
    return callTools([{ name: "Write", input: { file_path: path, content } }]);
  return say(`heard ${words}`);
};

const SNAPSHOTS = { snapshots: "on", environment: { PATH: process.env.PATH, HOME: "/nonexistent" } } as const;

const gitIn = (cwd: string) => (words: string) => execFileSync("git", words.split(" "), { cwd, encoding: "utf8" });

const repositoryIn = (ground: Ground): ((words: string) => string) => {
  const git = gitIn(ground.work);
  git("init -q");
  git("config user.email a@b");
  git("config user.name a");
  writeFileSync(`${ground.work}/kept`, "kept\n");
  git("add -A");
  git("commit -qm one");
  return git;
};

/** The files of the workspace, without git's own. */
const filesIn = (folder: string): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(treeOf(folder)).filter(([name]) => !name.startsWith(".git/")));

test("files and conversation go back together, apart, and forward again; the user's own changes are kept", async () => {
  await using ground = await openGround(doesAsTold);
  const git = repositoryIn(ground);
  await using session = await ground.open(SNAPSHOTS);
  const at = (name: string): string => `${ground.work}/${name}`;
  await talk(session, `write ${at("a")}: one`, "run: echo more >> kept; chmod 755 kept; ln -s a link", "talk");
  writeFileSync(at("mine"), "my own\n");
  const status = git("status --porcelain");
  const nodes = session.tree();
  assert.deepEqual(
    nodes.map(({ files }) => files),
    [true, true, true],
  );
  const to = nodes[1]?.id ?? "";
  const before = filesIn(ground.work);
  const preview = await session.rewind({ to, restore: "both", preview: true });
  assert.deepEqual(preview.files, {
    restored: [{ path: "kept", added: 0, deleted: 1 }],
    removed: [
      { path: "link", added: 0, deleted: 1 },
      { path: "mine", added: 0, deleted: 1 },
    ],
    skipped: [],
  });
  assert.deepEqual([filesIn(ground.work), session.tree().length], [before, 3]);
  const back = await session.rewind({ to, restore: "both" });
  assert.match(back.files?.saved ?? "", /^commit [0-9a-f]{40} of .*\/rewind-files\/git$/);
  assert.deepEqual(filesIn(ground.work), { a: before.a, kept: "644 kept\n" });
  await talk(session, "other");
  assert.deepEqual(wordsSent(ground.simulator).at(-1), "other");
  // The rewind itself is undone.
  await session.rewind({ to: back.node ?? "", restore: "both" });
  assert.deepEqual([filesIn(ground.work), git("status --porcelain")], [before, status]);
  await session.rewind({ to: nodes[0]?.id ?? "", restore: "files" });
  assert.deepEqual(Object.keys(filesIn(ground.work)), ["kept"]);
  await talk(session, "still the same conversation");
  assert.ok(wordsSent(ground.simulator).includes("talk"));
  assert.deepEqual(
    wordsSent(ground.simulator).filter((words) => words.startsWith("The user restored")),
    ["The user restored files to an earlier state; read them again before you rely on them: kept, a, link, mine"],
  );
  assert.equal(git("stash list"), "");
});

test("outside a repository only the files that tools wrote go back", async () => {
  await using ground = await openGround(doesAsTold);
  await using session = await ground.open(SNAPSHOTS);
  const at = (name: string): string => `${ground.work}/${name}`;
  writeFileSync(at("foreign"), "as it was");
  await talk(session, `write ${at("a")}: one`, `write ${at("a")}: two`, `write ${at("deep/b")}: b`);
  writeFileSync(at("foreign"), "by its owner");
  const [first, second] = session.tree();
  const both = filesIn(ground.work);
  const back = await session.rewind({ to: second?.id ?? "", restore: "files" });
  assert.deepEqual(back.files?.restored, [{ path: at("a") }]);
  assert.deepEqual(back.files?.removed, [{ path: at("deep/b") }]);
  assert.deepEqual([readFileSync(at("a"), "utf8"), existsSync(at("deep/b"))], ["one", false]);
  await session.close();
  await using again = await reopened(ground, session.id, SNAPSHOTS);
  await again.rewind({ to: back.node ?? "", restore: "files" });
  assert.deepEqual(filesIn(ground.work), both);
  await again.rewind({ to: first?.id ?? "", restore: "both" });
  assert.deepEqual([existsSync(at("a")), readFileSync(at("foreign"), "utf8")], [false, "by its owner"]);
});

test("a rewind that was killed while files changed is taken back by the next run, which says so", async () => {
  for (const isRepository of [true, false]) {
    await using ground = await openGround(doesAsTold);
    if (isRepository) repositoryIn(ground);
    const at = (name: string): string => `${ground.work}/${name}`;
    await using session = await ground.open(SNAPSHOTS);
    await talk(session, `write ${at("a")}: one`, `write ${at("a")}: two`);
    const before = filesIn(ground.work);
    const to = session.tree()[1]?.id ?? "";
    await session.rewind({ to, restore: "both" });
    await session.close();
    // As a kill leaves it: the journal ends after the intent, and the files are half restored.
    const path = journalOf(ground, session);
    const lines = readFileSync(path, "utf8").split("\n");
    writeFileSync(
      path,
      `${lines.slice(0, lines.findLastIndex((line) => line.includes('"restoring"') && line.includes('"copies"')) + 1).join("\n")}\n`,
    );
    assert.equal(readFileSync(at("a"), "utf8"), "one");
    await using again = await reopened(ground, session.id, SNAPSHOTS);
    const reader = again.events();
    await talk(again, "go on");
    assert.deepEqual(filesIn(ground.work), before);
    const notices: string[] = [];
    for await (const event of reader) {
      if (event.type === "settings_noticed") notices.push(event.notice);
      if (event.type === "exchange_ended") break;
    }
    assert.match(notices.join(), /^A rewind was interrupted/);
    assert.ok(
      wordsSent(ground.simulator).some((words) => words.endsWith(": two")),
      "the conversation is the old one",
    );
  }
});

test("nothing is kept where it is switched off, and a closed session can be rewound without a model", async () => {
  await using ground = await openGround(doesAsTold);
  const git = repositoryIn(ground);
  await using session = await ground.open({ ...SNAPSHOTS, snapshots: "off" });
  await talk(session, `write ${ground.work}/a: one`);
  assert.equal(git("for-each-ref refs/prefork"), "");
  const to = session.tree()[0]?.id ?? "";
  await assert.rejects(session.rewind({ to, restore: "both" }), { message: /^no snapshot of the files was taken/ });
  await session.close();
  const store = { state: ground.folder.at("state"), now: Date.now, newId: () => "unused" };
  const closed = { id: session.id, environment: {}, notice: () => {} };
  assert.equal((await rewindClosed(store, closed, { to })).prompt, `write ${ground.work}/a: one`);
  await using again = await reopened(ground, session.id);
  await talk(again, "anew");
  assert.deepEqual(wordsSent(ground.simulator), ["anew"]);
});
