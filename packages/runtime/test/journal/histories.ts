/** Sessions for tests: a store in its own folder, and handwritten and random histories. */

import { anyCharacter } from "@prefork/testing/any-character";
import {
  anthropic,
  type Block,
  type FrozenPrefix,
  type Head,
  type Message,
  markerPlaces,
  nextMarkers,
  text,
  toolResult,
  userText,
} from "@prefork/wire";
import fc from "fast-check";
import {
  growBlocks,
  growEpoch,
  growMessage,
  type JournalWriter,
  type NewSession,
  type SessionStore,
} from "../../src/journal/index.ts";

/** Time stands still unless a test moves it, and ids are counted. */
export const storeIn = (state: string, options: { readonly prefix?: string } = {}): SessionStore & { at: number } => {
  let count = 0;
  const store = {
    state,
    at: 1_000,
    now: () => store.at,
    newId: () => {
      count += 1;
      return `${options.prefix ?? "s"}${count}`;
    },
  };
  return store;
};

export const session: NewSession = {
  cwd: "/work/project",
  model: "claude-sonnet-5",
  protocol: "anthropic",
  product: "prefork 0.1.0",
};

export const head: Head = {
  model: "claude-sonnet-5",
  tools: [
    {
      type: "function",
      name: "Read",
      description: 'Reads a "file",\nwhole.',
      inputSchema: { type: "object", properties: { wire: { type: "string" }, path: { type: "string" } } },
    },
  ],
  system: [text("You are a test.")],
  settings: { thinking: { type: "adaptive" }, betas: ["b-2026"], stopSequences: ['"wire":'] },
};

/** A session that grows as the loop would grow it. */
export class Live {
  readonly journal: JournalWriter;
  prefix: FrozenPrefix;
  markers: ReturnType<typeof nextMarkers> = [];
  epoch = 1;
  turn = 0;

  constructor(journal: JournalWriter, given: Head = head) {
    const { prefix, drafts } = growEpoch(anthropic, { epoch: 1, reason: "start", head: given });
    journal.appendAll(drafts);
    this.journal = journal;
    this.prefix = prefix;
  }

  enter(message: Message, options: { readonly source?: string; readonly open?: boolean } = {}): void {
    const { prefix, drafts } = growMessage(this.prefix, message, options);
    this.journal.appendAll(drafts);
    this.prefix = prefix;
  }

  extend(blocks: readonly Block[]): void {
    const { prefix, drafts } = growBlocks(this.prefix, blocks);
    this.journal.appendAll(drafts);
    this.prefix = prefix;
  }

  compact(summary: Message): void {
    const opened = growEpoch(anthropic, { epoch: this.epoch + 1, reason: "compaction", head });
    const grown = growMessage(opened.prefix, summary);
    this.journal.appendAll([...opened.drafts, ...grown.drafts]);
    this.prefix = grown.prefix;
    this.epoch += 1;
    this.markers = [];
  }

  ask(): void {
    this.markers = nextMarkers(this.prefix, this.markers);
    this.turn += 1;
    const { turn } = this;
    const prefixHash = this.prefix.hash;
    this.journal.append({ kind: "request", turn, markers: markerPlaces(this.markers), prefixHash, maxTokens: 100 });
  }

  answer(): void {
    const usage = { plain: 1, read: 2, written: { "5m": 3 }, output: 4 };
    const { turn } = this;
    const facts = { id: `msg_${turn}`, model: head.model, stop: "end" as const, usage, usd: 0.25, ms: 7 };
    this.journal.append({ kind: "response", turn, ...facts });
  }
}

/** What makes two prefixes equal: every byte, every segment, everything that further growth needs. */
export const factsOf = (prefix: FrozenPrefix | undefined): unknown => {
  const segments: unknown[] = [];
  for (let at = prefix?.tip; at; at = at.before) {
    const { before: _before, headEnd, ...plain } = at;
    segments.unshift({ ...plain, headEnd: headEnd?.index });
  }
  return {
    bytes: prefix && Buffer.concat(prefix.chunks()).toString("latin1"),
    segments,
    pending: prefix?.pending,
    close: prefix?.close,
    model: prefix?.model,
    betas: prefix?.betas,
  };
};

