import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import fc from "fast-check";
import type { Answer, Question } from "../../src/ports.ts";
import { Questions } from "../../src/tasks/index.ts";

const question = (agent: string, command: string): Question => ({
  id: `${agent}:${command}`,
  agent,
  tool: "Bash",
  args: { command },
  reason: "changes something",
  notes: [],
});

const never = new AbortController().signal;

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A person who answers when the test says so, and ignores signals. */
const person = () => {
  const asked: Question[] = [];
  const takenBack: string[] = [];
  const answers: ((answer: Answer) => void)[] = [];
  return {
    asked,
    /** Ids of questions that were withdrawn before they were answered. */
    takenBack,
    ask: (one: Question, signal: AbortSignal): Promise<Answer> => {
      asked.push(one);
      signal.addEventListener("abort", () => takenBack.push(one.id), { once: true });
      return new Promise((resolve) => answers.push(resolve));
    },
    answer: async (answer: Answer): Promise<void> => {
      answers.shift()?.(answer);
      await settled();
    },
  };
};

const agentsOf = (asked: readonly Question[]): readonly string[] => asked.map(({ agent }) => agent);

test("questions are asked one at a time, in the order they came", async () => {
  const who = person();
  const questions = new Questions({ ask: who.ask });
  const answers = ["a", "b", "c"].map((name) => questions.ask(question(name, `touch ${name}`), never));
  assert.deepEqual(agentsOf(who.asked), ["a"]);
  assert.deepEqual(agentsOf(questions.waiting), ["a", "b", "c"]);
  await who.answer({ kind: "allow" });
  await who.answer({ kind: "deny", reason: "no" });
  await who.answer({ kind: "always", rule: "Bash(touch c)" });
  assert.deepEqual(agentsOf(who.asked), ["a", "b", "c"]);
  assert.deepEqual(await Promise.all(answers), [
    { kind: "allow" },
    { kind: "deny", reason: "no" },
    { kind: "always", rule: "Bash(touch c)" },
  ]);
  assert.deepEqual(questions.waiting, []);
});

test("equal questions are asked once and answered together, whoever asked them", async () => {
  const who = person();
  const questions = new Questions({ ask: who.ask });
  const answers = [
    questions.ask(question("a", "npm test"), never),
    questions.ask(question("b", "touch b"), never),
    questions.ask(question("c", "npm test"), never),
  ];
  await who.answer({ kind: "allow" });
  await who.answer({ kind: "deny" });
  assert.deepEqual(agentsOf(who.asked), ["a", "b"]);
  assert.deepEqual(await Promise.all(answers), [{ kind: "allow" }, { kind: "deny" }, { kind: "allow" }]);
});

test("fifty questions at once are all answered in order by a scripted parent, each as decided", async () => {
  const script = (at: number): Answer => {
    if (at % 3 === 0) return { kind: "allow" };
    return at % 3 === 1 ? { kind: "deny", reason: `not ${at}` } : { kind: "always", rule: `Bash(touch ${at})` };
  };
  const names = Array.from({ length: 50 }, (_, at) => `fork-${at}`);
  const order: string[] = [];
  const heard: string[] = [];
  const questions = new Questions({
    ask: async ({ agent }) => {
      order.push(agent);
      await settled();
      return script(names.indexOf(agent));
    },
  });
  const asking = names.map(async (name) => {
    const answer = await questions.ask(question(name, `touch ${name}`), never);
    heard.push(name);
    return answer;
  });
  assert.deepEqual(agentsOf(questions.waiting), names);
  assert.deepEqual(
    await Promise.all(asking),
    names.map((_, at) => script(at)),
  );
  assert.deepEqual(order, names);
  assert.deepEqual(heard, names);
});

