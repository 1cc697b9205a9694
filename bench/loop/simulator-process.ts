/** The provider of this benchmark: the simulator in its own process, playing the model of the conversation.
 *  Invariant: every request is validated, priced and looked up in the cache as a provider would do it.
 *  Elsewhere: the conversation (conversation.ts), what is asked of the ledger (sessions.ts). */

import { callTools, type SimRequest, say, startSimulator } from "@prefork/simulator";
import { ECHO, echoOf, LAST_WORDS, TURNS, wordsOf } from "./conversation.ts";

export type SimulatorOrder = { readonly tell: true };
export type SimulatorReport =
  | { readonly type: "listening"; readonly url: string }
  /** What one session did since the last report. */
  | {
      readonly type: "session";
      readonly requests: number;
      readonly refused: readonly string[];
      readonly lastPrompt: number;
      readonly read: number;
      readonly prompts: number;
    };

const turnOf = ({ body }: SimRequest): number => {
  const messages = Array.isArray(body.messages) ? body.messages : [];
  return messages.filter((message) => isAssistant(message)).length + 1;
};

const isAssistant = (message: unknown): boolean =>
  typeof message === "object" && message !== null && "role" in message && message.role === "assistant";

const simulator = await startSimulator({
  script: (request) => {
    const turn = turnOf(request);
    if (turn >= TURNS) return say(LAST_WORDS);
    return callTools([{ name: ECHO.name, input: echoOf(turn) }], wordsOf(turn));
  },
});

const tell = (report: SimulatorReport): void => void process.send?.(report);

process.on("message", () => {
  const rows = simulator.ledger();
  simulator.reset();
  tell({
    type: "session",
    requests: rows.filter(({ outcome }) => outcome === "complete").length,
    refused: rows.flatMap(({ error }) => (error ? [error] : [])),
    lastPrompt: rows.at(-1)?.promptTokens ?? 0,
    read: rows.reduce((sum, { read }) => sum + read, 0),
    prompts: rows.reduce((sum, { promptTokens }) => sum + promptTokens, 0),
  });
});
process.on("disconnect", () => process.exit());
tell({ type: "listening", url: simulator.url });
