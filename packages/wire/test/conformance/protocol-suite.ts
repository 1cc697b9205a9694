/** What every protocol must do, whatever its spelling: one suite, run by each protocol on fixtures given as data.
 *  Invariant: nothing here knows a provider; what a provider lacks is said in its fixtures, with the reason.
 *  Elsewhere: the fixtures (one file a protocol beside this), sending (../client.test.ts). */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type Block,
  bytesOf,
  type Closing,
  emptyFold,
  FrozenPrefix,
  fold,
  foldEvent,
  forkFamily,
  type Head,
  type Message,
  ModelError,
  type ModelErrorReason,
  type ModelEvent,
  type ModelResponse,
  nextMarkers,
  type Prepared,
  type Protocol,
  prepare,
  type StopReason,
  text,
  userText,
} from "../../src/index.ts";
import type { FailedResponse } from "../../src/protocols/index.ts";
import { frameReader } from "../../src/send/index.ts";
import { anyCharacter } from "../any-character.ts";
import { encodingLaws } from "./encoding-laws.ts";

type SentFrame = { readonly event: string; readonly data: string };

/** One answer, as it is streamed and in one piece, and what it must come out as. */
export type AnswerFixture = {
  readonly frames: readonly SentFrame[];
  readonly whole: string;
  readonly response: ModelResponse;
  /** The answer's blocks as they must stand in the next request, letter for letter. */
  readonly resent: string;
};

/** What a provider has no word for, and why. */
export type Absent = { readonly absent: string };

export type AnswerCase =
  | "text"
  | "parallel tool calls"
  | "thinking"
  | "redacted thinking"
  | "the provider's own blocks"
  | "citations"
  | "usage reported in parts"
  | "usage of several rounds"
  | "a refusal"
  | "a cache miss explained"
  | "a cache miss not explained yet"
  | "nothing at all";

export type EncodeFixture = {
  readonly head: Head;
  readonly messages: readonly Message[];
  readonly closing: Closing;
  readonly body: string;
};

export type FailureFixture = {
  readonly response: FailedResponse;
  readonly message: string;
  readonly reason: ModelErrorReason;
  readonly retryable: boolean;
  readonly requestId?: string;
};

export type Conformance = {
  readonly protocol: Protocol;
  readonly head: Head;
  readonly answers: Readonly<Record<AnswerCase, AnswerFixture | Absent>>;
  readonly stops: Readonly<Record<StopReason, (Pick<AnswerFixture, "frames" | "whole"> & Detail) | Absent>>;
  /** Streams that make no sense, each by what is wrong with it. */
  readonly malformed: Readonly<Record<string, readonly SentFrame[]>>;
  readonly malformedWhole: Readonly<Record<string, string>>;
  readonly encoded: Readonly<Record<string, EncodeFixture>>;
  /** Names of the fields that are in no cache key, all of them set by `closing`. */
  readonly outsideKey: { readonly closing: Closing; readonly fields: readonly string[] };
  readonly failures: Readonly<Record<string, FailureFixture>>;
  readonly headers: Readonly<Record<string, HeadersFixture>>;
  /** A provider's answer made of a message: in one piece, and streamed with its texts cut after every `cut` letters. */
  readonly spell: {
    readonly whole: (message: Message) => string;
    readonly frames: (message: Message, cut: number) => readonly SentFrame[];
  };
  /** What this provider can answer with. */
  readonly anyContent: fc.Arbitrary<readonly Block[]>;
};

type Detail = { readonly detail?: string };

export type HeadersFixture = {
  readonly credential: Parameters<Protocol["headers"]>[0];
  readonly betas: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
};

export const conformanceSuite = (conformance: Conformance): void => {
  saysAbsent(conformance);
  readsAnswers(conformance);
  readsStops(conformance);
  readsHoweverCut(conformance);
  refusesNonsense(conformance);
  readsFailures(conformance);
  encodes(conformance);
  keepsWhatItRead(conformance);
  growsOnly(conformance);
  encodingLaws(conformance);
};

// --- reading ---------------------------------------------------------------------------------------------------------

const streamed = ({ initial, step, end }: Protocol, frames: readonly SentFrame[]): readonly ModelEvent[] => {
  let state = initial;
  const events = frames.flatMap((frame) => {
    const [next, told] = step(state, frame);
    state = next;
    return told;
  });
  return state.stopped ? events : [...events, ...(end(state, "closed")?.[1] ?? [])];
};

