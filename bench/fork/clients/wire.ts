/** A family as the wire package alone builds and sends it: no session, no journal, no tools.
 *  Invariant: it sends the bytes that the session sends (families.ts checks it), in the order that the economics choose.
 *  Elsewhere: with a session around it (ours.ts), with less (raw.ts). */

import { readFile } from "node:fs/promises";
import { anthropic, assemble, createClient, forkFamily, type Message, readRecorded, sendFamily } from "@prefork/wire";
import { directiveOf } from "../../wire/history.ts";
import { KEY } from "../conversation.ts";
import { type ForkClient, keptRequests, numbers } from "./client.ts";

export const wireOf = (baseUrl: string, folder: string): ForkClient => {
  const client = createClient({ baseUrl, credential: { kind: "api-key", value: KEY } });
  return async (forks) => {
    const { parent, fork } = keptRequests(folder, forks);
    const recorded = { protocol: anthropic, ...readRecorded(await readFile(parent)), stream: true };
    const inFlight = turnIn(await readFile(fork, "utf8"));
    const directives = numbers(forks).map(directiveOf);
    return {
      run: async () => {
        await client.send(assemble(recorded));
        const { members } = await sendFamily(client, forkFamily(recorded, directives, { inFlight }));
        const answered = members.filter(({ status }) => status === "answered").length;
        if (answered !== forks) throw new Error(`${answered} of ${forks} forks were answered`);
      },
      [Symbol.asyncDispose]: async () => undefined, // its connections stay open for the next family
    };
  };
};

type Kept = {
  readonly messages: readonly {
    readonly content: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  }[];
};

/** The parent's turn with its calls: everything before the last message of a fork. */
const turnIn = (fork: string): Message => {
  const { messages } = JSON.parse(fork) as Kept;
  const calls = messages.at(-2)?.content ?? [];
  return {
    role: "assistant",
    content: calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input: JSON.stringify(input) })),
  };
};
