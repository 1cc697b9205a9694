/** The package's own OpenAI formats over HTTP: what they send is accepted, what they report is what the ledger has. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  callTools,
  type LedgerRow,
  type ProviderName,
  type SimRequest,
  say,
  textOfTokens,
  think,
  toolResults,
} from "@prefork/simulator";
import {
  type Client,
  createClient,
  FrozenPrefix,
  forkFamily,
  type Head,
  type Marker,
  type Message,
  type ModelResponse,
  nextMarkers,
  openaiChat,
  openaiResponses,
  type Prepared,
  type Protocol,
  prepare,
  profiles,
  sendFamily,
  text,
  toolResult,
  userText,
} from "@prefork/wire";
import { started } from "./wire-sending.ts";

/** Thinks and calls two tools until it has seen three rounds of results, then says so. */
const script = (request: SimRequest) => {
  const rounds = (request.body.messages as readonly { content: unknown }[]).filter(({ content }) =>
    JSON.stringify(content).includes('"tool_result"'),
  ).length;
  const results = toolResults(request).map((result) => result.text);
  if (rounds >= 3) return say(`done after ${results.join(" and ")}`);
  const calls = callTools([{ name: "Read", input: { path: `file ${rounds}` } }, { name: "Grep" }], `round ${rounds}`);
  return think(textOfTokens(40, rounds), calls);
};

const tool = (name: string): Head["tools"][number] => ({
  type: "function",
  name,
  description: `${name} a file`,
  inputSchema: { type: "object", properties: { path: { type: "string" } } },
});

const headOf = (model: string): Head => ({
  model,
  tools: [tool("Read"), tool("Grep")],
  system: [text(textOfTokens(2_000, 1))],
  settings: { cacheKey: "session-1", effort: "high", thinking: { type: "adaptive" } },
});

const partsOf = ({ usage }: ModelResponse) => ({
  plain: usage.plain,
  read: usage.read,
  written: Object.values(usage.written).reduce((total, tokens) => total + tokens, 0),
  output: usage.output,
});
const inLedger = ({ plain, read, written, output }: LedgerRow) => ({
  plain,
  read,
  written: Object.values(written).reduce((total, tokens) => total + tokens, 0),
  output,
});

type Wire = {
  readonly protocol: Protocol;
  readonly provider: ProviderName;
  readonly model: string;
  readonly base: string;
  /** Real time that an entry takes to be built. */
  readonly buildingMs?: number;
};

type Next = { readonly protocol: Protocol; readonly prefix: FrozenPrefix; readonly last?: readonly Marker[] };

/** With the end of the line's last request kept as a breakpoint: a provider that looks up breakpoints only, and not back
 *  from them, finds what was written there in no other way. */
const requestOf = ({ protocol, prefix, last = [] }: Next, stream: boolean): Prepared => {
  const next = nextMarkers(prefix, last);
  const tail = last.find(({ role }) => role === "tail");
  const markers = tail === undefined ? next : next.toSpliced(-1, 0, { ...tail, role: "previous" });
  return prepare({ protocol, prefix, markers, closing: { maxTokens: 500, stream } });
};

const profileOf = (name: string): Protocol => {
  const found = profiles.get(name)?.protocol;
  assert.ok(found);
  return found;
};

const wires: readonly Wire[] = [
  { protocol: openaiResponses, provider: "openai", model: "gpt-6-sol", base: "/v1" },
  { protocol: openaiResponses, provider: "openai", model: "gpt-5.4", base: "/v1" },
  { protocol: openaiChat, provider: "openai", model: "gpt-6-sol", base: "/v1" },
  { protocol: openaiChat, provider: "openai-legacy", model: "gpt-5.4", base: "/v1" },
  { protocol: profileOf("deepseek"), provider: "deepseek", model: "deepseek-flash", base: "", buildingMs: 2_000 },
  { protocol: profileOf("dashscope"), provider: "dashscope", model: "qwen3.7-max", base: "/compatible-mode/v1" },
  { protocol: profileOf("minimax"), provider: "minimax", model: "MiniMax-M3", base: "/anthropic" },
  { protocol: profileOf("vllm"), provider: "vllm", model: "qwen", base: "/v1" },
  { protocol: profileOf("llama.cpp"), provider: "llamacpp", model: "qwen", base: "/v1" },
];

