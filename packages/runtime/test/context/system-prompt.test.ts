import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { type SystemPromptOptions, systemPrompt } from "../../src/context/index.ts";

const cost = `The bytes of the system prompt changed. A session that is open, or resumed, keeps the words it began
with; but every new session and epoch writes system and tools again instead of reading what another one wrote (1.25 × their
tokens instead of 0.1 ×), forks of different releases share nothing, and what was measured was measured with the old words.
If that is meant, say so in CHANGELOG.md and put the new value here; if not, find what made the bytes differ (law 3: nothing
volatile before the divergence point).`;

const hashOf = (options: SystemPromptOptions): string =>
  createHash("sha256")
    .update(JSON.stringify(systemPrompt(options)))
    .digest("base64url");

test("the system prompt has the bytes it always had, with and without forks", () => {
  assert.deepEqual(
    { forks: hashOf({ forks: true }), none: hashOf({ forks: false }) },
    { forks: "jz2xyLUdTEPGCiene6QJxvcW6LV3Om4YvAO3t9_moBU", none: "oDcbKzqZefInFSBFxJNP0Ony1Grpabu8kNMNjhWlLEc" },
    cost,
  );
});

test("it stays under 1,800 tokens, counted at 3.5 bytes each", () => {
  for (const forks of [true, false]) {
    const bytes = systemPrompt({ forks }).reduce((sum, block) => sum + Buffer.byteLength(block.text), 0);
    assert.ok(bytes / 3.5 < 1_800, `${bytes} bytes`);
  }
});

test("without forks only the section on delegating differs, and it does not mention forks", () => {
  const [on, off] = [true, false].map((forks) => systemPrompt({ forks })[0]?.text ?? "");
  const common = (on ?? "").split("\n\n").filter((part) => off?.includes(part));
  assert.deepEqual([(on ?? "").split("\n\n").length - common.length, /\bforks?\b/i.test(off ?? "")], [1, false]);
});

test("what the user appends is a separate block after ours, so that ours stays the same", () => {
  const [ours] = systemPrompt({ forks: true });
  assert.deepEqual(systemPrompt({ forks: true, append: "Answer in Latin." }), [
    ours,
    { type: "text", text: "Answer in Latin." },
  ]);
  assert.deepEqual(systemPrompt({ forks: true, append: " \n" }), [ours]);
});