const responseOf = (events: readonly ModelEvent[]): ModelResponse => {
  const { response, complete } = fold(events);
  assert.ok(complete, "the answer did not come to its end");
  return response;
};

const present = <Fixture extends object>(cases: Readonly<Record<string, Fixture | Absent>>): [string, Fixture][] =>
  Object.entries(cases).filter((entry): entry is [string, Fixture] => !("absent" in entry[1]));

/** In one line a protocol: what it has no word for meets no promise, and is no failure either. */
const saysAbsent = ({ protocol, answers, stops }: Conformance): void => {
  const lacking = Object.entries({ ...answers, ...stops }).flatMap(([name, fixture]) =>
    "absent" in fixture ? [`${name} (${fixture.absent})`] : [],
  );
  if (lacking.length > 0)
    test(`${protocol.name}: content that the format cannot express`, { skip: lacking.join("; ") }, () => undefined);
};

const readsAnswers = ({ protocol, answers }: Conformance): void => {
  for (const [name, { frames, whole, response }] of present(answers)) {
    test(`${protocol.name}: ${name}, streamed and not streamed`, () => {
      assert.deepEqual(responseOf(streamed(protocol, frames)), response);
      assert.deepEqual(responseOf(protocol.whole(whole)), response);
    });
    test(`${protocol.name}: ${name} is shown while it arrives, block by block`, () => {
      for (const events of [streamed(protocol, frames), protocol.whole(whole)]) assertShown(events, response);
      assert.deepEqual(joined(streamed(protocol, frames)), joined(protocol.whole(whole)));
    });
    test(`${protocol.name}: ${name} is complete only with its last event`, () => {
      const events = streamed(protocol, frames);
      let folded = emptyFold;
      const told = events.map((event) => {
        folded = foldEvent(folded, event);
        return folded.complete;
      });
      assert.deepEqual(told, [...events.slice(1).map(() => false), true]);
    });
  }
};

/** The answer's start first, its end last, and every block opened, grown and closed under its own number. */
const assertShown = (events: readonly ModelEvent[], { id, model, message, stop }: ModelResponse): void => {
  const [first, last] = [events[0], events.at(-1)];
  assert.ok(first?.type === "response_started" && first.id === id && first.model === model);
  assert.ok(last?.type === "response_stopped" && last.stop === stop);
  const blocks = events.flatMap((event) => (event.type === "block_stopped" ? [event] : []));
  assert.deepEqual(
    blocks.map(({ index, block }) => [index, block]),
    message.content.map((block, index) => [index, block]),
  );
  const started = events.flatMap((event) => (event.type === "block_started" ? [event] : []));
  assert.deepEqual(
    started,
    message.content.map((block, index) => ({
      type: "block_started",
      index,
      kind: block.type,
      ...(block.type === "tool_use" ? { name: block.name } : {}),
    })),
  );
  const shown = joined(events);
  message.content.forEach((block, index) => {
    if (block.type === "text") assert.equal(shown.get(`text ${index}`) ?? "", block.text);
    if (block.type === "thinking") assert.equal(shown.get(`thinking ${index}`) ?? "", block.thinking);
    if (block.type === "tool_use") assert.equal(shown.get(`input ${index}`) ?? "{}", block.input);
  });
};

/** What each block showed of itself, pieces put together; the input of the provider's own calls is its own affair. */
const joined = (events: readonly ModelEvent[]): ReadonlyMap<string, string> => {
  const own = new Set(
    events.flatMap((event) => (event.type === "block_started" && event.kind === "provider" ? [event.index] : [])),
  );
  const shown = new Map<string, string>();
  const add = (key: string, piece: string): unknown => piece && shown.set(key, (shown.get(key) ?? "") + piece);
  for (const event of events) {
    if (event.type === "text_grew") add(`text ${event.index}`, event.text);
    if (event.type === "thinking_grew") add(`thinking ${event.index}`, event.text);
    // A call without arguments says "{}" or nothing.
    if (event.type === "input_grew" && !own.has(event.index) && event.json !== "{}")
      add(`input ${event.index}`, event.json);
  }
  return shown;
};

