/** Opens a session of this process for the terminal.
 *  Invariant: questions wait for the terminal, or for whoever else is attached; closing ends the session and its engine.
 *  Elsewhere: flags and settings (../print), the session (@prefork/runtime). */

import type { Session } from "@prefork/runtime";
import type { SessionStore } from "@prefork/runtime/observe";
import { modelFacts } from "@prefork/wire";
import { type Io, isStartedByFork, UsageError } from "../io.ts";
import {
  chooseEngine,
  type EngineFlags,
  findResumeTarget,
  openSession,
  planSession,
  type ResumeFlags,
  type SessionFlags,
  type SessionPlan,
} from "../print/index.ts";
import { readEarlierWithForks } from "./earlier-forks.ts";
import type { OpenedHere } from "./first-run.ts";
import type { OpenedSession } from "./terminal-session.ts";

export type OpenRequest = {
  readonly flags: SessionFlags &
    EngineFlags &
    ResumeFlags & {
      readonly forks?: boolean;
      readonly screenReader?: boolean;
    };
};

export const openLocalSession = async ({ flags }: OpenRequest, io: Io): Promise<OpenedSession> => {
  if (await isStartedByFork(io))
    throw new UsageError("a fork started this command, and a fork may not start agents: it does its work itself");
  const plan = await planSession(flags, io);
  const resume = await findResumeTarget(flags, { ...plan, hasWords: false });
  const choice = chooseEngine(flags, io.env, resume?.before);
  const forks = flags.forks === false ? "off" : undefined;
  const opened = await openSession({ plan, choice, resume, forks, model: flags.model, ask: "attached" }, io);
  const { session, notices } = opened;
  return {
    control: session.control(),
    own: session,
    notices,
    ...(resume
      ? { earlier: await readEarlierWithForks(session, storeIn(plan)) }
      : { welcome: welcomeOf(session, plan) }),
    ...windowOf(session.model),
    setMode: (mode) => session.setMode(mode),
    close: async () => opened[Symbol.asyncDispose](),
  };
};

const storeIn = ({ state }: SessionPlan): SessionStore => ({ state, now: Date.now, newId: () => "" });

const welcomeOf = ({ id, engine, model }: Session, plan: SessionPlan): OpenedHere => ({
  ...{ cwd: plan.cwd, store: storeIn(plan), session: id, engine, model },
});

const windowOf = (model: string): { readonly window?: number } => {
  const window = modelFacts(model)?.window;
  return window === undefined ? {} : { window };
};
