/** A family in a full session: with guard, journals, events, tasks and notifications.
 *  Elsewhere: the same requests without any of that (raw.ts), or with less care (naive.ts). */

import { startPrompt } from "../conversation.ts";
import type { ForkClient } from "./client.ts";
import { had, keepParent, type ParentPlace } from "./parent.ts";

export const oursOf = async (place: ParentPlace): Promise<ForkClient> => {
  const goOn = await keepParent(place);
  return async (forks) => {
    const parent = await goOn();
    const { session } = parent;
    return {
      run: async () => {
        await had(session.prompt(startPrompt(forks)));
        const reported = session.tasks.filter(({ state }) => state.kind === "ended" && state.end === "reported");
        if (reported.length !== forks) throw new Error(`${reported.length} of ${forks} forks reported`);
      },
      [Symbol.asyncDispose]: () => parent[Symbol.asyncDispose](),
    };
  };
};