const readsStops = ({ protocol, stops }: Conformance): void => {
  test(`${protocol.name}: every stop reason, streamed and not streamed`, () => {
    for (const [stop, { frames, whole, detail }] of present(stops)) {
      for (const { stop: read, stopDetail } of [
        responseOf(streamed(protocol, frames)),
        responseOf(protocol.whole(whole)),
      ])
        assert.deepEqual({ stop: read, detail: stopDetail }, { stop, detail });
    }
  });
};

export const asStream = (frames: readonly SentFrame[]): Buffer =>
  Buffer.from(frames.map(({ event, data }) => `${eventLine(event)}data: ${data}\n\n`).join(""));

/** An event without a name is a "message". */
const eventLine = (event: string): string => (event === "message" ? "" : `event: ${event}\n`);

const readsHoweverCut = ({ protocol, answers }: Conformance): void => {
  const bytes = present(answers).map(([name, { frames }]) => ({ name, frames, stream: asStream(frames) }));
  const chunked = (chunks: readonly Buffer[]): readonly SentFrame[] => {
    const read = frameReader();
    return chunks.flatMap((chunk) => read(chunk));
  };
  test(`${protocol.name}: a stream cut in two at any byte gives the same frames`, () => {
    for (const { name, frames, stream } of bytes) {
      for (let at = 0; at <= stream.length; at += 1) {
        const read = chunked([stream.subarray(0, at), stream.subarray(at)]);
        if (!sameFrames(read, frames)) assert.deepEqual(read, frames, `${name}, cut at byte ${at}`);
      }
    }
  });
  test(`${protocol.name}: a stream that arrives byte by byte gives the same events`, () => {
    for (const { frames, stream } of bytes) {
      const read = chunked(Array.from(stream, (byte) => Buffer.of(byte)));
      assert.deepEqual(streamed(protocol, read), streamed(protocol, frames));
    }
  });
  test(`${protocol.name}: both kinds of line ends, comments and pings change nothing`, () => {
    for (const { frames, stream } of bytes) {
      const noisy = `: hello\n\n${stream.toString()}`.replaceAll("\n\n", "\n\n: ping\n\n").replaceAll("\n", "\r\n");
      assert.deepEqual(chunked([Buffer.from(noisy)]), frames);
    }
  });
};

/** deepEqual on every one of some thousand cuts would cost seconds. */
const sameFrames = (a: readonly SentFrame[], b: readonly SentFrame[]): boolean =>
  a.length === b.length && a.every(({ event, data }, index) => event === b[index]?.event && data === b[index]?.data);