test("the question of a child that is gone is not asked any more, and nobody waits for it", async () => {
  const who = person();
  const told: string[] = [];
  const questions = new Questions({
    ask: who.ask,
    onWaiting: ({ agent }, isWaiting) => told.push(`${agent} ${isWaiting ? "waits" : "goes on"}`),
  });
  const gone = new AbortController();
  const first = questions.ask(question("a", "one"), never);
  const second = questions.ask(question("b", "two"), gone.signal);
  const third = questions.ask(question("c", "three"), never);
  gone.abort();
  assert.equal((await second).kind, "deny");
  await who.answer({ kind: "allow" });
  await who.answer({ kind: "allow" });
  await Promise.all([first, third]);
  assert.deepEqual(agentsOf(who.asked), ["a", "c"]);
  assert.deepEqual(told, ["a waits", "b waits", "c waits", "b goes on", "a goes on", "c goes on"]);
});

test("an asker that leaves while its question is asked withdraws it, and the next is asked", async () => {
  const who = person();
  const questions = new Questions({ ask: who.ask });
  const gone = new AbortController();
  const first = questions.ask(question("a", "one"), gone.signal);
  const second = questions.ask(question("b", "two"), never);
  gone.abort();
  assert.deepEqual(await first, { kind: "deny", reason: "the user interrupted before the question was answered" });
  await settled();
  assert.deepEqual(who.takenBack, ["a:one"]);
  assert.deepEqual(agentsOf(who.asked), ["a", "b"]);
  await who.answer({ kind: "allow", all: true });
  assert.deepEqual(agentsOf(questions.waiting), ["b"]);
  await who.answer({ kind: "deny", reason: "no" });
  assert.deepEqual(await second, { kind: "deny", reason: "no" });
});

test("an answer that arrives the moment its asker leaves changes nothing for the others", async () => {
  const who = person();
  const questions = new Questions({ ask: who.ask });
  const gone = new AbortController();
  const first = questions.ask(question("a", "one"), gone.signal);
  void questions.ask(question("b", "two"), never);
  void who.answer({ kind: "allow", all: true });
  gone.abort();
  assert.equal((await first).kind, "deny");
  await settled();
  assert.deepEqual(agentsOf(questions.waiting), ["b"]);
  assert.deepEqual(agentsOf(who.asked), ["a", "b"]);
});

test("an asker that leaves because another was answered is answered once, and an answered asker has no listener", async () => {
  const who = person();
  const [a, b] = [new AbortController(), new AbortController()];
  const told: string[] = [];
  const questions = new Questions({
    ask: who.ask,
    onWaiting: ({ agent }, isWaiting) => {
      told.push(`${agent} ${isWaiting ? "waits" : "goes on"}`);
      if (agent === "a" && !isWaiting) b.abort();
    },
  });
  const asking = [questions.ask(question("a", "one"), a.signal), questions.ask(question("b", "two"), b.signal)];
  await who.answer({ kind: "allow", all: true });
  assert.deepEqual(
    (await Promise.all(asking)).map(({ kind }) => kind),
    ["allow", "deny"],
  );
  assert.deepEqual(told, ["a waits", "b waits", "a goes on", "b goes on"]);
  assert.deepEqual(getEventListeners(a.signal, "abort"), []);
});

test("if a question is withdrawn, the next equal question is asked", async () => {
  const who = person();
  const questions = new Questions({ ask: who.ask });
  const gone = new AbortController();
  const first = questions.ask(question("a", "npm test"), gone.signal);
  const second = questions.ask(question("b", "npm test"), never);
  gone.abort();
  await settled();
  assert.deepEqual(agentsOf(who.asked), ["a", "b"]);
  await who.answer({ kind: "allow" }); // for a's question, which no longer waits
  assert.deepEqual(agentsOf(questions.waiting), ["b"]);
  await who.answer({ kind: "always", rule: "Bash(npm test)" });
  assert.equal((await first).kind, "deny");
  assert.deepEqual(await second, { kind: "always", rule: "Bash(npm test)" });
});

