/** Where is the socket of a running session, and which ones are there?
 *  Invariant: a socket is in a folder of mode 0700 that belongs to this user, and nobody else can replace a folder above
 *  it. That is the protection: Node cannot ask who is at the other end of a socket. A sandboxed command sees an empty
 *  /tmp and /run, so it reaches no socket there and cannot answer its own questions. The socket of a dead process is
 *  removed by whoever finds it.
 *  Elsewhere: what goes over it (frames.ts). */

import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { inspectPrivateFolder, openPrivateFolder } from "@prefork/guard";

export type SocketPlace = {
  /** The folder where sessions are kept; each has its own sockets. */
  readonly state: string;
  readonly env: Readonly<Record<string, string | undefined>>;
};

/** The shortest limit of the systems that we run on, with the final NUL. */
const MAX_PATH_BYTES = 104;

const userId = (): number => process.getuid?.() ?? -1;

/** In this order. /tmp comes first: the folder of XDG_RUNTIME_DIR is deleted when the user logs out, and a session may
 *  run longer. The other one is for machines where somebody else has taken the name. */
const foldersFor = ({ env }: SocketPlace): readonly string[] => {
  const { XDG_RUNTIME_DIR: runtime } = env;
  return [`/tmp/prefork-${userId()}`, ...(runtime && isAbsolute(runtime) ? [join(runtime, "prefork")] : [])];
};

const ENDING = ".sock";

/** The same session id may exist in two state folders. */
const prefixOf = ({ state }: SocketPlace): string =>
  `${createHash("sha256").update(state).digest("hex").slice(0, 12)}-`;

const nameOf = (place: SocketPlace, session: string): string => `${prefixOf(place)}${session}${ENDING}`;

const isInside = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);

export type NewSocket = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly reason: string };

/** Where a session's socket should be; its folder exists afterwards. `workspaces`: folders that the session's commands
 *  see even in the sandbox, so the socket must not be in one. */
export const placeSocket = async (
  place: SocketPlace,
  session: string,
  workspaces: readonly string[],
): Promise<NewSocket> => {
  const reasons: string[] = [];
  for (const folder of foldersFor(place)) {
    const path = join(folder, nameOf(place, session));
    const exposed = workspaces.find((workspace) => isInside(folder, workspace));
    if (exposed !== undefined) reasons.push(`${folder} is in the workspace ${exposed}`);
    else if (Buffer.byteLength(path) >= MAX_PATH_BYTES) reasons.push(`${path} is too long for a socket`);
    else {
      const opened = await openPrivateFolder(folder);
      if (opened.ok) {
        await opened.root.close();
        return { ok: true, path };
      }
      reasons.push(opened.reason);
    }
  }
  return { ok: false, reason: reasons.join("; ") };
};

export type FoundSocket = { readonly session: string; readonly path: string };

/** All sockets of this state folder; their processes may be dead. */
export const findSockets = async (place: SocketPlace): Promise<readonly FoundSocket[]> => {
  const prefix = prefixOf(place);
  const found: FoundSocket[] = [];
  for (const folder of foldersFor(place)) {
    const inspected = await inspectPrivateFolder(folder);
    // Sockets in a folder that others can change may be theirs.
    if (!inspected.ok || inspected.mode === undefined || (inspected.mode & 0o077) !== 0) continue;
    for (const name of await readdir(folder).catch(() => []))
      if (name.startsWith(prefix) && name.endsWith(ENDING))
        found.push({ session: name.slice(prefix.length, -ENDING.length), path: join(folder, name) });
  }
  return found;
};
