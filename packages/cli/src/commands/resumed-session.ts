/** A session that is opened again for its tasks alone: with the tools, servers, skills and rights that its next prompt
 *  would have.
 *  Invariant: what the user is told of engine, settings and servers is what `prefork -p --resume` tells.
 *  Elsewhere: prompts (print.ts), what is done with it (tasks-control.ts, merge-hand-back.ts). */

import { readSession } from "@prefork/runtime/observe";
import type { Io } from "../io.ts";
import {
  asUsage,
  chooseEngine,
  type EngineChoice,
  type EngineFlags,
  type OpenedSession,
  openSession,
  planSession,
  type SessionFlags,
  type SessionPlan,
  wantedOf,
} from "../print/index.ts";
import { storeFor } from "./tasks-store.ts";

export type Resuming = {
  readonly flags: SessionFlags & EngineFlags;
  /** Default: made of the flags. */
  readonly plan?: SessionPlan;
  /** Throws where this engine will not do. */
  readonly mustSuit?: (choice: EngineChoice) => void;
};

export const resumedFor = async (id: string, resuming: Resuming, io: Io): Promise<OpenedSession> => {
  const { flags, mustSuit } = resuming;
  try {
    const wanted = wantedOf(id, (await readSession(storeFor(io), id)).replayed);
    const choice = chooseEngine(flags, io.env, wanted.before);
    mustSuit?.(choice);
    const plan = resuming.plan ?? (await planSession(flags, io));
    const opened = await openSession({ plan, choice, wanted, model: flags.model }, io);
    for (const notice of opened.notices) io.err(`prefork: ${notice}\n`);
    return opened;
  } catch (error) {
    throw asUsage(error);
  }
};