const refusesNonsense = ({ protocol, malformed, malformedWhole }: Conformance): void => {
  const isMalformed = (error: unknown): boolean => {
    assert.ok(error instanceof ModelError);
    assert.deepEqual(error.reason, { kind: "malformed-response" });
    assert.match(error.message, /^the provider's answer makes no sense: [^\n]+$/);
    return true;
  };
  for (const [name, frames] of Object.entries(malformed))
    test(`${protocol.name}: a stream with ${name} is malformed`, () => {
      assert.throws(() => streamed(protocol, frames), isMalformed);
    });
  for (const [name, body] of Object.entries(malformedWhole))
    test(`${protocol.name}: an answer that is not streamed with ${name} is malformed`, () => {
      assert.throws(() => protocol.whole(body), isMalformed);
    });
};

const readsFailures = ({ protocol, failures, headers }: Conformance): void => {
  for (const [name, { response, message, reason, retryable, requestId }] of Object.entries(failures))
    test(`${protocol.name}: ${name}`, () => {
      const error = protocol.failure(response);
      assert.ok(error instanceof ModelError);
      assert.deepEqual(
        { message: error.message, reason: error.reason, retryable: error.retryable, requestId: error.requestId },
        { message, reason, retryable, requestId },
      );
    });
  for (const [name, fixture] of Object.entries(headers))
    test(`${protocol.name}: headers with ${name}`, () => {
      assert.deepEqual(protocol.headers(fixture.credential, fixture.betas), fixture.headers);
    });
};

// --- encoding --------------------------------------------------------------------------------------------------------

const opened = ({ protocol, head }: Conformance): FrozenPrefix => FrozenPrefix.open(protocol.encoder, head);

const unmarked = (protocol: Protocol, prefix: FrozenPrefix, closing: Closing): Prepared =>
  prepare({ protocol, prefix, markers: [], closing });

const encodes = ({ protocol, encoded, ...conformance }: Conformance): void => {
  for (const [name, { head, messages, closing, body }] of Object.entries(encoded))
    test(`${protocol.name}: encodes ${name}`, () => {
      const prefix = messages.reduce(
        (grown, message) => grown.append(message),
        FrozenPrefix.open(protocol.encoder, head),
      );
      const bytes = bytesOf(unmarked(protocol, prefix, closing)).toString();
      assert.equal(bytes, body);
      assert.doesNotThrow(() => JSON.parse(bytes));
    });
  const { outsideKey } = conformance;
  test(`${protocol.name}: fields outside the cache key come after the messages`, () => {
    const prefix = FrozenPrefix.open(protocol.encoder, conformance.head).append(userText("hello"));
    const body = bytesOf(unmarked(protocol, prefix, outsideKey.closing)).toString();
    const keys = Object.keys(JSON.parse(body) as object);
    assert.deepEqual(keys.slice(-outsideKey.fields.length), outsideKey.fields);
    const before = FrozenPrefix.open(protocol.encoder, conformance.head).append(userText("hello"));
    assert.ok(body.startsWith(Buffer.concat([...before.chunks()]).toString()), "they change nothing before them");
  });
};

const plainClosing: Closing = { maxTokens: 64, stream: true };

const keepsWhatItRead = (conformance: Conformance): void => {
  const { protocol, answers, spell, anyContent } = conformance;
  const asked = opened(conformance).append(userText("go on"));
  const own = (prefix: FrozenPrefix): string =>
    Buffer.concat([...prefix.chunks()]).toString("utf8", asked.byteLength, prefix.byteLength);
  for (const [name, { frames, whole, resent }] of present(answers)) {
    if (resent === "") continue;
    test(`${protocol.name}: ${name} is in the next request byte for byte`, () => {
      for (const events of [streamed(protocol, frames), protocol.whole(whole)]) {
        const next = asked.append(responseOf(events).message);
        assert.ok(own(next).endsWith(resent), `expected …${resent}\ngot ${own(next)}`);
        const body = bytesOf(unmarked(protocol, next, plainClosing));
        assert.ok(body.includes(resent));
        assert.doesNotThrow(() => JSON.parse(body.toString()));
      }
    });
  }
  test(`${protocol.name}: what was read, sent and read again is the same message with the same bytes`, () => {
    fc.assert(
      fc.property(anyContent, fc.integer({ min: 1, max: 9 }), (content, cut) => {
        const message: Message = { role: "assistant", content };
        const first = responseOf(protocol.whole(spell.whole(message))).message;
        const second = responseOf(streamed(protocol, spell.frames(message, cut))).message;
        assert.deepEqual(first, message);
        assert.deepEqual(second, message);
        assert.equal(asked.append(second).hash, asked.append(message).hash);
      }),
      { numRuns: 150, seed: 5 },
    );
  });
};

const growsOnly = (conformance: Conformance): void => {
  const { protocol, anyContent } = conformance;
  const start = opened(conformance).append(userText("begin"));
  const sent = (prefix: FrozenPrefix, closing: Closing = plainClosing): Prepared =>
    prepare({ protocol, prefix, markers: nextMarkers(prefix), closing });
  const upToLastMessage = (prepared: Prepared): Buffer =>
    bytesOf(prepared).subarray(0, prepared.byteLength - Buffer.byteLength(prepared.closing));
  const startsWith = (bytes: Buffer, beginning: Buffer): boolean =>
    Buffer.compare(bytes.subarray(0, beginning.length), beginning) === 0;

  test(`${protocol.name}: a child's body begins with its parent's up to the end of its last message`, () => {
    fc.assert(
      fc.property(anyContent, fc.string({ unit: anyCharacter }), (content, said) => {
        const inFlight: Message = { role: "assistant", content: [...content, text(`${said}.`)] };
        const parent = sent(start);
        const family = forkFamily(parent, ["one", "two"], { inFlight, parentNote: "launched" });
        for (const line of [...family.members, family.parentNext])
          assert.ok(line && startsWith(bytesOf(line), upToLastMessage(parent)));
      }),
      { numRuns: 60, seed: 6 },
    );
  });
  test(`${protocol.name}: a different closing changes no byte before it`, () => {
    const { closing } = conformance.outsideKey;
    assert.equal(Buffer.compare(upToLastMessage(sent(start)), upToLastMessage(sent(start, closing))), 0);
  });
};
