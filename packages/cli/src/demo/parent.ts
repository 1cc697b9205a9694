/** The demo's parent: a conversation of about 50,000 tokens that ends with the turn that starts its forks.
 *  Invariant: it is really sent, turn by turn, and only grows by appending; the model's answers come from a script that
 *  sees only the request.
 *  Elsewhere: the forks (run.ts), the table (report.ts). */

import { callTools, lastUserText, type SimScript, say, textOfTokens } from "@prefork/simulator";
import {
  anthropic,
  type Client,
  FrozenPrefix,
  type Head,
  type Marker,
  type Message,
  nextMarkers,
  type Prepared,
  prepare,
  promptTokens,
  text,
  toolResult,
  userText,
} from "@prefork/wire";

const FILES_A_TURN = 3;
const READING_TURNS = 4;
const TOKENS_A_FILE = 3_750;

const tool = (
  name: string,
  description: string,
  properties: Readonly<Record<string, string>>,
): Head["tools"][number] => ({
  type: "function",
  name,
  description,
  inputSchema: {
    type: "object",
    properties: Object.fromEntries(Object.entries(properties).map(([key, type]) => [key, { type }])),
    required: Object.keys(properties),
  },
});

const headOf = (model: string): Head => ({
  model,
  tools: [
    tool("Read", "Reads a file of the project.", { path: "string" }),
    tool("Agent", "Starts a fork that works on one part of the job.", { description: "string", prompt: "string" }),
  ],
  system: [text(`You are the parent of the demo. ${textOfTokens(3_900, 1)}`)],
  settings: {},
});

const assistantTurns = (messages: unknown): number =>
  Array.isArray(messages) ? messages.filter((message) => message.role === "assistant").length : 0;

const partsAsked = (body: unknown): number => Number(/into (\d+) parts/.exec(JSON.stringify(body))?.[1] ?? 1);

const directiveFor = (part: number): string => `Migrate part ${part} of the project and report what you changed.`;

/** The simulated model's answer, from the request alone: it reads files, then starts the forks; a fork reports. */
export const demoScript: SimScript = (request) => {
  const asked = lastUserText(request);
  const directive = /fork-directive: (.*)/.exec(asked)?.[1];
  if (directive) return say(`Scope: ${directive}\nResult: done; two call sites changed.\nKey files: src/part.ts`);
  const turn = assistantTurns(request.body.messages);
  if (turn < READING_TURNS) {
    const files = Array.from({ length: FILES_A_TURN }, (_, index) => `src/file-${turn * FILES_A_TURN + index + 1}.ts`);
    return callTools(files.map((path) => ({ name: "Read", input: { path } })));
  }
  if (turn > READING_TURNS) return say("The forks are running; I will continue when their reports arrive.");
  const parts = Array.from({ length: partsAsked(request.body.messages) }, (_, index) => index + 1);
  return callTools(
    parts.map((part) => ({ name: "Agent", input: { description: `part ${part}`, prompt: directiveFor(part) } })),
    "I have read what I need and split the work.",
  );
};

export type ParentTurn = {
  /** The parent's last request, and the answer in which it calls the forks. */
  readonly sent: Prepared;
  readonly inFlight: Message;
  readonly answerId: string;
  /** The request's length as the provider counted it. */
  readonly tokens: number;
  readonly directives: readonly string[];
};

export type ParentOptions = {
  readonly client: Client;
  readonly model: string;
  readonly forks: number;
  readonly signal: AbortSignal;
  readonly onTurn: (turn: number, of: number) => void;
};

/** Runs the parent until it calls Agent. */
export const runParent = async ({ client, model, forks, signal, onTurn }: ParentOptions): Promise<ParentTurn> => {
  let prefix = FrozenPrefix.open(anthropic.encoder, headOf(model)).append(
    userText(`Read the project, then split the migration into ${forks} parts, one fork each.`),
  );
  let markers: readonly Marker[] = [];
  for (let turn = 1; ; turn += 1) {
    onTurn(turn, READING_TURNS + 1);
    markers = nextMarkers(prefix, markers);
    const sent = prepare({ protocol: anthropic, prefix, markers, closing: { maxTokens: 8_000, stream: true } });
    const { id: answerId, message, usage } = await client.send(sent, signal);
    const calls = message.content.filter((block) => block.type === "tool_use");
    if (calls.every(({ name }) => name === "Agent")) {
      const directives = calls.map(({ input }) => JSON.parse(input).prompt as string);
      return { sent, inFlight: message, answerId, tokens: promptTokens(usage), directives };
    }
    const results = calls.map(({ id }, index) => toolResult(id, textOfTokens(TOKENS_A_FILE, turn * 10 + index)));
    prefix = prefix.append(message).append({ role: "user", content: results });
  }
};
