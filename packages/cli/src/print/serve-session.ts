/** When can others attach to a session of this process?
 *  Invariant: a session that ends quickly pays nothing: the socket is opened a moment after its first request, in
 *  parallel with the provider's answer. If it cannot be opened, the session runs as usual, unless its questions can be
 *  answered only there.
 *  Elsewhere: the socket and what goes over it (../attach). */

import { setTimeout as sleep } from "node:timers/promises";
import type { Session, SessionControl } from "@prefork/runtime";
import type { ServedControl } from "../attach/index.ts";
import { type Io, UsageError } from "../io.ts";
import type { SessionPlan } from "./session-flags.ts";

/** After the first request: by then a short answer has arrived. */
const AFTER_REQUEST_MS = 250;
/** Without a request: somebody may look at a session that waits for its first prompt. */
const WITHOUT_REQUEST_MS = 1_000;

const MAX_TITLE = 200;

export type ServeSessionOptions = {
  readonly plan: Pick<SessionPlan, "state" | "cwd" | "directories">;
  readonly io: Io;
  /** Its questions can be answered only by an attached client. */
  readonly isNeeded: boolean;
};

/** First it stops accepting clients, then the session closes, then the clients that are left are sent away. */
export type SessionServer = AsyncDisposable & { readonly stopAccepting: () => Promise<void> };

export const serveSession = async (session: Session, options: ServeSessionOptions): Promise<SessionServer> => {
  const control = session.control(); // from now on events are kept for clients that attach later
  const closing = new AbortController();
  const about = { cwd: options.plan.cwd, title: "", openedAt: Date.now() };
  const requested = firstRequest(control, closing.signal, (prompt) => {
    about.title = prompt.slice(0, MAX_TITLE);
  });
  const start = async (): Promise<ServedControl> => {
    const { serveControl } = await import("../attach/index.ts");
    const { state, cwd, directories } = options.plan;
    return await serveControl(control, {
      ...{ state, env: options.io.env, workspaces: [cwd, ...directories] },
      about: () => about,
      keepsAlive: options.isNeeded,
    });
  };
  const later = async (): Promise<ServedControl> => {
    const pause = { signal: closing.signal, ref: false };
    await Promise.race([
      requested.then(() => sleep(AFTER_REQUEST_MS, undefined, pause)),
      sleep(WITHOUT_REQUEST_MS, undefined, pause),
    ]);
    return await start();
  };
  const serving: Promise<ServedControl | undefined> = options.isNeeded
    ? start().catch(cannotAsk)
    : later().catch(() => undefined);
  if (options.isNeeded) await serving;
  return {
    stopAccepting: async () => {
      closing.abort();
      await (await serving)?.stopAccepting();
    },
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      await (await serving)?.[Symbol.asyncDispose]();
    },
  };
};

const cannotAsk = (cause: unknown): never => {
  const reason = cause instanceof Error ? cause.message : String(cause);
  throw new UsageError(`--ask-attached: nobody could attach to this session: ${reason}`, { cause });
};

const firstRequest = async (
  control: SessionControl,
  signal: AbortSignal,
  onPrompt: (text: string) => void,
): Promise<void> => {
  const events = control.subscribe(0);
  const leave = (): void => events[Symbol.dispose]();
  signal.addEventListener("abort", leave, { once: true });
  for await (const event of events) {
    if (event.type === "prompt_entered" && event.agent === "main") onPrompt(event.text);
    if (event.type === "turn_started") break;
  }
  signal.removeEventListener("abort", leave);
};
