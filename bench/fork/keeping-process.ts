/** A session with many forks, in its own process: what do they leave in memory and on disk?
 *  Started with the provider's URL, the parent's length and a folder; takes one order and waits to be ended.
 *  Elsewhere: who sends the orders (left-behind.ts), the session (clients/parent.ts). */

import { readdirSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { garbageCollector } from "../measure.ts";
import { had, keepParent, type Parent } from "./clients/parent.ts";
import { chainPrompt, startPrompt } from "./conversation.ts";

export type KeepingOrder =
  /** One family with this many forks. */
  | { readonly disk: number }
  /** This many forks, each after the previous one has finished. */
  | { readonly oneByOne: number };

export type KeepingReport =
  | { readonly type: "ready" }
  /** Bytes. */
  | {
      readonly type: "disk";
      /** The parent's journal before it forked. */
      readonly parent: number;
      /** For each fork: all lines of its journal except those of its own messages. */
      readonly beyond: number;
      /** For each fork: the disk space of its folder and everything in it. */
      readonly allocated: number;
      /** For each fork: how much the parent's journal grew. */
      readonly grown: number;
    }
  | {
      readonly type: "oneByOne";
      /** From a tenth of the forks to the last: for each of them, what the heap and its buffers grew by, and by how many
       *  bytes the conversation did. */
      readonly held: number;
      readonly conversation: number;
      readonly handles: { readonly early: number; readonly late: number };
    }
  | { readonly type: "failed"; readonly message: string };

const [baseUrl = "", tokens, folder = ""] = process.argv.slice(2);
const collect = garbageCollector();

// --- the disk --------------------------------------------------------------------------------------------------------

const JOURNAL = "journal.jsonl";

const measureDisk = async ({ session, sessions }: Parent, forks: number): Promise<KeepingReport> => {
  const parent = join(sessions, session.id, JOURNAL);
  const { size: before } = await stat(parent);
  await had(session.prompt(startPrompt(forks)));
  const others = (await readdir(sessions)).filter((id) => id !== session.id);
  if (others.length !== forks) throw new Error(`${others.length} of ${forks} forks have a journal`);
  const beyond = await Promise.all(others.map((id) => beyondMessages(join(sessions, id, JOURNAL))));
  const allocated = await Promise.all(others.map((id) => allocatedIn(join(sessions, id))));
  return {
    type: "disk",
    parent: before,
    beyond: sum(beyond) / forks,
    allocated: sum(allocated) / forks,
    grown: ((await stat(parent)).size - before) / forks,
  };
};

const MESSAGES: readonly unknown[] = ["message", "blocks"];

const beyondMessages = async (path: string): Promise<number> => {
  const lines = (await readFile(path, "utf8")).split(/(?<=\n)/);
  return sum(lines.filter((line) => !MESSAGES.includes(kindOf(line))).map((line) => Buffer.byteLength(line)));
};

const kindOf = (line: string): unknown => (JSON.parse(line) as { readonly kind?: unknown }).kind;

const BLOCK = 512;

const allocatedIn = async (path: string): Promise<number> => {
  const names = await readdir(path, { recursive: true });
  const places = [path, ...names.map((name) => join(path, name))];
  // A lock is a link in its folder and may point nowhere.
  const blocks = await Promise.all(
    places.map((place) =>
      stat(place).then(
        ({ blocks }) => blocks,
        () => 0,
      ),
    ),
  );
  return sum(blocks) * BLOCK;
};

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

// --- one after the other ---------------------------------------------------------------------------------------------

type Moment = { readonly held: number; readonly handles: number; readonly bytes: number };

/** Measured twice, each time with nothing running. */
const measureOneByOne = async ({ session }: Parent, forks: number): Promise<KeepingReport> => {
  const early = forks / 10;
  const first = await momentAt(await had(session.prompt(chainPrompt(early))));
  const last = await momentAt(await had(session.prompt(chainPrompt(forks - early))));
  if (session.tasks.length !== forks) throw new Error(`${session.tasks.length} of ${forks} forks were started`);
  return {
    type: "oneByOne",
    held: (last.held - first.held) / (forks - early),
    conversation: (last.bytes - first.bytes) / (forks - early),
    handles: { early: first.handles, late: last.handles },
  };
};

const momentAt = async ({ bytes }: { readonly bytes: number }): Promise<Moment> => {
  for (let time = 0; time < 3; time += 1) {
    await sleep(150);
    await collect();
  }
  const { heapUsed, external } = process.memoryUsage();
  return { held: heapUsed + external, handles: openHandles(), bytes };
};

/** If the system does not list open files, falls back to the process's own count of what keeps it alive. */
const openHandles = (): number => {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return process.getActiveResourcesInfo().length;
  }
};

// --- orders ----------------------------------------------------------------------------------------------------------

const tell = (report: KeepingReport): void => void process.send?.(report);
const fail = (error: Error): void => tell({ type: "failed", message: error.message });

const obey = async (goOn: () => Promise<Parent>, order: KeepingOrder): Promise<KeepingReport> => {
  await using parent = await goOn();
  return "disk" in order ? await measureDisk(parent, order.disk) : await measureOneByOne(parent, order.oneByOne);
};

process.on("disconnect", () => process.exit());
keepParent({ baseUrl, tokens: Number(tokens), folder }).then((goOn) => {
  process.on("message", (order: KeepingOrder) => void obey(goOn, order).then(tell, fail));
  tell({ type: "ready" });
}, fail);
