/** What was learnt from journals that have not changed since, kept in one file beside the sessions.
 *  Invariant: the file is derived. It may be deleted at any time; one that is damaged, of another version, or that
 *  others could have written counts as empty. Failing to write it is not an error.
 *  Elsewhere: which journals are read again (previews.ts). */

import { randomUUID } from "node:crypto";
import { type BigIntStats, constants } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import type { Folder } from "@prefork/guard/internal";
import * as z from "zod";
import { describeUnsafe } from "./storage.ts";

/** Raised whenever a survey says more, or something else. */
const VERSION = 1;

/** Not a valid session id, so nobody takes it for a session. */
const INDEX_FILE = ".previews.json";

const MAX_BYTES = 64 * 1024 * 1024;

const survey = z.object({
  key: z.string(),
  cwd: z.string(),
  model: z.string(),
  createdAt: z.number(),
  usedAt: z.number(),
  firstPrompt: z.string(),
  title: z.string(),
  lastAnswer: z.string(),
  usd: z.number(),
  forks: z.number(),
  turns: z.number(),
  problems: z.number(),
  journalBytes: z.number(),
  parent: z.object({ session: z.string(), seq: z.number(), hash: z.string() }).exactOptional(),
  startedBy: z.object({ session: z.string(), task: z.string() }).exactOptional(),
});

const file = z.object({ version: z.literal(VERSION), sessions: z.record(z.string(), survey) });

type KeyedSurvey = z.infer<typeof survey>;

export type IndexedSurvey = Readonly<Omit<KeyedSurvey, "key">>;
export type SurveyIndex = ReadonlyMap<string, Readonly<KeyedSurvey>>;

/** Changes whenever the file was written, replaced, or given other rights or names. */
export const journalKey = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [dev, ino, size, mtimeNs, ctimeNs].join(" ");

export const readIndex = async (sessions: Folder): Promise<SurveyIndex> => {
  try {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    await using handle = await open(sessions.at(INDEX_FILE), flags);
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > MAX_BYTES || describeUnsafe(stats, INDEX_FILE) !== undefined) return new Map();
    const read = file.safeParse(JSON.parse(await handle.readFile("utf8")));
    return new Map(read.success ? Object.entries(read.data.sessions) : []);
  } catch {
    return new Map(); // there is none yet, or it is damaged: it is made again from the journals
  }
};

export const writeIndex = async (sessions: Folder, index: SurveyIndex): Promise<void> => {
  const draft = sessions.at(`${INDEX_FILE}.${randomUUID()}`);
  try {
    await using handle = await open(draft, "wx", 0o600);
    await handle.writeFile(JSON.stringify({ version: VERSION, sessions: Object.fromEntries(index) }));
    await rename(draft, sessions.at(INDEX_FILE));
  } catch {
    // A read-only or full disk: the next list reads the journals again.
    await rm(draft, { force: true }).catch(() => undefined);
  }
};
