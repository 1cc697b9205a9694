/** Keeps the parent's cache entry alive while its children work and it waits.
 *  Nothing is sent that costs more than the loss it prevents, nothing while nobody needs the entry, and nothing that
 *  the provider would refuse. The cost is in the journal and in the account.
 *  Elsewhere: the arithmetic (@prefork/wire), who waits (../session). */

import { setTimeout } from "node:timers/promises";
import {
  type Client,
  costOf,
  decideKeepAlive,
  InputError,
  ModelError,
  modelFacts,
  noUsage,
  prepare,
  promptTokens,
  serviceOf,
  type Ttl,
} from "@prefork/wire";
import { type Account, fitRequest, reportRetry } from "../agent/index.ts";
import type { EventBody } from "../events.ts";
import { type Journal, JournalError } from "../journal/index.ts";
import type { Clock, Spent } from "../ports.ts";
import type { CacheSafeParams } from "./snapshot.ts";

export type KeepAliveOptions = {
  readonly clock: Clock;
  readonly client: () => Client;
  readonly journal: Pick<Journal, "append">;
  readonly ttl: Ttl;
  readonly snapshot: () => CacheSafeParams | undefined;
  readonly account: () => Account;
  /** Is a task running whose end the parent waits for? */
  readonly isNeeded: () => boolean;
  readonly emit: (event: EventBody) => void;
};

export class KeepAlive {
  readonly #options: KeepAliveOptions;

  constructor(options: KeepAliveOptions) {
    this.#options = options;
  }

  /** Until `signal` says that the parent continues. */
  async keepWarm(signal: AbortSignal): Promise<void> {
    const { clock, ttl, snapshot, isNeeded } = this.#options;
    let sent = 0;
    let usedAt = snapshot()?.askedAt ?? 0;
    while (!signal.aborted && isNeeded()) {
      const params = snapshot();
      if (!params?.lastSent || params.measured === undefined) return;
      const decision = decideKeepAlive({
        tokens: params.measured.tokens,
        ttl,
        facts: modelFacts(params.head.model),
        sent,
        ageMs: Math.max(0, clock.now() - usedAt),
        ...refusal(params),
      });
      if (decision.action === "stop") return;
      if (decision.action === "wait") {
        await (clock.sleep ?? pause)(decision.waitMs, signal);
        continue;
      }
      if (!(await this.#send(params, { reason: decision.reason, signal }))) return;
      sent += 1;
      usedAt = clock.now();
    }
  }

  /** False: it did not help, and another one would not either. */
  async #send(params: CacheSafeParams, { reason, signal }: Sending): Promise<boolean> {
    const { client, journal, account, emit, clock } = this.#options;
    const { protocol, lastSent, markers, measured, head } = params;
    if (!lastSent) return false;
    const facts = modelFacts(head.model);
    const ttls = markers.map(({ ttl }) => ttl);
    const { speed } = head.settings;
    const fitted = fitRequest(account(), { promptTokens: measured?.tokens ?? 0, maxTokens: 0, facts, ttls, speed });
    if (!fitted.ok) return false;
    let used: Spent = { usage: noUsage, usd: 0 };
    const startedAt = clock.now();
    try {
      const closing = { maxTokens: 0, stream: false };
      const prepared = prepare({
        protocol,
        prefix: lastSent,
        markers: markers.filter(({ at }) => lastSent.segmentAt(at.index) === at),
        closing,
      });
      const { id, model, stop, usage } = await client().send(prepared, signal, {
        onRetry: reportRetry(emit),
        mayRetry: () => false,
        ...(measured ? { promptTokens: measured.tokens } : {}),
      });
      const cost = costOf(usage, facts, serviceOf(head.settings, startedAt))?.total;
      used = { usage, usd: cost ?? 0 };
      const usd = cost === undefined ? {} : { usd: cost };
      journal.append({ kind: "response", turn: 0, id, model, stop, usage, ms: clock.now() - startedAt, ...usd });
      emit({ type: "keep_alive_sent", read: usage.read, reason, ...usd });
      return usage.read * 2 > promptTokens(usage);
    } catch (error) {
      if (error instanceof JournalError) emit({ type: "journal_troubled", problem: error.message });
      else if (!(error instanceof ModelError || error instanceof InputError)) throw error;
      return false;
    } finally {
      account().settle(fitted.reserved, used);
    }
  }
}

type Sending = { readonly reason: string; readonly signal: AbortSignal };

/** Why the provider would refuse `max_tokens: 0`, if it would. */
const refusal = ({ protocol, head: { settings } }: CacheSafeParams): { readonly refused?: string } => {
  if (!protocol.emptyAnswers) return { refused: "the provider takes no request without an answer" };
  if (settings.thinking?.type === "enabled")
    return { refused: "the provider takes no empty answer with a thinking budget" };
  if (settings.outputFormat) return { refused: "the provider takes no empty answer with an output format" };
  const { toolChoice } = settings;
  if (toolChoice && (toolChoice.type === "any" || toolChoice.type === "tool"))
    return { refused: "the provider takes no empty answer where a tool is forced" };
  return {};
};

/** Resolves after this time, or when the signal aborts. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  setTimeout(ms, undefined, { signal }).catch(() => undefined);
