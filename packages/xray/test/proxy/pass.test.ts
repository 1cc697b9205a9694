/** What passes, passes as it is: the short form of `npm run soak -- proxy`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { passSoak } from "./pass-soak.ts";

test("every byte, header and trailer arrives as it was sent, and the other side sees every end", async () => {
  const { broken, hashes, whole } = await passSoak({ requests: 600, seed: 7, atOnce: 16 });
  assert.deepEqual(broken, []);
  assert.equal(hashes.arrived, hashes.sent);
  assert.ok(whole > 400);
});
