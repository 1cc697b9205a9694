/** The numbers and names that the documentation promises, as users see them. Changing one is a change for users. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { settingsJsonSchema } from "@prefork/guard";
import { callTools, type SimAnswer, say } from "@prefork/simulator";
import { userText } from "@prefork/wire";
import * as z from "zod";
import { createPlan, type ForkOptions } from "../../src/fork/request.ts";
import { builtInTools, defineTool } from "../../src/index.ts";
import { readSwitches, toForkSettings } from "../../src/session/forking.ts";
import { endsOf, familyScript, openFamily, part, prompted, starts } from "./family-ground.ts";

const long = (words: string): string => `${words} `.repeat(20_000);

/** Gives a long text that tells its calls apart. */
const bookTool = (calls: string[]) =>
  defineTool({
    name: "Book",
    description: "reads a long text",
    input: z.object({}),
    readOnly: true,
    run: async () => {
      calls.push("read");
      return { content: long(`copy ${calls.length}`) };
    },
  });

test("a fork that never reports ends after 200 turns", async () => {
  await using ground = await openFamily(
    familyScript({ main: starts([part("endless")]), fork: () => callTools([{ name: "Book", input: {} }]) }),
    { keepBodies: false },
  );
  const tool = defineTool({
    name: "Book",
    description: "reads a line",
    input: z.object({}),
    readOnly: true,
    run: async () => ({ content: "line" }),
  });
  await using session = await ground.open({ tools: [...builtInTools, tool] });
  await prompted(session, "Go.");
  assert.deepEqual(endsOf(session), { endless: "out-of-turns" });
  assert.equal(session.tasks[0]?.result?.turns, 200);
});

test("a fork without a label is named after its prompt, or the text of its messages", () => {
  const labelled = (options: ForkOptions): string =>
    createPlan(options, { task: "task-1", runId: "run-1" }, toForkSettings({})).label;
  assert.deepEqual(
    [{ prompt: "look at it" }, { prompt: "look at it", label: "look" }, { messages: [userText("Sum up.")] }].map(
      labelled,
    ),
    ["look at it", "look", "Sum up."],
  );
});

test("a fork's event and row have the query source agent:builtin:fork", async () => {
  const report = ({ directive }: { readonly directive: string }): SimAnswer => say(`Scope: ${directive}\nResult: done`);
  await using ground = await openFamily(familyScript({ main: starts([part("one")]), fork: report }));
  await using session = await ground.open();
  const { events } = await prompted(session, "Go.");
  const announced = events.flatMap((event) => (event.type === "fork_started" ? [event.querySource] : []));
  assert.deepEqual(announced, ["agent:builtin:fork"]);
  assert.deepEqual(
    session.tasks.map(({ querySource }) => querySource),
    ["agent:builtin:fork"],
  );
});

test("the schema of the settings states the defaults that a session uses", () => {
  const { properties } = JSON.parse(settingsJsonSchema()).properties.forks;
  const stated = (field: string): unknown => properties[field].default;
  const { isExplicit, forksOff, autoBackgroundMs, tail, mostPerFamily, mostPerSession, wake } = toForkSettings({});
  assert.deepEqual(
    ["enabled", "explicit", "autoBackgroundMs", "inFlight", "placeholders", "perFamily", "perSession", "wake"].map(
      stated,
    ),
    [!forksOff, isExplicit, autoBackgroundMs, tail.inFlight, tail.placeholders, mostPerFamily, mostPerSession, wake],
  );
  assert.deepEqual(["atOnce", "maxTurns", "keepAlive", "interrupted"].map(stated), [50, 200, true, "report"]);
});

test("automatic backgrounding that is turned on without a time waits two minutes", () => {
  const settled = (said?: string): number => {
    const { autoBackgroundMs } = readSwitches(said === undefined ? {} : { PREFORK_AUTO_BACKGROUND_MS: said });
    return toForkSettings({ forking: autoBackgroundMs === undefined ? {} : { autoBackgroundMs } }).autoBackgroundMs;
  };
  assert.deepEqual([undefined, "", "0", "1", "true", "5000"].map(settled), [0, 0, 0, 120_000, 120_000, 5_000]);
});

test("a long result whose id the parent has used is shortened in the fork too, and stored under its own name", async () => {
  const calls: string[] = [];
  const call = { id: "toolu_book", name: "Book", input: {} };
  await using ground = await openFamily(
    familyScript({
      main: (seen) => {
        if (seen.words.includes("Read it")) return callTools([call]);
        if (seen.results.some(({ toolUseId }) => toolUseId === call.id)) return say("I have read it.");
        return starts([part("again")])(seen);
      },
      // Thinking is signed, so the id that repeats the parent's stays as it is; this provider refuses what follows.
      fork: () => ({
        content: [
          { type: "thinking", thinking: "once more" },
          { type: "tool_use", ...call },
        ],
      }),
    }),
  );
  await using session = await ground.open({ tools: [...builtInTools, bookTool(calls)] });
  await prompted(session, "Read it.");
  await prompted(session, "Fork.");
  const sent = ground.simulator.requests().flatMap(({ body }) => {
    const messages: unknown = JSON.parse(body.toString("utf8")).messages;
    return (
      /"(\[Too long to show whole[^"]*)"(?![\s\S]*Too long to show whole)/.exec(JSON.stringify(messages))?.[1] ?? []
    );
  });
  assert.equal(calls.length, 2);
  assert.match(sent[0] ?? "", /^\[Too long .*\/result-toolu_book\.txt: .*\]\\ncopy 1 copy 1 /);
  assert.match(
    sent.find((text) => text.includes("copy 2")) ?? "",
    /^\[Too long .*\/result-toolu_book_2\.txt: .*\]\\ncopy 2 copy 2 /,
  );
});
