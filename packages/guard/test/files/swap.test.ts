import assert from "node:assert/strict";
import { test } from "node:test";
import { SOAK_TRIES_IN_TESTS, swapSoak } from "./swap-soak.ts";

test("nothing escapes while another process swaps folders and files for links", async (context) => {
  if (process.platform !== "linux") return context.skip("descriptors are reached through /proc, which only Linux has");
  const { tries, written, refused, escapes } = await swapSoak(SOAK_TRIES_IN_TESTS);
  assert.deepEqual(escapes, []);
  assert.equal(written + refused, tries);
  assert.ok(
    written > 0 && refused > 0,
    `a race that nobody runs shows nothing: ${written} written, ${refused} refused`,
  );
});
