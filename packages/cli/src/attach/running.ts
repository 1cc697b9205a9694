/** Which sessions run now on this machine, and can be attached to?
 *  Invariant: whoever is listed has just answered, or its process is too busy to. The socket of a dead process is
 *  removed.
 *  Elsewhere: saved sessions (@prefork/runtime), the sockets' folder (sockets.ts). */

import { rm } from "node:fs/promises";
import { ConnectError, connectControl } from "./connect.ts";
import type { SessionAbout } from "./frames.ts";
import { findSockets, type SocketPlace } from "./sockets.ts";

export type RunningSession = {
  readonly session: string;
  /** Its socket. */
  readonly path: string;
  /** Undefined if its process did not answer in time. */
  readonly about?: SessionAbout & { readonly questions: number };
};

const ANSWER_MS = 2_000;

/** The one that was opened last first. */
export const listRunning = async (place: SocketPlace): Promise<readonly RunningSession[]> => {
  const found = await Promise.all((await findSockets(place)).map(probe));
  const openedAt = ({ about }: RunningSession): number => about?.openedAt ?? 0;
  return found.filter((one) => one !== undefined).toSorted((a, b) => openedAt(b) - openedAt(a));
};

const probe = async ({ session, path }: { readonly session: string; readonly path: string }) => {
  try {
    using control = await connectControl(path, { readOnly: true, timeoutMs: ANSWER_MS });
    // Its file name is no proof.
    if (control.session !== session) return undefined;
    return { session, path, about: { ...control.about, questions: control.questions().length } };
  } catch (error) {
    if (!(error instanceof ConnectError) || error.reason !== "dead") return { session, path };
    await rm(path, { force: true });
    return undefined;
  }
};
