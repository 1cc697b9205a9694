/** Where in a conversation may an entry end by itself, on OpenAI's formats?
 *  Invariant: at the end of a user's message, of a group of results, and of the opening instructions; nowhere else.
 *  Elsewhere: what is made of it (../../cache). */

import type { ReadBlock, ReadMessage } from "../../body.ts";
import { mergeTurns } from "../../neutral.ts";
import type { ReadPrompt } from "../../prompt/index.ts";

/** The opening instructions, and the turns after them with their ends. */
export const partTurns = (
  turns: readonly ReadMessage[],
  instructions: readonly ReadBlock[] = [],
): Pick<ReadPrompt, "system" | "messages"> => {
  const opening = turns.findIndex(({ role }) => role !== "system");
  const head = turns.slice(0, opening < 0 ? turns.length : opening);
  const rest = turns.slice(head.length);
  return {
    system: withEnding([...instructions, ...head.flatMap(({ blocks }) => blocks)]),
    messages: mergeTurns(
      rest.map((turn, index) =>
        isEnding(turn, rest[index + 1]) ? { ...turn, blocks: withEnding(turn.blocks) } : turn,
      ),
    ),
  };
};

const isEnding = (turn: ReadMessage, next: ReadMessage | undefined): boolean =>
  turn.role === "user" && !(isResult(turn) && next !== undefined && isResult(next));

const isResult = ({ blocks }: ReadMessage): boolean => blocks.at(-1)?.block.type === "tool_result";

const withEnding = (blocks: readonly ReadBlock[]): readonly ReadBlock[] =>
  blocks.map((read, index) => (index === blocks.length - 1 ? { ...read, ending: true } : read));

export const markersIn = ({ system, messages }: ReadPrompt): number =>
  [...system, ...messages.flatMap(({ blocks }) => blocks)].filter(({ marker }) => marker !== undefined).length;
