/** How is a Messages request read, and what is remembered of it?
 *  Invariant: what is kept while answering does not refer to the body.
 *  Elsewhere: which bodies are refused (validate*.ts), the prompt (prompt.ts), the answer (encode-answer.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { dotted, objectOf, type ReadBlock } from "../../body.ts";
import { invalid } from "../../errors.ts";
import type { ReadPrompt } from "../../prompt/index.ts";
import type { ModelRules } from "../../rules/index.ts";
import { type ReadRequest, type Received, type Refused, refused, type WireSession } from "../../wire.ts";
import { BINDING_BETA, checkThinking, type DroppedThinking, IssuedThinking, signerFor } from "./bound-thinking.ts";
import { Diagnoses } from "./diagnose.ts";
import { answerEncoder } from "./encode-answer.ts";
import { cachingOf, checkLifetimes, promptOf } from "./prompt.ts";
import { checkRequest } from "./validate.ts";

const encodableBlocks = new Set([
  "text",
  "thinking",
  "redacted_thinking",
  "tool_use",
  "server_tool_use",
  "*_tool_result",
]);

export class MessagesSession implements WireSession {
  readonly #diagnoses = new Diagnoses();
  readonly #issued = new IssuedThinking();

  read(received: Received, rules: ModelRules): ReadRequest | Refused {
    const { body, ordered } = received.parsed;
    const judged = checkAndRead(received, rules, "message");
    if (!judged.ok) return judged;
    const missingThinking = this.#issued.check(body, rules.cache.earlierThinking);
    if (missingThinking !== undefined) return refused(invalid(missingThinking));
    const caching = cachingOf(ordered, rules.cache);
    const lifetime = checkLifetimes(judged.prompt, caching, rules.cache);
    if (lifetime !== undefined) return refused(invalid(lifetime));
    const baseline = objectOf(body.diagnostics).previous_message_id;
    const [diagnoses, issued] = [this.#diagnoses, this.#issued];
    return {
      ok: true,
      prompt: judged.prompt,
      body,
      prewarm: body.max_tokens === 0,
      caching,
      fast: body.speed === "fast",
      usOnly: body.inference_geo === "us",
      ids: { message: "msg", call: "toolu" },
      sign: lateSigner(ordered, rules.accepts.boundThinking),
      encodableBlocks,
      encoder: answerEncoder({
        transformations: betasOf(received).includes(BINDING_BETA) ? judged.dropped.map(reported) : undefined,
        speed: body.speed ?? "standard",
      }),
      blocksOf: ({ content }) => content.map((block): ReadBlock => ({ block, path: "" })),
      diagnose: (looked) => diagnoses.diagnose(baseline, looked),
      onBegin: (started) => {
        issued.remember(started.message.content);
        diagnoses.remember(started);
      },
    };
  }

  readPrompt(received: Received, rules: ModelRules): { readonly ok: true; readonly prompt: ReadPrompt } | Refused {
    return checkAndRead(received, rules, "count");
  }
}

/** Signing needs the conversation, so it is done only for answers that think, before their first event. */
const lateSigner = (body: JsonObject, bound: boolean) => (thinking: string) => signerFor(body, bound)(thinking);

const betasOf = ({ headers }: Received): readonly string[] =>
  (headers["anthropic-beta"] ?? "")
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => beta !== "");

type CheckedRequest = {
  readonly ok: true;
  readonly prompt: ReadPrompt;
  readonly dropped: readonly DroppedThinking[];
};

/** The prompt that the model would see, or one line that says why the request is refused. */
const checkAndRead = (received: Received, rules: ModelRules, target: "message" | "count"): CheckedRequest | Refused => {
  const { body, ordered } = received.parsed;
  const betas = betasOf(received);
  const complaint = checkRequest(body, { accepts: rules.accepts, betas, target });
  if (complaint !== undefined) return refused(invalid(complaint));
  const dropped = checkThinking(ordered, rules.accepts.boundThinking);
  if (typeof dropped === "string") return refused(invalid(dropped));
  const paths = new Set(dropped.map(({ path }) => path));
  return { ok: true, prompt: promptOf(ordered, { betas, rules: rules.cache, dropped: paths }), dropped };
};

const reported = ({ path, reason }: DroppedThinking): Json => ({
  type: "thinking_dropped",
  path: dotted(path),
  reason,
});
