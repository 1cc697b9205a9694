/** The notes on a report that has a problem: it was cut off, does not have the requested form, or omits changes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { callTools, type SimAnswer, say } from "@prefork/simulator";
import { begun, ended, openListening } from "./family-ground.ts";

/** What a fork with these words to say in the end, one after the other, is told to have reported. */
const reported = async (said: readonly SimAnswer[], writes: readonly string[] = []): Promise<string> => {
  await using place = await openListening(({ answers }) =>
    answers === 0 && writes.length > 0
      ? callTools(
          writes.map((name) => ({ name: "Write", input: { file_path: place.folder.at("work", name), content: "1" } })),
        )
      : (said[Math.max(0, answers - Math.sign(writes.length))] ?? say("over")),
  );
  await using session = await begun(place);
  const { end, text } = await ended(session.fork({ prompt: "look" }));
  assert.equal(end, "reported");
  return text;
};

const cut = (text: string): SimAnswer => ({ ...say(text), stopReason: "max_tokens" });

const CUT = "[the answer reached its length limit again and again]";
const FORMLESS = "[The report does not begin with Scope: and is given as it is.]";

test("a report that keeps reaching its length limit says so, and one that is complete in the end does not", async () => {
  const first = cut("Scope: long\nResult: half");
  assert.equal(
    await reported([first, cut(" a "), cut("sen"), cut("ten")]),
    `Scope: long\nResult: half a senten\n\n${CUT}`,
  );
  assert.equal(await reported([first, say(" a sentence")]), "Scope: long\nResult: half a sentence");
});

test("an answer without the form of a report still gets a note about changed files that it does not name", async () => {
  const unsaid = (name: string): string => `[changed ${name} and did not say so]`;
  const lines = (...all: readonly string[]): string => all.join("\n\n");
  const fine = "I did it, all fine";
  const named = "I wrote a.ts and am done";
  assert.deepEqual(
    [
      await reported([say(fine)], ["a.ts", "b.ts"]),
      await reported([say(named)], ["a.ts", "b.ts"]),
      await reported([say(named)], ["a.ts"]),
      await reported([cut("I "), cut("did "), cut("it, "), cut("all f")], ["a.ts"]),
      await reported([say("I looked")]),
    ],
    [
      lines(fine, FORMLESS, unsaid("a.ts"), unsaid("b.ts")),
      lines(named, FORMLESS, unsaid("b.ts")),
      lines(named, FORMLESS),
      lines("I did it, all f", CUT, FORMLESS, unsaid("a.ts")),
      lines("I looked", FORMLESS),
    ],
  );
});
