/** Hand-written bodies, really sent: the simulator is tested without the package's own encoder. */

import { type LedgerRow, type Simulator, textOfTokens } from "@prefork/simulator";

export type Body = Readonly<Record<string, unknown>>;

export type SendOptions = {
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};

export const post = (sim: Simulator, body: Body | string, options: SendOptions = {}): Promise<Response> =>
  fetch(`${sim.url}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": options.key ?? "key-a", ...options.headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(options.signal ? { signal: options.signal } : {}),
  });

/** Sends, reads the answer to its end, and gives the ledger's row. */
export const row = async (sim: Simulator, body: Body | string, options: SendOptions = {}): Promise<LedgerRow> => {
  const response = await post(sim, body, options);
  const answer = await response.text();
  const last = sim.ledger().at(-1);
  if (last === undefined) throw new Error(`no row; ${response.status} ${answer}`);
  if (response.status !== 200) throw new Error(`refused: ${answer}`);
  return last;
};

/** [read, 5m written, 1h written, plain] */
export const parts = (of: LedgerRow): readonly [number, number, number, number] => [
  of.read,
  of.written["5m"],
  of.written["1h"],
  of.plain,
];

export const refusal = async (sim: Simulator, body: Body | string, options: SendOptions = {}): Promise<string> => {
  const response = await post(sim, body, options);
  const answer = (await response.json()) as { error?: { type: string; message: string }; request_id?: string };
  return `${response.status} ${answer.error?.type}: ${answer.error?.message}`;
};

export const marked = { cache_control: { type: "ephemeral" } } as const;
export const marked1h = { cache_control: { type: "ephemeral", ttl: "1h" } } as const;

export const textBlock = (tokens: number, seed = 0, marker: object = {}): Body => ({
  type: "text",
  text: textOfTokens(tokens, seed),
  ...marker,
});

export const model = "claude-sonnet-5";

export const request = (changes: Body): Body => ({ model, max_tokens: 64, ...changes });
