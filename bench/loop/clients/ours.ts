/** The conversation as a session of ours: journal, guard, events and all, with one tool.
 *  Elsewhere: the same with other libraries (ai-sdk.ts, anthropic-sdk.ts), who measures it (session-process.ts). */

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, createSession, defineTool } from "@prefork/runtime";
import { type Converse, ECHO, KEY, MAX_TOKENS, MODEL, PROMPT, TURNS } from "../conversation.ts";

const echo = defineTool({
  name: ECHO.name,
  description: ECHO.description,
  input: ECHO.input,
  readOnly: true,
  run: async (input) => ({ content: ECHO.run(input) }),
});

export const converse: Converse = async (baseUrl, turnStarted) => {
  const place = await mkdtemp(join(tmpdir(), "prefork-bench-"));
  const [cwd, home] = [join(place, "workspace"), join(place, "home")];
  await Promise.all([mkdir(cwd), mkdir(home)]);
  try {
    await using session = await createSession({
      engine: anthropicEngine({ baseUrl, credential: { kind: "api-key", value: KEY }, model: MODEL }),
      tools: [echo],
      permissions: { allow: [ECHO.name] },
      limits: { maxTurns: TURNS },
      maxTokens: MAX_TOKENS,
      compactAt: 1,
      state: join(place, "state"),
      ...{ cwd, home },
    });
    const exchange = session.prompt(PROMPT);
    let shown = 0;
    for await (const event of exchange) {
      if (event.type === "turn_started") turnStarted();
      else if (event.type === "text_grew") shown += event.text.length;
    }
    const { end, reason, text } = await exchange.result();
    if (end !== "done") throw new Error(`the session ended as ${end}: ${reason}`);
    return { shown, text };
  } finally {
    await rm(place, { recursive: true, force: true });
  }
};
