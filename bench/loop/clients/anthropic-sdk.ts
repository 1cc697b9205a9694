/** The conversation with the vendor's own SDK and a loop around it, as its documentation writes one.
 *  Invariant: cache markers are where ours are, at the end of the system prompt and at the last block.
 *  Elsewhere: the same with other libraries (ours.ts, ai-sdk.ts), who measures it (session-process.ts). */

import Anthropic from "@anthropic-ai/sdk";
import * as z from "zod";
import { type Converse, ECHO, KEY, MAX_TOKENS, MODEL, PROMPT, SYSTEM, TURNS } from "../conversation.ts";
import { type Keeping, openKeeping } from "../journal.ts";

const MARKER = { cache_control: { type: "ephemeral" } } as const;

const tools: Anthropic.Tool[] = [
  {
    name: ECHO.name,
    description: ECHO.description,
    input_schema: z.toJSONSchema(ECHO.input) as Anthropic.Tool.InputSchema,
  },
];

export const converse: Converse = (baseUrl, turnStarted) => converseKeeping(true)(baseUrl, turnStarted);

export const converseKeeping =
  (isKept: boolean): Converse =>
  async (baseUrl, turnStarted) => {
    const keeping = openKeeping(isKept);
    try {
      return await talk(baseUrl, { turnStarted, keeping });
    } finally {
      keeping.close();
    }
  };

type Talking = { readonly turnStarted: () => void; readonly keeping: Keeping };

const talk = async (baseUrl: string, { turnStarted, keeping }: Talking): ReturnType<Converse> => {
  const client = new Anthropic({ baseURL: baseUrl, apiKey: KEY });
  const history: UserOrAnswer[] = [{ role: "user", content: [{ type: "text", text: PROMPT }] }];
  keeping.add(history[0]);
  let shown = 0;
  for (let turn = 1; turn <= TURNS; turn += 1) {
    turnStarted();
    const stream = client.messages.stream({
      model: MODEL,
      max_tokens: MAX_TOKENS,
      system: [{ type: "text", text: SYSTEM, ...MARKER }],
      tools,
      messages: marked(history),
    });
    for await (const event of stream)
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") shown += event.delta.text.length;
    const message = await stream.finalMessage();
    const answer = { role: "assistant", content: message.content } as const;
    keeping.add(answer);
    await keeping.turnEnds();
    if (message.stop_reason !== "tool_use") return { shown, text: textOf(message) };
    const results = { role: "user", content: resultsOf(message) } as const;
    keeping.add(results);
    history.push(answer, results);
  }
  throw new Error("the conversation did not end");
};

type UserOrAnswer =
  | { role: "user"; content: (Anthropic.TextBlockParam | Anthropic.ToolResultBlockParam)[] }
  | { role: "assistant"; content: Anthropic.ContentBlock[] };

/** A copy of the history with a marker at its end. A body may have only four markers, not one per turn. */
const marked = (history: readonly UserOrAnswer[]): Anthropic.MessageParam[] => {
  const last = history.at(-1);
  const block = last?.role === "user" ? last.content.at(-1) : undefined;
  if (last?.role !== "user" || block === undefined) throw new Error("a request ends with what the user says");
  return [...history.slice(0, -1), { role: "user", content: [...last.content.slice(0, -1), { ...block, ...MARKER }] }];
};

const resultsOf = (message: Anthropic.Message): Anthropic.ToolResultBlockParam[] =>
  message.content.flatMap((block) =>
    block.type === "tool_use"
      ? [{ type: "tool_result", tool_use_id: block.id, content: ECHO.run(ECHO.input.parse(block.input)) }]
      : [],
  );

const textOf = (message: Anthropic.Message): string =>
  message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");
