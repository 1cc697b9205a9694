/** Messages to forks: the model steers a running one and resumes it after its report; a program moves one to the background. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { callTools, type SimRequest, say, startSimulator, toolResults } from "@prefork/simulator";

/** What was said last: the user's words, and what tasks have to tell. */
const lastWords = ({ body }: SimRequest): string => {
  const last = Array.isArray(body.messages) ? Object(body.messages.at(-1)) : {};
  return last.content.map((block: { readonly text?: string }) => block.text ?? "").join("\n");
};

const corrected = Promise.withResolvers<void>();

// The scripted fork reports what it was told last. Its first answer takes until it has been corrected.
const fork = (words: string) => {
  const message = /Message of the (?:main agent|user) to you.*\n(.*)/.exec(words)?.[1];
  if (message !== undefined) return say(`Scope: survey\nResult: ${message}`);
  return { ...say("Scope: survey\nResult: everything"), hold: corrected.promise };
};

// The scripted main agent starts it, corrects it, wakes it once, and then says what it heard.
const script = (request: SimRequest) => {
  const words = lastWords(request);
  if (JSON.stringify(request.body.messages).includes("fork-directive:")) return fork(words);
  const [result] = toolResults(request);
  const started = /- (task-\w+): survey/.exec(words)?.[1];
  const [, task, heard] = /<task-id>(.*)<\/task-id>[\s\S]*Result: (.*)<\/result>/.exec(words) ?? [];
  if (started !== undefined)
    return callTools([{ name: "SendMessage", input: { to: started, message: "only the schema" } }]);
  if (heard === "only the schema")
    return callTools([{ name: "SendMessage", input: { to: task ?? "", message: "and now the tests" } }]);
  if (heard !== undefined) return say(`I heard: ${heard}.`);
  if (result?.text.includes("reads it when its present turn ends")) corrected.resolve();
  if (result !== undefined || !words.includes("surveyed")) return say("I wait.");
  return callTools([{ name: "Agent", input: { description: "survey", prompt: "Survey the parts." } }]);
};

await using simulator = await startSimulator({ script });
const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
{
  await using session = await createSession({
    engine: anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } }),
    cwd: folder,
    state: join(folder, ".state"),
    permissions: { mode: "default" },
  });
  const exchange = session.prompt("Have the parts surveyed.");
  for await (const event of exchange)
    if (event.type === "call_ended" && event.tool === "SendMessage") console.log(event.text);
  const { text } = await exchange.result();
  console.log(text);
  assert.equal(text, "I heard: and now the tests.");
  assert.equal(session.tasks.length, 1, "the same task went on");

  // #region background
  const survey = session.fork({ prompt: "Survey the parts again." });
  survey.background(); // the caller stops waiting; the fork keeps running
  const outcome = await survey.result();
  console.log(outcome.status);

  const next = await session.prompt("Anything new?").result(); // ends when the fork has ended too
  console.log(next.text);
  // #endregion
  assert.equal(session.tasks.length, 2);
  assert.deepEqual(outcome, { status: "async_launched", taskId: survey.id });
  assert.equal(next.text, "I heard: everything.");

  // A program wakes a task as well, and waits for it.
  const woken = await session.resumeTask(survey.id, { message: "once more, without the tests" });
  assert.equal(woken.result?.text, "Scope: survey\nResult: once more, without the tests");
}

// Woken or not, every request but the first began with bytes that the provider knew.
for (const { read } of simulator.ledger().slice(1)) assert.ok(read > 0);
await rm(folder, { recursive: true });
