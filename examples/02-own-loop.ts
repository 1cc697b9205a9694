/** A conversation that only grows: each request begins with the bytes of the last one, and reads what it wrote. */

import assert from "node:assert/strict";
import {
  anthropic,
  createClient,
  FrozenPrefix,
  type Marker,
  nextMarkers,
  prepare,
  promptTokens,
  text,
  userText,
} from "@prefork/wire";
import { echo, startSimulator, textOfTokens } from "@prefork/wire/simulator";

await using simulator = await startSimulator({ script: echo });
const client = createClient({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });

const head = { model: "claude-sonnet-5", tools: [], system: [text(textOfTokens(2_000))], settings: {} };
let prefix = FrozenPrefix.open(anthropic.encoder, head);
let markers: readonly Marker[] = [];
let written = 0;

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
}

client.close();
