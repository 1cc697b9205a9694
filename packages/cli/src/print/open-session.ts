/** Opens a session from flags and settings; every command opens one this way.
 *  Invariant: notices about engine, settings and servers are the same for every command; if opening fails, no engine is
 *  left running; the built-in engine is loaded only when it is used.
 *  Elsewhere: who can attach to it (serve-session.ts), what flags and settings say (session-flags.ts), which engine (engine-choice.ts), which session to resume
 *  (resume-target.ts). */

import { randomUUID } from "node:crypto";
import {
  type Ask,
  anthropicEngine,
  createSession,
  type Engine,
  engineFor,
  resumeSession,
  type Session,
  type SessionOptions,
} from "@prefork/runtime";
import { REHEARSAL_SCHEME } from "@prefork/runtime/internal";
import { type Io, sessionEnvironment } from "../io.ts";
import { type EngineChoice, engineChangeNotice, otherChoices } from "./engine-choice.ts";
import { type ResumeTarget, toUsageError } from "./resume-target.ts";
import { type SessionServer, serveSession } from "./serve-session.ts";
import type { SessionPlan } from "./session-flags.ts";

export type OpenOptions = {
  readonly plan: SessionPlan;
  readonly choice: EngineChoice;
  readonly model?: string | undefined;
  /** Default: a new session. */
  readonly resume?: ResumeTarget | undefined;
  /** Default: on, if permissions allow it. */
  readonly forks?: "off" | undefined;
  /** Answers questions. `attached`: clients of the session do. Default: nobody. */
  readonly ask?: Ask | "attached" | undefined;
  /** Only clients in other processes can answer, so the session is not opened if none could attach. Default: false. */
  readonly needsClients?: boolean;
};

/** Disposing it closes the session, then its engine. */
export type OpenedSession = AsyncDisposable & {
  readonly session: Session;
  /** What the user should know before it starts. */
  readonly notices: readonly string[];
};

export const openSession = async (opening: OpenOptions, io: Io): Promise<OpenedSession> => {
  const { engine, ...rest } = await openEngine(opening.choice);
  try {
    const options = await sessionOptions(opening, engine, io);
    const { resume: wanted } = opening;
    const session = wanted ? await resumeSession(wanted.id, options) : await createSession(options);
    const server = await serving(session, opening, io);
    return {
      session,
      notices: noticesOf(opening),
      [Symbol.asyncDispose]: async () => {
        // Whatever fails, the rest is closed too: an engine that is left open keeps the process alive.
        try {
          await server?.stopAccepting();
          await session.close();
        } finally {
          try {
            await server?.[Symbol.asyncDispose]();
          } finally {
            await rest[Symbol.asyncDispose]();
          }
        }
      },
    };
  } catch (error) {
    await rest[Symbol.asyncDispose]();
    throw toUsageError(error);
  }
};

const serving = async (
  session: Session,
  { plan, needsClients = false }: OpenOptions,
  io: Io,
): Promise<SessionServer | undefined> => {
  if (!plan.attach) return undefined;
  try {
    return await serveSession(session, { plan, io, isNeeded: needsClients });
  } catch (error) {
    await session.close();
    throw error;
  }
};

const sessionOptions = async (
  { plan, model, forks, ask }: OpenOptions,
  engine: SessionOptions["engine"],
  io: Io,
): Promise<SessionOptions> => {
  const { cwd, home, state, directories, policy, servers, skills, extensions, stated, limits } = plan;
  const { appendSystemPrompt } = plan;
  return {
    ...{ engine, engines: otherEngines(io.env), environment: await sessionEnvironment(io), querySource: "main" },
    ...{ cwd, home, state, directories, servers, skills, extensions, limits },
    permissions: { policy, stated, ...(ask ? { ask } : {}) },
    ...(model === undefined ? {} : { model }),
    ...(forks === undefined ? {} : { forks }),
    ...(appendSystemPrompt === undefined ? {} : { appendSystemPrompt }),
  };
};

const UNUSED_PROMPT_NOTICE = "--append-system-prompt is ignored: a resumed session keeps its system prompt";

const noticesOf = ({ plan, choice, model, resume: wanted }: OpenOptions): readonly string[] => {
  const because = choice.kind === "rehearsal" ? choice.because : undefined;
  const moved = wanted?.before && engineChangeNotice(wanted.before, choice, model);
  const unused = wanted && plan.appendSystemPrompt !== undefined ? UNUSED_PROMPT_NOTICE : undefined;
  return [...plan.notices, because, moved, unused].filter((notice) => notice !== undefined);
};

export type OpenedEngine = AsyncDisposable & { readonly engine: Engine };

/** Engines that tasks may have been started with, besides the session's own. None is opened before it is needed. */
export const otherEngines = (env: Readonly<Record<string, string | undefined>>): readonly Engine[] =>
  otherChoices(env).map(({ kind: _kind, profile, ...options }) => engineFor(profile, options));

export const openEngine = async (choice: EngineChoice): Promise<OpenedEngine> => {
  if (choice.kind === "provider") {
    const { kind: _kind, profile, ...options } = choice;
    return { engine: engineFor(profile, options), [Symbol.asyncDispose]: async () => undefined };
  }
  const { startEmbedded } = await import("../rehearsal/index.ts");
  const { model } = choice;
  const embedded = await startEmbedded({ model });
  const { baseUrl, credential } = embedded;
  const engine = anthropicEngine({ name: "rehearsal", model, baseUrl, credential });
  return {
    // A unique address: the cache ends with this process, and the journal shows that it was another engine.
    engine: { ...engine, address: `${REHEARSAL_SCHEME}${randomUUID()}` },
    [Symbol.asyncDispose]: () => embedded.close(),
  };
};
