/** A folder, a simulator and a scripted model: what the tests of tasks share.
 *  Invariant: nothing of the user's own home or state is touched, and everything is closed at the end. */

import { mkdirSync } from "node:fs";
import { mergeLayers } from "@prefork/guard";
import { type LedgerRow, type SimScript, type Simulator, startSimulator } from "@prefork/simulator";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import type { RetryTiming } from "@prefork/wire";
import * as z from "zod";
import {
  anthropicEngine,
  defineTool,
  type Permissions,
  type RuntimeEvent,
  type Session,
  type SessionOptions,
  type Tool,
} from "../../src/index.ts";
import { type Seen, seenIn } from "./model-view.ts";

/** A request with what its model saw and what was billed for it. */
export type Asked = { readonly seen: Seen; readonly row: LedgerRow; readonly body: Buffer };

export type Stage = AsyncDisposable & {
  readonly folder: Scratch;
  readonly simulator: Simulator;
  readonly options: (more?: Partial<SessionOptions>) => SessionOptions;
  /** Every request of the main agent, or of the fork with this directive. */
  readonly asked: (directive?: string) => readonly Asked[];
};

/** Everything may run without a sandbox: the commands of these tests are harmless. */
export const unasked: Permissions = { policy: { ...mergeLayers([]), sandbox: "off" }, mode: "bypass" };

/** Waits a moment where a provider would be given seconds. */
export const hastyTiming: RetryTiming = {
  now: () => performance.now() * 1_000,
  random: () => 0,
  wait: async () => new Promise((resolve) => setImmediate(resolve)),
};

export const openStage = async (script: SimScript): Promise<Stage> => {
  const folder = scratch();
  for (const name of ["work", "home"]) mkdirSync(folder.at(name));
  const simulator = await startSimulator({ script, keepBodies: true });
  return {
    folder,
    simulator,
    options: (more = {}) => ({
      engine: anthropicEngine({
        baseUrl: simulator.url,
        credential: { kind: "api-key", value: "any" },
        timing: hastyTiming,
      }),
      cwd: folder.at("work"),
      home: folder.at("home"),
      state: folder.at("state"),
      environment: { PATH: "/usr/bin:/bin" },
      permissions: unasked,
      ...more,
    }),
    asked: (directive) =>
      askedOf(simulator).filter(({ seen }) => (directive === undefined ? seen.isMain : seen.directive === directive)),
    [Symbol.asyncDispose]: async () => {
      await simulator.close();
      folder[Symbol.dispose]();
    },
  };
};

/** All requests after the one with this number. */
export const askedOf = (simulator: Simulator, since = 0): readonly Asked[] => {
  const rows = new Map(simulator.ledger(since).map((row) => [row.sequence, row]));
  return simulator.requests().flatMap(({ sequence, body }) => {
    const row = rows.get(sequence);
    return row ? [{ seen: seenIn({ body: JSON.parse(body.toString("utf8")) }), row, body }] : [];
  });
};

/** A tool that changes something, so that somebody is asked. It only leaves a trace here. */
export const recordTool = (recorded: string[]): Tool =>
  defineTool({
    name: "Record",
    description: "Records a part.",
    input: z.strictObject({ part: z.string() }),
    readOnly: false,
    run: async ({ part }) => {
      recorded.push(part);
      await Promise.resolve();
      return { content: `recorded ${part}` };
    },
  });

export type Gate = { readonly passed: Promise<void>; readonly open: () => void };

/** A gate that a test opens. */
export const gate = (): Gate => {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: resolve };
};

/** Reads events until the condition holds. */
export const until = async (session: Session, isSo: (event: RuntimeEvent) => boolean): Promise<void> => {
  for await (const event of session.events()) if (isSo(event)) return;
};

/** The ids in the note about started agents, by label. */
export const startedIn = ({ told }: Seen): ReadonlyMap<string, string> =>
  new Map(
    told
      .filter((text) => text.startsWith('<note kind="tasks">'))
      .flatMap((text) => [...text.matchAll(/^- (\S+): (.*) \(.*async_launched/gm)])
      .map(([, id = "", label = ""]) => [label, id]),
  );
