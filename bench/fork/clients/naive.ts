/** A family as most programs would write it: each fork gets a copy of the messages, the body is built from the object, and
 *  `fetch` sends it.
 *  Invariant: it sends the bytes that ours sends (families.ts checks it).
 *  Elsewhere: with everything built beforehand (raw.ts), with a session around it (ours.ts). */

import { readFile } from "node:fs/promises";
import { anthropic, directiveText } from "@prefork/wire";
import { directiveOf } from "../../wire/history.ts";
import { KEY } from "../conversation.ts";
import { type ForkClient, keptRequests, numbers } from "./client.ts";

type Body = { readonly messages: readonly { readonly content: readonly { readonly text?: string }[] }[] };

export const naiveOf = (baseUrl: string, folder: string): ForkClient => {
  const headers = { ...anthropic.headers({ kind: "api-key", value: KEY }, []) };
  const send = async (body: Body): Promise<void> => {
    const response = await fetch(baseUrl + anthropic.path, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok || response.body === null) throw new Error(`the provider answered ${response.status}`);
    for await (const _ of response.body);
  };
  return async (forks) => {
    const { parent, fork } = keptRequests(folder, forks);
    const [start, first] = await Promise.all([parent, fork].map(readBody));
    if (!start || !first) throw new Error("no requests were kept for this family");
    return {
      run: async () => {
        await send(start);
        await Promise.all(numbers(forks).map((number) => send(childOf(first, number))));
      },
      [Symbol.asyncDispose]: async () => undefined, // its connections stay open for the next family
    };
  };
};

const readBody = async (path: string): Promise<Body> => JSON.parse(await readFile(path, "utf8")) as Body;

const childOf = (first: Body, number: number): Body => {
  const messages = structuredClone(first.messages);
  const own = messages.at(-1)?.content.at(-1);
  if (own?.text === undefined) throw new Error("a fork's last block is its directive");
  return { ...first, messages: withLast(messages, { ...own, text: directiveText(directiveOf(number)) }) };
};

const withLast = (messages: Body["messages"], own: { readonly text: string }): Body["messages"] => {
  const last = messages.at(-1);
  if (!last) return messages;
  return [...messages.slice(0, -1), { ...last, content: [...last.content.slice(0, -1), own] }];
};
