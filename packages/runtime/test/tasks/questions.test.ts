import assert from "node:assert/strict";
import { test } from "node:test";
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

/** A person who answers when the test says so. */
const person = () => {
  const asked: Question[] = [];
  const answers: ((answer: Answer) => void)[] = [];
  return {
    asked,
    ask: (one: Question): Promise<Answer> => {
      asked.push(one);
      return new Promise((resolve) => answers.push(resolve));
    },
    answer: async (answer: Answer): Promise<void> => {
      answers.shift()?.(answer);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
};

test("questions are put one at a time, in the order they came", async () => {
  const who = person();
  const questions = new Questions({ ask: who.ask });
  const answers = ["a", "b", "c"].map((name) => questions.ask(question(name, `touch ${name}`), never));
  assert.deepEqual(
    who.asked.map(({ agent }) => agent),
    ["a"],
  );
  assert.deepEqual(
    questions.waiting.map(({ agent }) => agent),
    ["a", "b", "c"],
  );
  await who.answer({ kind: "allow" });
  await who.answer({ kind: "deny", reason: "no" });
  await who.answer({ kind: "always", rule: "Bash(touch c)" });
  assert.deepEqual(
    who.asked.map(({ agent }) => agent),
    ["a", "b", "c"],
  );
  assert.deepEqual(await Promise.all(answers), [
    { kind: "allow" },
    { kind: "deny", reason: "no" },
    { kind: "always", rule: "Bash(touch c)" },
  ]);
  assert.deepEqual(questions.waiting, []);
});

test("equal questions are put once and answered together, whoever asked them", async () => {
  const who = person();
  const questions = new Questions({ ask: who.ask });
  const answers = [
    questions.ask(question("a", "npm test"), never),
    questions.ask(question("b", "touch b"), never),
    questions.ask(question("c", "npm test"), never),
  ];
  await who.answer({ kind: "allow" });
  await who.answer({ kind: "deny" });
  assert.deepEqual(
    who.asked.map(({ agent }) => agent),
    ["a", "b"],
  );
  assert.deepEqual(await Promise.all(answers), [{ kind: "allow" }, { kind: "deny" }, { kind: "allow" }]);
});

test("fifty that ask at once are all answered, in order", async () => {
  const order: string[] = [];
  const questions = new Questions({
    ask: async ({ agent }) => {
      order.push(agent);
      return { kind: "allow" };
    },
  });
  const names = Array.from({ length: 50 }, (_, index) => `fork-${index}`);
  const answers = await Promise.all(names.map((name) => questions.ask(question(name, name), never)));
  assert.deepEqual(order, names);
  assert.ok(answers.every(({ kind }) => kind === "allow"));
});

test("a child that is gone is not waited for, and its question is not put any more", async () => {
  const who = person();
  const told: string[] = [];
  const questions = new Questions({
    ask: who.ask,
    waits: ({ agent }, isWaiting) => told.push(`${agent} ${isWaiting ? "waits" : "goes on"}`),
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
  assert.deepEqual(
    who.asked.map(({ agent }) => agent),
    ["a", "c"],
  );
  assert.deepEqual(told, ["a waits", "b waits", "c waits", "b goes on", "a goes on", "c goes on"]);
});

test("whoever fails to answer has said no, and the next is asked", async () => {
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
    { kind: "deny", reason: "the question could not be answered: the terminal is gone" },
    { kind: "allow" },
  ]);
});