test("the description of a command does not make it another question; what it does, and the texts of other tools, do", () => {
  const questions = new Questions({ ask: person().ask });
  const put = (id: string, tool: string, args: Question["args"]): void =>
    void questions.ask({ ...question(id, ""), id, tool, args }, never);
  put("1", "Bash", { command: "npm test", description: "Runs the tests" });
  put("2", "Bash", { command: "npm test", description: "Tests once more" });
  put("3", "Bash", { command: "npm test", run_in_background: true });
  put("4", "mcp__tracker__open", { description: "one" });
  put("5", "mcp__tracker__open", { description: "two" });
  const reached = ["1", "2", "3", "4", "5", "6"].map((id) => questions.equalQuestions(id).map((one) => one.id));
  assert.deepEqual(reached, [["1", "2"], ["1", "2"], ["3"], ["4"], ["5"], []]);
});

test("an answer for all reaches every waiting question, and none that comes later", async () => {
  for (const answer of [{ kind: "allow" }, { kind: "deny", reason: "not today", stop: true }] as const) {
    const who = person();
    const questions = new Questions({ ask: who.ask });
    const asking = ["a", "b", "c"].map((name) => questions.ask(question(name, `touch ${name}`), never));
    await who.answer({ ...answer, all: true });
    assert.deepEqual(await Promise.all(asking), [answer, answer, answer]);
    assert.deepEqual(agentsOf(who.asked), ["a"]);
    void questions.ask(question("d", "touch d"), never);
    assert.deepEqual(agentsOf(who.asked), ["a", "d"]);
  }
});

test("a rule for all answers the questions it covers; the others are asked in turn", async () => {
  const who = person();
  const covers = (rule: string, { args }: Question): boolean => rule === `Bash(${String(args.command).slice(0, 3)}:*)`;
  const asking = (questions: Questions) =>
    ["git a", "npm b", "git c"].map((command) => questions.ask(question(command, command), never));
  const questions = new Questions({ ask: who.ask, covers });
  const answers = asking(questions);
  const always: Answer = { kind: "always", rule: "Bash(git:*)" };
  await who.answer({ ...always, all: true });
  assert.deepEqual(agentsOf(questions.waiting), ["npm b"]);
  await who.answer({ kind: "deny" });
  assert.deepEqual(await Promise.all(answers), [always, { kind: "deny" }, always]);

  const strict = person();
  const nothingKnown = new Questions({ ask: strict.ask });
  const waiting = asking(nothingKnown);
  await strict.answer({ ...always, all: true });
  assert.deepEqual(agentsOf(nothingKnown.waiting), ["npm b", "git c"]);
  assert.deepEqual(await waiting[0], always);
});

test('"no, and stop" stops whoever asked this, everybody who asked the same, and nobody else', async () => {
  const who = person();
  const questions = new Questions({ ask: who.ask });
  const asking = [question("a", "rm -r build"), question("b", "npm test"), question("c", "rm -r build")].map((one) =>
    questions.ask(one, never),
  );
  assert.deepEqual(agentsOf(questions.equalQuestions("a:rm -r build")), ["a", "c"]);
  await who.answer({ kind: "deny", stop: true });
  await who.answer({ kind: "allow" });
  const stop: Answer = { kind: "deny", stop: true };
  assert.deepEqual(await Promise.all(asking), [stop, { kind: "allow" }, stop]);
});

test("a question can be answered by its id, out of turn; an id that does not wait changes nothing", async () => {
  const who = person();
  const questions = new Questions({ ask: who.ask });
  const asking = ["a", "b", "c"].map((name) => questions.ask(question(name, name), never));
  assert.equal(questions.answer("b:b", { kind: "deny" }), true);
  assert.equal(questions.answer("b:b", { kind: "allow", all: true }), false);
  assert.equal(questions.answer("nobody", { kind: "allow", all: true }), false);
  assert.deepEqual(agentsOf(questions.waiting), ["a", "c"]);
  assert.equal(questions.answer("a:a", { kind: "allow" }), true);
  await settled();
  assert.deepEqual(who.takenBack, ["a:a"]);
  await who.answer({ kind: "deny", all: true }); // the dialog of a's question, closed too late
  assert.deepEqual(agentsOf(questions.waiting), ["c"]);
  await who.answer({ kind: "allow" });
  assert.deepEqual(await Promise.all(asking), [{ kind: "allow" }, { kind: "deny" }, { kind: "allow" }]);
  assert.deepEqual(agentsOf(who.asked), ["a", "c"]);
});

