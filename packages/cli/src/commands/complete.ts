/** `prefork __complete <kind>`: the names that a completion script cannot know: sessions, tasks and settings.
 *  Invariant: one line per name, with a tab before its title; no character of a title reaches the shell as anything but
 *  text. An error prints nothing, because a person is in the middle of a line. Only what the kind needs is loaded.
 *  Elsewhere: the scripts (../completion). */

import { homedir } from "node:os";
import { resolve } from "node:path";
import type { Io } from "../io.ts";

type Candidate = readonly [name: string, title: string];

export const printCandidates = async ([kind = "", about = ""]: readonly string[], io: Io): Promise<void> => {
  const candidates = await candidatesFor(kind, { about, io }).catch(() => []);
  io.out(candidates.map(([name, title]) => `${plain(name)}\t${plain(title)}\n`).join(""));
};

/** One line without control characters or bidirectional overrides. */
const plain = (text: string): string => text.replace(/[\s\p{Cc}\u2028-\u202e\u2066-\u2069]+/gu, " ").trim();

type Wanted = { readonly about: string; readonly io: Io };

const candidatesFor = async (kind: string, { about, io }: Wanted): Promise<readonly Candidate[]> => {
  switch (kind) {
    case "session":
      return await sessions(io);
    case "task":
      return await tasks(io);
    case "key":
      return (await keys()).map(({ key, description }) => [key, description]);
    case "value":
      return (await keys()).flatMap(({ key, choices = [] }) =>
        key === about ? choices.map((value) => [String(value), ""] as const) : [],
      );
    default:
      return [];
  }
};

const stateOf = async ({ env }: Io): Promise<string> => {
  const { stateFolder } = await import("@prefork/guard");
  return stateFolder(env, env.HOME || homedir());
};

/** This folder's first, because people usually mean one of these. */
const sessions = async (io: Io): Promise<readonly Candidate[]> => {
  const { listSessionPreviews } = await import("@prefork/runtime/observe");
  const all = (await listSessionPreviews(await stateOf(io))).filter((one) => one.kind === "session");
  const here = resolve(".");
  const sorted = all.toSorted((a, b) => Number(b.cwd === here) - Number(a.cwd === here));
  return sorted.map(({ id, title, cwd }) => [id, cwd === here ? title : `${title} (${cwd})`]);
};

const tasks = async (io: Io): Promise<readonly Candidate[]> => {
  const { recentTasks } = await import("@prefork/runtime/observe");
  const store = { state: await stateOf(io), now: Date.now, newId: () => "" };
  return (await recentTasks(store, { cwd: resolve(".") })).map(({ id, label }) => [id, label]);
};

const keys = async () => (await import("./config-files.ts")).knownKeys();
