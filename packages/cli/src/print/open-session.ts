/** A session from flags and settings: the one way in which every command opens one.
 *  Invariant: what the user is told of engine, settings and servers is the same whoever opens it; a session that cannot be
 *  opened leaves no engine running.
 *  Elsewhere: what flags and settings say (session-flags.ts), which engine (engine-choice.ts), which session is gone on
 *  with (wanted-session.ts). */

import { type Ask, createSession, resumeSession, type Session, type SessionOptions } from "@prefork/runtime";
import { type Io, sessionEnvironment } from "../io.ts";
import { type EngineChoice, movedWords } from "./engine-choice.ts";
import { enginesOf, openEngine } from "./open-engine.ts";
import type { SessionPlan } from "./session-flags.ts";
import { asUsage, type WantedSession } from "./wanted-session.ts";

export type Opening = {
  readonly plan: SessionPlan;
  readonly choice: EngineChoice;
  readonly model?: string | undefined;
  /** Default: a new one. */
  readonly wanted?: WantedSession | undefined;
  /** Default: on, where permissions allow it. */
  readonly forks?: "off" | undefined;
  readonly ask?: Ask | undefined;
};

/** Disposing of it closes the session, then its engine. */
export type OpenedSession = AsyncDisposable & {
  readonly session: Session;
  /** What the user should know before it begins. */
  readonly notices: readonly string[];
};

export const openSession = async (opening: Opening, io: Io): Promise<OpenedSession> => {
  const { engine, ...rest } = await openEngine(opening.choice);
  try {
    const options = await optionsOf(opening, engine, io);
    const { wanted } = opening;
    const session = wanted ? await resumeSession(wanted.id, options) : await createSession(options);
    return {
      session,
      notices: noticesOf(opening),
      [Symbol.asyncDispose]: async () => {
        await session.close();
        await rest[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await rest[Symbol.asyncDispose]();
    throw asUsage(error);
  }
};

const optionsOf = async (
  { plan, model, forks, ask }: Opening,
  engine: SessionOptions["engine"],
  io: Io,
): Promise<SessionOptions> => {
  const { cwd, home, state, directories, policy, servers, skills, extensions, stated, limits } = plan;
  const { appendSystemPrompt } = plan;
  return {
    ...{ engine, engines: enginesOf(io.env), environment: await sessionEnvironment(io), querySource: "main" },
    ...{ cwd, home, state, directories, servers, skills, extensions, limits },
    permissions: { policy, stated, ...(ask ? { ask } : {}) },
    ...(model === undefined ? {} : { model }),
    ...(forks === undefined ? {} : { forks }),
    ...(appendSystemPrompt === undefined ? {} : { appendSystemPrompt }),
  };
};

const KEEPS_ITS_PROMPT =
  "--append-system-prompt is not used: a session that goes on keeps the system prompt it began with";

const noticesOf = ({ plan, choice, model, wanted }: Opening): readonly string[] => {
  const because = choice.kind === "rehearsal" ? choice.because : undefined;
  const moved = wanted?.before && movedWords(wanted.before, choice, model);
  const unused = wanted && plan.appendSystemPrompt !== undefined ? KEEPS_ITS_PROMPT : undefined;
  return [...plan.notices, because, moved, unused].filter((notice) => notice !== undefined);
};
