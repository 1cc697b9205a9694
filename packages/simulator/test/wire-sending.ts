/** Hand-written bodies of every wire, really sent: rules are tested without the package's own encoders. */

import {
  type LedgerRow,
  ManualClock,
  type ProviderName,
  type Simulator,
  type SimulatorOptions,
  say,
  startSimulator,
  textOfTokens,
} from "@prefork/simulator";

export type Body = Readonly<Record<string, unknown>>;

export const paths = {
  messages: "/v1/messages",
  responses: "/v1/responses",
  chat: "/v1/chat/completions",
} as const;

export const geminiPath = (model: string, verb = "generateContent"): string => `/v1beta/models/${model}:${verb}`;

/** A provider that stands still until a test moves its clock, and says little. */
export const started = (provider: ProviderName, options: SimulatorOptions = {}): Promise<Simulator> =>
  startSimulator({ provider, clock: new ManualClock(), script: () => say("fine"), ...options });

export type Sent = { readonly path: string; readonly body: Body; readonly key?: string; readonly method?: string };

export const send = (sim: Simulator, { path, body, key = "key-a", method = "POST" }: Sent): Promise<Response> =>
  fetch(`${sim.url}${path}`, {
    method,
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    ...(method === "GET" ? {} : { body: JSON.stringify(body) }),
  });

/** Sends, reads the answer to its end, and gives the ledger's row. */
export const rowOf = async (sim: Simulator, sent: Sent): Promise<LedgerRow> => {
  const before = sim.ledger().length;
  const response = await send(sim, sent);
  const answer = await response.text();
  if (response.status !== 200) throw new Error(`refused: ${answer}`);
  const row = sim.ledger()[before];
  if (row === undefined) throw new Error(`no row; ${response.status} ${answer}`);
  return row;
};

export const refusalOf = async (sim: Simulator, sent: Sent): Promise<{ status: number; error: unknown }> => {
  const response = await send(sim, sent);
  const { error } = (await response.json()) as { error?: unknown };
  return { status: response.status, error };
};

/** Chat Completions; `given` may be a whole body or its messages. */
export const chat =
  (model: string) =>
  (messages: readonly Body[], more: Body = {}): Sent => ({
    path: paths.chat,
    body: { model, messages, ...more },
  });

export const responses =
  (model: string) =>
  (input: readonly Body[], more: Body = {}): Sent => ({
    path: paths.responses,
    body: { model, input, ...more },
  });

export const user = (tokens: number, seed = 0): Body => ({ role: "user", content: textOfTokens(tokens, seed) });
export const system = (tokens: number, seed = 1): Body => ({ role: "system", content: textOfTokens(tokens, seed) });
export const developer = (tokens: number, seed = 1): Body => ({
  role: "developer",
  content: textOfTokens(tokens, seed),
});
export const assistant = (tokens: number, seed = 2): Body => ({
  role: "assistant",
  content: textOfTokens(tokens, seed),
});

export type Figures = { readonly read: number; readonly written: number; readonly plain: number };

export const figures = ({ read, written, plain }: LedgerRow): Figures => ({
  read,
  written: Object.values(written).reduce((total, tokens) => total + tokens, 0),
  plain,
});