test("if asking fails, the policy answers and says so, and the next question is asked", async () => {
  let calls = 0;
  const questions = new Questions({
    ask: async () => {
      calls += 1;
      if (calls === 1) throw new Error("the terminal is gone");
      return { kind: "allow" };
    },
  });
  const answers = await Promise.all([
    questions.ask(question("a", "one"), never),
    questions.ask(question("b", "two"), never),
  ]);
  assert.deepEqual(answers, [
    { kind: "deny", reason: "nobody could answer (the terminal is gone), so the policy did: no" },
    { kind: "allow" },
  ]);
});

test("when the session ends, the policy answers all waiting and later questions, and nobody is asked any more", async () => {
  for (const [policy, kind, said] of [
    [undefined, "deny", "no"],
    ["allow", "allow", "yes"],
  ] as const) {
    const who = person();
    const ending = new AbortController();
    const told: string[] = [];
    const questions = new Questions({
      ask: who.ask,
      signal: ending.signal,
      onWaiting: ({ agent }, isWaiting) => told.push(`${agent} ${isWaiting ? "waits" : "goes on"}`),
      ...(policy ? { policy } : {}),
    });
    const asking = ["a", "b"].map((name) => questions.ask(question(name, name), never));
    ending.abort();
    asking.push(questions.ask(question("c", "c"), never));
    const answer = { kind, reason: `nobody could answer (the session ended), so the policy did: ${said}` };
    assert.deepEqual(await Promise.all(asking), [answer, answer, answer]);
    await who.answer({ kind: "allow" });
    assert.deepEqual(agentsOf(who.asked), ["a"]);
    assert.deepEqual(who.takenBack, ["a:a"]);
    assert.deepEqual(told, ["a waits", "b waits", "a goes on", "b goes on"]);
  }
});

test("an asker that is gone before it asks never waits", async () => {
  const told: boolean[] = [];
  const questions = new Questions({ ask: person().ask, onWaiting: (_, isWaiting) => told.push(isWaiting) });
  assert.equal((await questions.ask(question("a", "one"), AbortSignal.abort())).kind, "deny");
  assert.deepEqual(told, []);
});

test("an asker whose waiting cannot be recorded fails, and the others are answered", async () => {
  for (const broken of [true, false]) {
    const who = person();
    const questions = new Questions({
      ask: who.ask,
      onWaiting: ({ agent }, isWaiting) => {
        if (agent === "b" && isWaiting === broken) throw new Error("the disk is full");
      },
    });
    const asking = ["a", "b", "c"].map((name) => questions.ask(question(name, name), never));
    const outcomes = Promise.allSettled(asking);
    await who.answer({ kind: "allow", all: true });
    assert.deepEqual(
      (await outcomes).map((one) => (one.status === "fulfilled" ? one.value.kind : String(one.reason))),
      ["allow", "Error: the disk is full", "allow"],
    );
    assert.deepEqual(questions.waiting, []);
  }
});

test("a waiting question holds no timer, no connection and nothing else that keeps the process alive", async () => {
  const before = process.getActiveResourcesInfo();
  const questions = new Questions({ ask: person().ask });
  const leaving = new AbortController();
  const asking = Array.from({ length: 50 }, (_, at) => questions.ask(question(`${at}`, `${at}`), leaving.signal));
  await Promise.resolve();
  assert.deepEqual(process.getActiveResourcesInfo(), before);
  assert.equal(questions.waiting.length, 50);
  leaving.abort();
  await Promise.all(asking);
});

type Step =
  | { readonly type: "ask"; readonly command: string }
  | { readonly type: "leave"; readonly at: number }
  /** Answers what the person was asked at this point, just now or long ago. */
  | { readonly type: "person"; readonly at: number; readonly answer: Answer }
  | { readonly type: "by-id"; readonly at: number; readonly answer: Answer };

