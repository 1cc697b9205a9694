/** Your own append-only loop: each request starts with the bytes of the last one and reads what that wrote. At the end it
 *  forks. For a loop with another client, which has only bodies and answers, see 03-fork.ts. */

import assert from "node:assert/strict";
import { echo, startSimulator, textOfTokens } from "@prefork/simulator";
import {
  anthropic,
  createClient,
  type Family,
  FrozenPrefix,
  forkFamily,
  type Marker,
  nextMarkers,
  prepare,
  promptTokens,
  sendFamily,
  text,
  userText,
} from "@prefork/wire";

await using simulator = await startSimulator({ script: echo });
const client = createClient({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });

const head = { model: "claude-sonnet-5", tools: [], system: [text(textOfTokens(2_000))], settings: {} };
let prefix = FrozenPrefix.open(anthropic.encoder, head);
let markers: readonly Marker[] = [];
let written = 0;
let family: Family | undefined;

for (const question of ["What is a prefix?", "What is a fork?", "What is a family?"]) {
  const before = prefix;
  prefix = prefix.append(userText(question));
  markers = nextMarkers(prefix, markers);
  assert.ok(prefix.startsWith(before));

  const request = prepare({ protocol: anthropic, prefix, markers, closing: { maxTokens: 500, stream: true } });
  const { message, usage } = await client.send(request);
  console.log(`read ${usage.read}, wrote ${usage.written["5m"] ?? 0}: ${question}`);
  assert.equal(usage.read, written, "everything the last request wrote was read");
  written = promptTokens(usage);
  prefix = prefix.append(message);
  family = forkFamily(request, ["the markers", "the bill"], { inFlight: message });
}

assert.ok(family);
for (const member of (await sendFamily(client, family)).members) {
  assert.ok(member.status === "answered");
  console.log(`a fork read ${member.response.usage.read} of ${promptTokens(member.response.usage)} tokens`);
  assert.ok(member.response.usage.read >= written, "all that the loop had written");
}

client.close();
