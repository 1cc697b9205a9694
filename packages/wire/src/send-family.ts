/** Sends a family: the leader, then all others, and the parent's next request with them.
 *  Invariant: one member's failure is its own outcome and never another's; every member has an outcome.
 *  Elsewhere: making the requests (fork-requests.ts), the order (launch-gate.ts), whether to wait (cost/). */

import type { LaunchDecision } from "./cost/index.ts";
import { ModelError } from "./errors.ts";
import type { Family } from "./fork-requests.ts";
import { LaunchGate, type LaunchOrder, launchOrder, type Ticket } from "./launch-gate.ts";
import type { Prepared } from "./prepare.ts";
import type { ModelEvent, ModelResponse } from "./response.ts";
import type { Client } from "./send/index.ts";

export type Outcome =
  | { readonly status: "answered"; readonly response: ModelResponse }
  | { readonly status: "failed"; readonly error: ModelError };

export type FamilyOutcome = {
  readonly launch: LaunchOrder & { readonly reason: string };
  readonly members: readonly Outcome[];
  readonly parentNext?: Outcome;
};

export type SendFamilyOptions = {
  /** Default: the cheaper one. */
  readonly launch?: LaunchOrder["launch"];
  readonly signal?: AbortSignal; // ends the whole family
  /** Called for every event of every member; "parent" is the parent's next request. */
  readonly onEvent?: (member: number | "parent", event: ModelEvent) => void;
};

export const sendFamily = async (
  client: Client,
  family: Family,
  options: SendFamilyOptions = {},
): Promise<FamilyOutcome> => {
  const launch = ordered(family.launch, options.launch);
  const [member] = family.members;
  const gate = new LaunchGate(member ? launchOrder(launch, member.protocol) : launch);
  const defect = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, defect.signal]) : defect.signal;
  const send = async (prepared: Prepared, member: number | "parent"): Promise<Outcome> => {
    try {
      return await sendMember(client, prepared, {
        gate,
        signal,
        onEvent: (event) => options.onEvent?.(member, event),
      });
    } catch (caught) {
      // Not a failed request but a bug, here or in `onEvent`: nothing may continue in the background unnoticed.
      defect.abort(caught);
      throw caught;
    }
  };
  // Admitted in this order, so the first child leads and the parent is released with the followers.
  const { parentNext: next } = family;
  const sent = [...family.members.map(send), ...(next ? [send(next, "parent")] : [])];
  await Promise.allSettled(sent);
  const outcomes = await Promise.all(sent);
  const parentNext = outcomes[family.members.length];
  return { launch, members: outcomes.slice(0, family.members.length), ...(parentNext ? { parentNext } : {}) };
};

const ordered = (decision: LaunchDecision, wanted: LaunchOrder["launch"] | undefined): FamilyOutcome["launch"] => {
  const { launch, waitCapMs, reason } = decision;
  if (wanted === undefined || wanted === launch) return { launch, waitCapMs, reason };
  return {
    launch: wanted,
    waitCapMs: waitCapMs || 60_000,
    reason: `${wanted}, as the caller asked (advice: ${reason})`,
  };
};

type Sending = {
  readonly gate: LaunchGate;
  readonly signal: AbortSignal | undefined;
  readonly onEvent: (event: ModelEvent) => void;
};

const sendMember = async (client: Client, prepared: Prepared, sending: Sending): Promise<Outcome> => {
  const { gate, signal, onEvent } = sending;
  let ticket: Ticket | undefined;
  try {
    ticket = await gate.admit(signal);
    const { readable } = prepared.protocol;
    if (readable === "at-once") ticket.readable();
    const response = await client.send(prepared, signal, {
      onEvent: (event) => {
        if (readable === "first-event") ticket?.readable();
        onEvent(event);
      },
    });
    ticket.readable();
    return { status: "answered", response };
  } catch (caught) {
    return { status: "failed", error: asModelError(caught, signal) };
  } finally {
    // After `readable` this has no effect; before it, the next member takes the lead.
    ticket?.failed();
  }
};

const asModelError = (caught: unknown, signal: AbortSignal | undefined): ModelError => {
  if (caught instanceof ModelError) return caught;
  if (signal?.aborted) return new ModelError("the family was aborted", { kind: "aborted" }, { cause: caught });
  throw caught;
};
