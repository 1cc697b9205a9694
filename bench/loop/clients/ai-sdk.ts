/** The conversation with the Vercel AI SDK: `streamText` and its own tool loop, as its documentation writes it.
 *  Invariant: cache markers are where ours are, at the end of the system prompt and at the last message.
 *  Elsewhere: the same with other libraries (ours.ts, anthropic-sdk.ts), who measures it (session-process.ts). */

import { createAnthropic } from "@ai-sdk/anthropic";
import { isStepCount, type ModelMessage, streamText, tool } from "ai";
import { type Converse, ECHO, KEY, MAX_TOKENS, MODEL, PROMPT, SYSTEM, TURNS } from "../conversation.ts";
import { type Keeping, openKeeping } from "../journal.ts";

const MARKER = { anthropic: { cacheControl: { type: "ephemeral" } } } as const;

export const converse: Converse = async (baseUrl, turnStarted) => {
  const keeping = openKeeping(true);
  try {
    return await talk(baseUrl, { turnStarted, keeping });
  } finally {
    keeping.close();
  }
};

type Talking = { readonly turnStarted: () => void; readonly keeping: Keeping };

const talk = async (baseUrl: string, { turnStarted, keeping }: Talking): ReturnType<Converse> => {
  keeping.add({ role: "user", content: PROMPT });
  let kept = 0;
  const anthropic = createAnthropic({ baseURL: `${baseUrl}/v1`, apiKey: KEY });
  const result = streamText({
    model: anthropic(MODEL),
    maxOutputTokens: MAX_TOKENS,
    instructions: { role: "system", content: SYSTEM, providerOptions: MARKER },
    messages: [{ role: "user", content: PROMPT }],
    tools: {
      [ECHO.name]: tool({
        description: ECHO.description,
        inputSchema: ECHO.input,
        execute: async (input) => ECHO.run(input),
      }),
    },
    stopWhen: isStepCount(TURNS),
    prepareStep: ({ messages }) => ({ messages: marked(messages) }),
    onStepFinish: async ({ response }) => {
      for (const message of response.messages.slice(kept)) keeping.add(message);
      kept = response.messages.length;
      await keeping.turnEnds();
    },
  });
  let shown = 0;
  for await (const part of result.stream) {
    if (part.type === "start-step") turnStarted();
    else if (part.type === "text-delta") shown += part.text.length;
    else if (part.type === "error") throw new Error("the AI SDK met an error", { cause: part.error });
  }
  return { shown, text: await result.text };
};

/** Each step's input is the base of the next one, so the previous step's marker is removed. */
const marked = (messages: readonly ModelMessage[]): ModelMessage[] =>
  messages.map((message, index) => {
    if (index === messages.length - 1) return { ...message, providerOptions: MARKER };
    if (message.providerOptions === undefined) return message;
    const { providerOptions: _, ...plain } = message;
    return plain;
  });
