/** A session that is opened again for its tasks alone: with the tools, servers, skills and rights that its next prompt
 *  would have.
 *  Invariant: what the user is told of engine, settings and servers is what `prefork -p --resume` tells.
 *  Elsewhere: prompts (print.ts), what is done with it (tasks-control.ts, merge-hand-back.ts). */

import { readSession, resumeSession, type Session } from "@prefork/runtime";
import { type Io, sessionEnvironment } from "../io.ts";
import {
  asUsage,
  chooseEngine,
  type EngineChoice,
  type EngineFlags,
  enginesOf,
  movedWords,
  openEngine,
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

/** Disposing of it closes the session, then its engine. */
export type ResumedSession = AsyncDisposable & { readonly session: Session };

export const resumedFor = async (id: string, resuming: Resuming, io: Io): Promise<ResumedSession> => {
  const { flags, mustSuit } = resuming;
  try {
    const { before } = wantedOf(id, (await readSession(storeFor(io), id)).replayed);
    const choice = chooseEngine(flags, io.env, before);
    mustSuit?.(choice);
    const plan = resuming.plan ?? (await planSession(flags, io));
    const moved = before && movedWords(before, choice, flags.model);
    const because = choice.kind === "rehearsal" ? choice.because : undefined;
    for (const notice of [...plan.notices, because, moved]) if (notice !== undefined) io.err(`prefork: ${notice}\n`);
    return await opened(id, { choice, plan, flags }, io);
  } catch (error) {
    throw asUsage(error);
  }
};

type Opening = Pick<Resuming, "flags"> & { readonly choice: EngineChoice; readonly plan: SessionPlan };

const opened = async (id: string, { choice, plan, flags }: Opening, io: Io): Promise<ResumedSession> => {
  const { engine, ...rest } = await openEngine(choice);
  const { cwd, home, state, directories, policy, servers, skills, stated, limits } = plan;
  try {
    const session = await resumeSession(id, {
      ...{ engine, engines: enginesOf(io.env), environment: await sessionEnvironment(io), querySource: "main" },
      ...{ cwd, home, state, directories, servers, skills, limits },
      permissions: { policy, stated },
      ...(flags.model === undefined ? {} : { model: flags.model }),
    });
    return {
      session,
      [Symbol.asyncDispose]: async () => {
        await session.close();
        await rest[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await rest[Symbol.asyncDispose]();
    throw error;
  }
};
