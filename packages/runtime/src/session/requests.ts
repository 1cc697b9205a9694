/** What other processes ask of a running session: files in its folder, taken as they come.
 *  Invariant: the folder is the user's own and private, so whoever can write there may ask; a request is a name and
 *  nothing in it is read; it is removed before it is carried out, so that it is carried out once.
 *  Elsewhere: who watches (beside.ts), who asks (the command line). */

import { type FSWatcher, watch } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isSessionId, type SessionStore } from "../journal/index.ts";

const FOLDER = "requests";
const STOP = /^stop-(task-[0-9a-f]{1,32}|[A-Za-z0-9_-]{1,64})$/;

const folderOf = (session: string): string => join(session, FOLDER);

/** Asks whoever runs this session to end a task. */
export const requestStop = async ({ state }: SessionStore, session: string, task: string): Promise<void> => {
  const name = `stop-${task}`;
  if (!isSessionId(session) || !STOP.test(name)) throw new TypeError(`"${task}" is no task of a session`);
  const folder = folderOf(join(state, "sessions", session));
  await mkdir(folder, { mode: 0o700, recursive: true });
  await writeFile(join(folder, name), "", { mode: 0o600 });
};

/** Watches while something runs. */
export class Requests {
  readonly #folder: string;
  readonly #stop: (task: string) => void;
  #watcher: FSWatcher | undefined;
  readonly #watching = new Set<string>();

  /** `session`: its folder. */
  constructor(session: string, stop: (task: string) => void) {
    this.#folder = folderOf(session);
    this.#stop = stop;
  }

  /** `by`: what runs, or no longer does. */
  watch(by: string, isBusy: boolean): void {
    if (isBusy) this.#watching.add(by);
    else this.#watching.delete(by);
    if (this.#watching.size === 0) this.#end();
    else if (!this.#watcher) void this.#begin();
  }

  #end(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  async #begin(): Promise<void> {
    try {
      await mkdir(this.#folder, { mode: 0o700, recursive: true });
      if (this.#watching.size === 0 || this.#watcher) return;
      this.#watcher = watch(this.#folder, { persistent: false }, () => void this.#take());
      this.#watcher.on("error", () => this.#end());
      await this.#take(); // what came before
    } catch {
      // Without it tasks run all the same; only nobody from outside can stop them.
    }
  }

  async #take(): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const task = STOP.exec(name)?.[1];
      if (task === undefined) continue;
      await rm(join(this.#folder, name), { force: true });
      this.#stop(task);
    }
  }
}