for (const { protocol, provider, model, base, buildingMs = 0 } of wires)
  test(`${protocol.name}, ${model}: four turns with calls and thinking are accepted, and usage is what the ledger has`, async () => {
    await using sim = await started(provider, { script });
    const client = createClient({ baseUrl: `${sim.url}${base}`, credential: { kind: "bearer", value: "any" } });
    let prefix = FrozenPrefix.open(protocol.encoder, headOf(model)).append(userText("Look at both."));
    const answers: ModelResponse[] = [];
    let last: readonly Marker[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      const request = requestOf({ protocol, prefix, last }, turn % 2 === 0);
      last = request.markers;
      const answer = await client.send(request);
      sim.clock.advance(buildingMs);
      answers.push(answer);
      const calls = answer.message.content.filter((block) => block.type === "tool_use");
      prefix = prefix.append(answer.message);
      if (calls.length > 0)
        prefix = prefix.append({
          role: "user",
          content: calls.map(({ id, name }) => toolResult(id, `${name} ${turn}`)),
        });
    }
    client.close();
    assert.match(JSON.stringify(answers.at(-1)?.message.content), /done after Read 2 and Grep 2/);
    assert.deepEqual(answers.map(partsOf), sim.ledger().map(inLedger));
    const rows = sim.ledger();
    assert.deepEqual(
      rows.map(({ missCause }) => missCause),
      [null, null, null, null],
    );
    // Each turn reads what the rules let it read of the turn before.
    for (const [index, row] of rows.entries()) assert.equal(row.read, rows[index]?.expectedRead);
    assert.ok(rows.slice(1).every(({ read }) => read >= 1_920));
  });

test("openai-responses: a conversation with breakpoints reads its whole last prompt and writes only what is new", async () => {
  await using sim = await started("openai", { script });
  const client = createClient({ baseUrl: `${sim.url}/v1`, credential: { kind: "bearer", value: "any" } });
  const protocol = openaiResponses;
  let prefix = FrozenPrefix.open(protocol.encoder, headOf("gpt-6-sol")).append(userText(textOfTokens(50, 4)));
  let last: readonly Marker[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    const request = requestOf({ protocol, prefix, last }, true);
    last = request.markers;
    const { message } = await client.send(request);
    const calls = message.content.filter((block) => block.type === "tool_use");
    prefix = prefix
      .append(message)
      .append({ role: "user", content: calls.map(({ id }) => toolResult(id, textOfTokens(300, turn))) });
  }
  client.close();
  // Tools 74, system 2,000, the prompt 50; a turn is 40 of thought, 2 of text, 5 and 1 of input, and two results.
  assert.deepEqual(
    sim
      .ledger()
      .map(({ read, written, plain, promptTokens }) => ({ read, written: written["30m"], plain, promptTokens })),
    [
      { read: 0, written: 2_124, plain: 0, promptTokens: 2_124 },
      { read: 2_124, written: 648, plain: 0, promptTokens: 2_772 },
      { read: 2_772, written: 648, plain: 0, promptTokens: 3_420 },
    ],
  );
});

const inFlight: Message = {
  role: "assistant",
  content: [
    text("I split it."),
    { type: "tool_use", id: "call_a", name: "Agent", input: `{"directive":"one"}` },
    { type: "tool_use", id: "call_b", name: "Agent", input: `{"directive":"two"}` },
  ],
};

const familyOn = async (protocol: Protocol, client: Client, model: string) => {
  const prefix = FrozenPrefix.open(protocol.encoder, headOf(model)).append(userText(textOfTokens(1_000, 2)));
  const parent = requestOf({ protocol, prefix }, true);
  await client.send(parent);
  const family = forkFamily(parent, ["one", "two", "three"], { inFlight, parentNote: "launched", protocol: "none" });
  return await sendFamily(client, family, { launch: "leader-first" });
};

for (const [protocol, base] of [
  [openaiResponses, "/v1"],
  [openaiChat, "/v1"],
] as const)
  test(`${protocol.name}: forks with breakpoints read P, and after their leader P and S`, async () => {
    await using sim = await started("openai");
    const client = createClient({ baseUrl: `${sim.url}${base}`, credential: { kind: "bearer", value: "any" } });
    const { members, parentNext } = await familyOn(protocol, client, "gpt-6-sol");
    client.close();
    assert.deepEqual(
      [...members, parentNext].map((outcome) => outcome?.status),
      Array(4).fill("answered"),
    );
    const [parent, leader, ...others] = sim.ledger();
    const shared = others[0]?.read ?? 0;
    assert.equal(leader?.read, parent?.promptTokens);
    assert.ok(shared > (leader?.read ?? 0));
    assert.deepEqual(
      others.map(({ read }) => read),
      [shared, shared, shared],
    );
  });
