/** `prefork --resume`: which conversation of this folder is resumed?
 *  Invariant: reads only; without an earlier conversation nothing is asked.
 *  Elsewhere: the same list in a session (commands/session.ts), opening the session (local-session.ts). */

import type { Io } from "../io.ts";
import type { Page } from "./state/index.ts";

/** The "command" that gets the choice, and the choice that is no session. */
export const FIRST_SESSION = "first session";
export const NEW_SESSION = "new";

export const listFirstSessions = async (io: Io, cwd: string): Promise<Page | undefined> => {
  const { sessionItems } = await import("./commands/index.ts");
  const items = await sessionItems(io, { cwd });
  if (items.length === 0) return undefined;
  return {
    ...{ kind: "list", title: "Resume a conversation", command: FIRST_SESSION, hint: "resumes it", items },
    ...{ selected: 0, filter: "", otherwise: { id: NEW_SESSION, hint: "starts a new one" } },
  };
};
