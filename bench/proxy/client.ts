/** Requests of an agent on a kept-alive connection, and how long their answers take.
 *  Invariant: bodies are ready before they are timed; every answer is read to its end, and anything that is not an answer is
 *  an error. */

import { Agent, request } from "node:http";

export type Timing = {
  /** From the first byte sent to the first byte of the answer, and to its last. */
  readonly firstMs: number;
  readonly wholeMs: number;
};

export type Client = Disposable & { readonly send: (body: Buffer) => Promise<Timing> };

export const openClient = (url: string, connections = 1): Client => {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const { hostname, port } = new URL(url);
  const send = (body: Buffer): Promise<Timing> =>
    new Promise((resolve, reject) => {
      const started = performance.now();
      let firstMs = 0;
      const headers = { "content-type": "application/json", "content-length": body.length, "x-api-key": "any" };
      const outgoing = request({ hostname, port, method: "POST", path: "/v1/messages", headers, agent }, (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`the answer has status ${answer.statusCode}`));
        answer.on("data", () => {
          if (firstMs === 0) firstMs = performance.now() - started;
        });
        answer.on("end", () => resolve({ firstMs, wholeMs: performance.now() - started }));
        answer.on("error", reject);
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  return { send, [Symbol.dispose]: () => agent.destroy() };
};

const marker = { cache_control: { type: "ephemeral" } };
const words = (letters: number, seed: number): string => `${seed} word `.repeat(letters / 8).slice(0, letters);

/** The body of one turn of an agent, with about this many bytes. */
export const turnOf = (agent: number, turn: number, bytes: number): Buffer => {
  const half = Math.floor(bytes / 2);
  const steps = Array.from({ length: turn }, (_, index) => [
    {
      role: "assistant",
      content: [{ type: "tool_use", id: `t${agent}-${index}`, name: "Read", input: { path: words(40, index) } }],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: `t${agent}-${index}`,
          content: words(Math.floor(half / Math.max(1, turn)), index),
        },
      ],
    },
  ]).flat();
  return Buffer.from(
    JSON.stringify({
      model: "claude-sonnet-5",
      max_tokens: 1_000,
      stream: true,
      tools: [{ name: "Read", input_schema: { type: "object", properties: { path: { type: "string" } } } }],
      system: [{ type: "text", text: words(half, 1), ...marker }],
      messages: [{ role: "user", content: [{ type: "text", text: `Agent ${agent}.` }] }, ...steps],
    }),
  );
};
