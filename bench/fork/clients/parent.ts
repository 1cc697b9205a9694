/** A long session that can be resumed many times: it runs once, is saved to disk, and each use resumes a copy.
 *  Invariant: every copy starts with the same bytes; it has had an answer since it was opened, so its cache is warm and its
 *  connection open.
 *  Elsewhere: the conversation (../conversation.ts), what is done with it (ours.ts, ../keeping-process.ts). */

import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  anthropicEngine,
  createSession,
  type Exchange,
  resumeSession,
  type Session,
  type SessionOptions,
} from "@prefork/runtime";
import { BYTES_PER_TOKEN, EXCHANGES, KEY, MODEL, promptOf } from "../conversation.ts";

export type Parent = AsyncDisposable & {
  readonly session: Session;
  /** Where its journal and those of its forks are. */
  readonly sessions: string;
};

/** More than any family here needs, so that nothing is refused or compacted. */
const MAX_TASKS = 10_000;
const WINDOW = 10_000_000;

/** A thousand forks stay open until the last one is open, however busy the machine is. */
const PATIENT = { firstByteMs: 600_000, idleMs: 600_000 };

export type ParentPlace = {
  readonly baseUrl: string;
  readonly tokens: number;
  /** The owner removes it, because this process may be killed at any time. */
  readonly folder: string;
};

/** Runs the conversation, and returns a way to resume from its end. */
export const keepParent = async ({ baseUrl, tokens, folder }: ParentPlace): Promise<() => Promise<Parent>> => {
  const place = await mkdtemp(join(folder, "parent-"));
  const [cwd, home, kept] = [join(place, "workspace"), join(place, "home"), join(place, "kept")];
  await Promise.all([mkdir(cwd), mkdir(home)]);
  const options = (state: string): SessionOptions => ({
    engine: anthropicEngine({ baseUrl, credential: { kind: "api-key", value: KEY }, model: MODEL, timeouts: PATIENT }),
    permissions: { mode: "bypass" },
    mostTasks: MAX_TASKS,
    forking: { mostPerFamily: MAX_TASKS, mostPerSession: MAX_TASKS },
    window: WINDOW,
    compactAt: 1,
    ...{ cwd, home, state },
  });
  const id = await converse(await createSession(options(kept)), tokens);
  let copies = 0;
  return async () => {
    copies += 1;
    const state = join(place, `copy-${copies}`);
    await cp(kept, state, { recursive: true, preserveTimestamps: true });
    const session = await resumeSession(id, options(state));
    await had(session.prompt("Are you there?"));
    return {
      session,
      sessions: join(state, "sessions"),
      [Symbol.asyncDispose]: async () => {
        await session.close();
        await rm(state, { recursive: true, force: true });
      },
    };
  };
};

const converse = async (opened: Session, tokens: number): Promise<string> => {
  await using session = opened;
  const { bytes } = await had(session.prompt("Good morning."));
  const each = Math.floor((tokens - bytes / BYTES_PER_TOKEN) / (EXCHANGES - 1));
  if (each < 1) throw new Error(`a session of ${tokens} tokens is shorter than its own beginning`);
  for (let exchange = 1; exchange < EXCHANGES; exchange += 1) await had(session.prompt(promptOf(each, exchange)));
  return session.id;
};

/** Reads an exchange like a program that displays it, and returns the length of its last prompt. */
export const had = async (exchange: Exchange): Promise<{ readonly bytes: number }> => {
  let bytes = 0;
  for await (const event of exchange) if (event.type === "turn_started" && event.agent === "main") bytes = event.bytes;
  const { end, reason } = await exchange.result();
  if (end !== "done") throw new Error(`an exchange ended as ${end}: ${reason}`);
  return { bytes };
};