export const shapes: Readonly<Record<string, readonly Message[]>> = {
  "thinking with signatures, odd numbers, key orders and line breaks in a call": [
    userText("go"),
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm\n\u2028", signature: "c2ln+/=" },
        { type: "redacted_thinking", data: "b3BhcXVl" },
        { type: "tool_use", id: "a", name: "Read", input: '{\n  "z": 1.50e+02,\r\n\t"a": -0, "\\u0061": [ ] }' },
        { type: "tool_use", id: "b", name: "Read", input: '{"wire":[{"wire":1.0}]}', extras: '"caller":{"n":1.0}' },
      ],
    },
    { role: "user", content: [toolResult("a", 'one "wire":[1]}\n'), toolResult("b", "two")] },
  ],
  "a call that was cut off": [
    userText("go"),
    { role: "assistant", content: [{ type: "tool_use", id: "a", name: "Read", input: '{"path": "x' }] },
    { role: "user", content: [{ ...toolResult("a", "the input was incomplete"), isError: true }] },
  ],
  "empty texts, lone surrogates, letters beyond the first plane": [
    { role: "user", content: [text(""), text("a\ud800b"), text("😀\u0000"), text("")] },
    { role: "assistant", content: [text(""), text("漢")] },
  ],
  "images, documents, blocks of the provider and its own spelling": [
    {
      role: "user",
      content: [
        { type: "image", source: { kind: "base64", mediaType: "image/png", data: "aGk=" } },
        { type: "document", source: { kind: "url", url: "https://example.org/a" }, title: 'a "title"' },
        { type: "provider", kind: "container", json: '{"type":"container",\n "n":1.0}' },
      ],
    },
    {
      role: "assistant",
      content: [{ type: "text", text: "said", citations: ['{"n":1.0}'], raw: '{ "text":"said",\n"type":"text" }' }],
    },
  ],
  "calls that nobody answered": [
    userText("go"),
    { role: "assistant", content: [{ type: "tool_use", id: "a", name: "Read", input: "{}" }] },
    userText("never mind"),
    { role: "assistant", content: [{ type: "tool_use", id: "b", name: "Read", input: "{}" }] },
  ],
};

export type Step =
  | { readonly kind: "enter"; readonly message: Message; readonly open: boolean }
  | { readonly kind: "extend"; readonly blocks: readonly Block[] }
  | { readonly kind: "compact"; readonly summary: Message }
  | { readonly kind: "ask" };

const anyString = fc.string({ minLength: 1, maxLength: 20, unit: anyCharacter });
const anyText = anyString.map(text);
const anyInput = fc.oneof(
  fc.constantFrom("{}", '{ "a":1.0,\n"b":2e5 }', '{"path": "cut'),
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 1 })).map((value) => JSON.stringify(value, null, 1)),
);
const anyImage: fc.Arbitrary<Block> = fc
  .base64String()
  .map((data) => ({ type: "image", source: { kind: "base64", mediaType: "image/png", data } }));
const anyThinking: fc.Arbitrary<Block> = fc
  .tuple(anyString, fc.base64String())
  .map(([thinking, signature]) => ({ type: "thinking", thinking, signature }));
const anyCall: fc.Arbitrary<Block> = fc
  .tuple(fc.nat(5), anyInput)
  .map(([id, input]) => ({ type: "tool_use", id: `toolu_${id}`, name: "Read", input }));
const anyResult: fc.Arbitrary<Block> = fc
  .tuple(fc.nat(5), fc.array(anyText, { maxLength: 2 }), fc.boolean())
  .map(([id, content, isError]) => ({ type: "tool_result", toolUseId: `toolu_${id}`, content, isError }));
const anyUser = fc
  .array(fc.oneof(anyText, anyImage, anyResult), { minLength: 1, maxLength: 4 })
  .map((content): Message => ({ role: "user", content }));
const anyAssistant = fc
  .array(fc.oneof(anyText, anyThinking, anyCall), { minLength: 1, maxLength: 4 })
  .map((content): Message => ({ role: "assistant", content }));

/** Whatever can be done to a session. A provider would not accept every history. */
export const anyHistory: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: enterSteps(fc.oneof(anyUser, anyAssistant)) },
    {
      weight: 2,
      arbitrary: fc.array(fc.oneof(anyText, anyResult), { maxLength: 3 }).map((blocks) => ({
        kind: "extend" as const,
        blocks,
      })),
    },
    { weight: 1, arbitrary: anyUser.map((summary) => ({ kind: "compact" as const, summary })) },
    { weight: 3, arbitrary: fc.constant({ kind: "ask" as const }) },
  ),
  { minLength: 1, maxLength: 16 },
);

function enterSteps(messages: fc.Arbitrary<Message>): fc.Arbitrary<Step> {
  return fc.tuple(messages, fc.boolean()).map(([message, open]) => ({ kind: "enter", message, open }));
}

export const perform = (live: Live, steps: readonly Step[]): void => {
  for (const step of steps) {
    if (step.kind === "enter") live.enter(step.message, { open: step.open });
    if (step.kind === "extend" && live.prefix.tip?.role === "user") live.extend(step.blocks);
    if (step.kind === "compact") live.compact(step.summary);
    if (step.kind === "ask" && live.prefix.messages > 0) {
      live.ask();
      live.answer();
    }
  }
};