const someAnswer: fc.Arbitrary<Answer> = fc
  .tuple(
    fc.constantFrom<Answer>(
      ...[{ kind: "allow" } as const, { kind: "deny" } as const, { kind: "deny", stop: true } as const],
      ...[{ kind: "always", rule: "x" } as const, { kind: "always", rule: "y" } as const],
    ),
    fc.boolean(),
  )
  .map(([answer, all]) => (all ? { ...answer, all } : answer));

const someStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant("ask"), command: fc.constantFrom("x1", "x2", "y1", "y2") }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("leave"), at: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("person"), at: fc.nat(30), answer: someAnswer }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("by-id"), at: fc.nat(30), answer: someAnswer }) },
);

type Known = { readonly id: string; readonly command: string };

/** The expected behaviour of a queue, written as simply as possible. */
const expected = (steps: readonly Step[]) => {
  const asked: Known[] = [];
  const put: Known[] = [];
  const answers = new Map<string, Answer>();
  const answered = new Set<Known>();
  const waiting = (): readonly Known[] => asked.filter(({ id }) => !answers.has(id));
  const reach = (one: Known | undefined, { all, ...answer }: Answer): void => {
    if (!one || answers.has(one.id)) return;
    for (const other of waiting()) {
      const isCovered = answer.kind !== "always" || other.command.startsWith(answer.rule);
      if (other.command === one.command || (all && isCovered)) answers.set(other.id, answer);
    }
  };
  for (const step of steps) {
    if (step.type === "ask") asked.push({ id: `${asked.length}`, command: step.command });
    else if (step.type === "leave") {
      const leaver = asked[step.at];
      if (leaver && !answers.has(leaver.id)) answers.set(leaver.id, { kind: "deny", reason: GONE });
    } else if (step.type === "by-id") reach(asked[step.at], step.answer);
    else {
      const one = put[step.at];
      if (one && !answered.has(one)) reach(one, step.answer);
      if (one) answered.add(one);
    }
    const first = waiting()[0];
    const last = put.at(-1);
    if (first && (!last || answers.has(last.id))) put.push(first);
  }
  return { put: put.map(({ id }) => id), answers, waiting: waiting().map(({ id }) => id) };
};

const GONE = "the user interrupted before the question was answered";

test("whatever is asked, withdrawn and answered in whatever order: each asker is answered once, in the order of the queue", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(someStep, { maxLength: 30 }), async (steps) => {
      const put: { readonly id: string; readonly resolve: (answer: Answer) => void }[] = [];
      const answers = new Map<string, Answer>();
      const told = new Map<string, boolean[]>();
      const askers: AbortController[] = [];
      const questions = new Questions({
        ask: ({ id }) => new Promise((resolve) => put.push({ id, resolve })),
        onWaiting: ({ id }, isWaiting) => told.set(id, [...(told.get(id) ?? []), isWaiting]),
        covers: (rule, { args }) => String(args.command).startsWith(rule),
      });
      for (const step of steps) {
        if (step.type === "ask") {
          const id = `${askers.length}`;
          const asker = new AbortController();
          askers.push(asker);
          const asking = questions.ask({ ...question(`agent-${id}`, step.command), id }, asker.signal);
          void asking.then((answer) => answers.set(id, answer));
        } else if (step.type === "leave") askers[step.at]?.abort();
        else if (step.type === "by-id") questions.answer(`${step.at}`, step.answer);
        else put[step.at]?.resolve(step.answer);
        await settled();
      }
      const should = expected(steps);
      assert.deepEqual(
        put.map(({ id }) => id),
        should.put,
      );
      assert.deepEqual([...answers].sort(), [...should.answers].sort());
      assert.deepEqual(
        questions.waiting.map(({ id }) => id),
        should.waiting,
      );
      for (const [id, times] of told) assert.deepEqual(times, answers.has(id) ? [true, false] : [true]);
    }),
  );
});
