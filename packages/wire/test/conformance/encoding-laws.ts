/** What holds of every request's bytes, whatever its format: laws over conversations made by chance.
 *  Elsewhere: bytes by hand (the fixtures of each protocol), growing from a parent (protocol-suite.ts). */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type Block,
  bytesOf,
  FrozenPrefix,
  type Head,
  type Json,
  type Marker,
  type Message,
  type Protocol,
  prepare,
  type Segment,
  text,
  toolResult,
} from "../../src/index.ts";
import { anyCharacter } from "../any-character.ts";

export type EncodingSubject = {
  readonly protocol: Protocol;
  readonly head: Head;
  readonly anyContent: fc.Arbitrary<readonly Block[]>;
};

/** One exchange: what is asked, what is answered, and what the next message says beside the results. */
type Exchange = {
  readonly asked: readonly string[];
  readonly answer: readonly Block[];
  readonly result: string;
  /** Said in the message that has the results, after they were entered. */
  readonly added: readonly string[];
  readonly note: string;
};

const anyWords = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 12 });

const anyExchange = (anyContent: EncodingSubject["anyContent"]): fc.Arbitrary<Exchange> =>
  fc.record({
    asked: fc.array(anyWords, { minLength: 1, maxLength: 3 }),
    answer: anyContent,
    result: fc.string({ unit: anyCharacter, maxLength: 12 }),
    added: fc.array(anyWords, { maxLength: 2 }),
    note: fc.oneof(fc.constant(""), anyWords),
  });

/** Ways to grow, as a journal knows them. */
type Growth = { readonly message: Message } | { readonly blocks: readonly Block[] };

const growths = ({ asked, answer, result, added, note }: Exchange): readonly Growth[] => {
  const calls = answer.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
  const results = calls.map((id) => toolResult(id, result));
  return [
    { message: { role: "user", content: asked.map(text) } },
    { message: { role: "assistant", content: answer } },
    ...(results.length > 0 ? [{ message: { role: "user" as const, content: results } }] : []),
    ...(results.length > 0 && added.length > 0 ? [{ blocks: added.map(text) }] : []),
    ...(note === "" ? [] : [{ message: { role: "system" as const, content: [text(note)] } }]),
  ];
};

const grow = (prefix: FrozenPrefix, growth: Growth, sent?: readonly Buffer[]): FrozenPrefix =>
  "blocks" in growth ? prefix.extend(growth.blocks, sent) : prefix.appendOpen(growth.message, sent);

const segmentsOf = (prefix: FrozenPrefix): readonly Segment[] => {
  const segments: Segment[] = [];
  for (let at = prefix.tip; at; at = at.before) segments.unshift(at);
  return segments;
};

const plain = (prefix: FrozenPrefix) =>
  segmentsOf(prefix).map(({ before: _before, headEnd, ...segment }) => ({ ...segment, headEnd: headEnd?.index }));

const bodyOf = (protocol: Protocol, prefix: FrozenPrefix, markers: readonly Marker[] = []): Buffer =>
  bytesOf(prepare({ protocol, prefix, markers, closing: { maxTokens: 64, stream: true } }));

const valueAt = (body: Json, path: string): Json | undefined => {
  const keys = [...path.matchAll(/\.?([^.[\]]+)|\[(\d+)\]/g)].map(([, name, index]) => name ?? Number(index));
  return keys.reduce<Json | undefined>((value, key) => (value as Record<string | number, Json>)?.[key], body);
};

export const encodingLaws = ({ protocol, head, anyContent }: EncodingSubject): void => {
  const { encoder, name } = protocol;
  const anyConversation = fc.array(anyExchange(anyContent), { minLength: 1, maxLength: 3 });
  const opened = FrozenPrefix.open(encoder, head);
  const grown = (conversation: readonly Exchange[]): FrozenPrefix =>
    conversation.flatMap(growths).reduce<FrozenPrefix>((prefix, growth) => grow(prefix, growth), opened);

  test(`${name}: a prefix rebuilt from what was sent is the same, byte for byte and path for path`, () => {
    fc.assert(
      fc.property(anyConversation, (conversation) => {
        let live = opened;
        let again = FrozenPrefix.reopen(encoder, head, Buffer.from(live.sentHead()));
        assert.deepEqual(plain(again), plain(live));
        for (const growth of conversation.flatMap(growths)) {
          const next = grow(live, growth);
          again = grow(again, growth, next.sentSince(live).map(Buffer.from));
          live = next;
          assert.deepEqual([again.close, again.pending], [live.close, live.pending]);
        }
        assert.deepEqual(plain(again), plain(live));
        assert.equal(Buffer.compare(bodyOf(protocol, again), bodyOf(protocol, live)), 0);
      }),
      { numRuns: 40, seed: 7 },
    );
  });

  test(`${name}: every segment is in the request's JSON where its path says`, () => {
    fc.assert(
      fc.property(anyConversation, (conversation) => {
        const prefix = grown(conversation);
        const body = JSON.parse(bodyOf(protocol, prefix).toString()) as Json;
        for (const segment of segmentsOf(prefix).slice(1)) {
          const json = prefix.segmentBytes(segment).subarray(segment.lead).toString();
          const path = encoder.pathOf(segment);
          assert.deepEqual(valueAt(body, path), JSON.parse(json), path);
        }
      }),
      { numRuns: 40, seed: 8 },
    );
  });

  test(`${name}: a marker changes nothing else, wherever it goes`, () => {
    fc.assert(
      fc.property(anyConversation, (conversation) => {
        const prefix = grown(conversation);
        const unmarked = bodyOf(protocol, prefix).toString();
        const spelled = protocol.marker("5m", head.model);
        for (const at of segmentsOf(prefix).filter(({ site }) => site)) {
          const marked = bodyOf(protocol, prefix, [{ at, role: "tail", ttl: "5m" }]).toString();
          assert.doesNotThrow(() => JSON.parse(marked));
          const before = prefix.segmentBytes(at).length - (at.site?.fromEnd ?? 0) + at.start;
          const bytes = Buffer.from(unmarked);
          const expected = `${bytes.toString("utf8", 0, before)}${spelled}${bytes.toString("utf8", before)}`;
          assert.equal(marked, expected);
        }
      }),
      { numRuns: 20, seed: 9 },
    );
  });
};
