/** A conversation of a coding agent, as long as asked, and what grows from it.
 *  Invariant: the same length gives the same bytes. Four bytes of content count as a token, the JSON around it
 *  is free (the simulator's rule), and all text is ASCII, where `JSON.stringify` is fastest.
 *  Elsewhere: who sends it (clients.ts), what building costs (turns.ts, forks.ts). */

import {
  anthropic,
  DEFAULT_MODEL,
  FrozenPrefix,
  type Head,
  type Message,
  nextMarkers,
  type Prepared,
  prepare,
  text,
  toolResult,
  userText,
} from "@prefork/wire";

const BYTES_PER_TOKEN = 4;

export const lengthText = (tokens: number): string =>
  tokens < 1_000_000 ? `${tokens / 1_000}K` : `${tokens / 1_000_000}M`;

/** Source-like text with quotes, tabs and line breaks, because escaping these is what makes encoding expensive. */
const LINES = [
  'import { readFile } from "node:fs/promises";\n',
  "export const total = (rows: readonly Row[]): number => rows.reduce((sum, { value }) => sum + value, 0);\n",
  '\tif (entry === undefined) throw new Error("no entry for " + key);\n',
  "\treturn entries.filter(({ expires }) => expires > now).map(({ name }) => name);\n",
  "src/store/index.ts:142:17 - error TS2345: Argument of type 'string' is not assignable to 'Key'.\n",
  "    at Store.open (/repo/src/store/index.ts:88:11)\n",
  '\t\tlogger.warn({ path, size }, "file is larger than the limit; reading the first part only");\n',
  "The cache is filled lazily, so the first read after a restart is slow; later reads stay in memory.\n",
] as const;

/** The same seed gives the same text. */
export const textOf = (tokens: number, seed: number): string => {
  const size = tokens * BYTES_PER_TOKEN;
  const lines: string[] = [];
  let state = (Math.imul(seed + 1, 2_654_435_761) ^ 0x5bd1e995) >>> 0;
  for (let length = 0; length < size; length += lines.at(-1)?.length ?? size) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    lines.push(`${state >>> 20}: ${LINES[state >>> 29]}`);
  }
  return lines.join("").slice(0, size);
};

const NAMES = ["Read", "Grep", "Glob", "Bash", "Edit", "Write", "Agent", "Todo", "Fetch", "Search", "Notes", "Ask"];

const head: Head = {
  model: DEFAULT_MODEL,
  settings: {},
  system: [text(textOf(600, 1)), text(textOf(1_400, 2))],
  tools: NAMES.map((name, index) => ({
    type: "function",
    name,
    description: textOf(150, 10 + index),
    inputSchema: {
      type: "object",
      properties: { path: { type: "string", description: textOf(20, 30 + index) }, limit: { type: "integer" } },
      required: ["path"],
    },
  })),
};

/** Lengths of tool results in tokens, in turn: short listings, a file, a long log. */
const RESULTS = [200, 900, 350, 2_500, 600, 1_500, 250, 3_000] as const;
/** Tokens of the model's text before a call, and of that text with the call. */
const WORDS = 60;
const CALL_TOKENS = WORDS + 12;

const call = (number: number, name: string): Message["content"][number] => ({
  type: "tool_use",
  id: `toolu_${String(number).padStart(8, "0")}`,
  name,
  input: `{"path":"src/module-${number}/index.ts","limit":${100 + (number % 900)}}`,
});

const resultOf = (number: number, tokens: number): Message["content"][number] =>
  toolResult(`toolu_${String(number).padStart(8, "0")}`, textOf(tokens, number));

/** Two calls and their results, about 1,500 tokens: the same size every time. */
export const fixedTurn = (number: number): readonly Message[] => [
  {
    role: "assistant",
    content: [text(textOf(120, number)), call(2 * number, "Read"), call(2 * number + 1, "Grep")],
  },
  { role: "user", content: [resultOf(2 * number, 900), resultOf(2 * number + 1, 400)] },
];

export type History = { readonly messages: readonly Message[]; readonly build: () => FrozenPrefix };

/** A conversation whose prompt, including tools and system, has `tokens` tokens (within about a hundred). */
export const historyOf = (tokens: number): History => {
  const opened = FrozenPrefix.open(anthropic.encoder, head);
  const question = 150;
  const messages: Message[] = [userText(textOf(question, 3))];
  let left = tokens - question - Math.round(opened.byteLength / BYTES_PER_TOKEN);
  for (let number = 1_000_000; left > CALL_TOKENS; number += 1) {
    const size = Math.min(RESULTS[number % RESULTS.length] ?? 0, left - CALL_TOKENS + 1);
    messages.push(
      { role: "assistant", content: [text(textOf(WORDS, number)), call(number, NAMES[number % 4] ?? "Read")] },
      { role: "user", content: [resultOf(number, size)] },
    );
    left -= CALL_TOKENS + size;
  }
  return {
    messages,
    build: () => messages.reduce((grown, next) => grown.append(next), FrozenPrefix.open(anthropic.encoder, head)),
  };
};

/** The last request of a parent that has used `tokens` of its window. */
export const parentOf = (tokens: number): Prepared => {
  const prefix = historyOf(tokens).build();
  return prepare({
    protocol: anthropic,
    prefix,
    markers: nextMarkers(prefix),
    closing: { maxTokens: 8_192, stream: true },
  });
};

/** The parent's turn that starts the forks. */
export const inFlight: Message = {
  role: "assistant",
  content: [text(textOf(150, 4)), ...[1, 2, 3].map((number) => call(number, "Agent"))],
};

const DIRECTIVE = textOf(100, 5);

/** About 100 tokens, different for each fork. */
export const directiveOf = (number: number): string => `Part ${String(number).padStart(6, "0")}. ${DIRECTIVE}`;
