/** A folder, a simulator and a session that forks, and what its journals say afterwards.
 *  Invariant: journals and simulator share one clock, which a test can move. Nothing of the user's own home is
 *  touched. */

import { writeFileSync } from "node:fs";
import {
  callTools,
  lastUserText,
  type SimRequest,
  type SimScript,
  type Simulator,
  type SimulatorOptions,
  say,
  startSimulator,
  textOfTokens,
  toolResults,
} from "@prefork/simulator";
import { hideBwrap } from "@prefork/testing/optional";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import { FORK_PLACEHOLDER_RESULT } from "@prefork/wire";
import {
  anthropicEngine,
  createSession,
  type RuntimeEvent,
  type Session,
  type SessionOptions,
} from "../../src/index.ts";
import type { SessionStore } from "../../src/journal/index.ts";
import { type ObservedFamily, type RequestRow, readFamily } from "../../src/observe/index.ts";
import { parseNotifications } from "../../src/tasks/index.ts";

hideBwrap();

export type Ground = AsyncDisposable & {
  readonly folder: Scratch;
  readonly simulator: Simulator;
  readonly store: SessionStore;
  readonly options: (more?: Partial<SessionOptions>) => SessionOptions;
  readonly open: (more?: Partial<SessionOptions>) => Promise<Session>;
  readonly family: (session: string) => Promise<ObservedFamily>;
  /** Journals and simulator together. */
  readonly later: (ms: number) => void;
};

export type GroundOptions = Omit<SimulatorOptions, "clock"> & { readonly conventions?: number };

export const openGround = async ({ conventions = 8_000, ...rest }: GroundOptions = {}): Promise<Ground> => {
  const folder = scratch();
  if (conventions > 0) writeFileSync(folder.at("AGENTS.md"), textOfTokens(conventions));
  const simulator = await startSimulator(rest);
  let offset = 0;
  const now = (): number => Date.now() + offset;
  const state = folder.at(".state");
  const store: SessionStore = { state, now, newId: () => "" };
  const options = (more: Partial<SessionOptions> = {}): SessionOptions => ({
    engine: anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } }),
    ...{ cwd: folder.path, home: folder.path, state, clock: { now }, environment: { PATH: "/usr/bin:/bin" } },
    permissions: { mode: "default" },
    ...more,
  });
  return {
    ...{ folder, simulator, store, options },
    open: (more) => createSession(options(more)),
    family: (session) => readFamily(store, session),
    later: (ms) => {
      offset += ms;
      simulator.clock.advance(ms);
    },
    [Symbol.asyncDispose]: async () => {
      await simulator.close();
      folder[Symbol.dispose]();
    },
  };
};

// --- the model -----------------------------------------------------------------------------------------------------------

export const directiveIn = ({ body }: SimRequest): string | undefined =>
  /fork-directive: ([^"\\]*)/.exec(JSON.stringify(body.messages))?.[1];

/** All text of the last message: each notification is its own block. */
export const lastWords = ({ body }: SimRequest): string => {
  const last: unknown = Array.isArray(body.messages) ? body.messages.at(-1) : undefined;
  return JSON.stringify(last ?? "").replaceAll("\\n", "\n");
};

/** The parent starts one fork per part. A fork reads its part's file and reports. The parent summarizes what it was
 *  told. */
export const forking =
  (parts: readonly string[]): SimScript =>
  (request) => {
    const results = toolResults(request);
    const directive = directiveIn(request);
    if (directive !== undefined) {
      const [read] = results.flatMap(({ text }) => /content of \w+/.exec(text) ?? []);
      if (read !== undefined) return say(`Scope: ${directive}\nResult: ${read}`);
      return callTools([{ name: "Bash", input: { command: `cat ${directive}.txt` } }]);
    }
    if (parseNotifications(lastWords(request)).length > 0) return say("All have reported.");
    if (results.some(({ text }) => text === FORK_PLACEHOLDER_RESULT)) return say("I wait for them.");
    if (!lastUserText(request).startsWith("Look")) return say("heard");
    return callTools(parts.map((part) => ({ name: "Agent", input: { description: `look at ${part}`, prompt: part } })));
  };

export const PARTS: readonly string[] = ["schema", "service", "router", "tests", "types"];

export const openForking = async (count: number, options: GroundOptions = {}): Promise<Ground> => {
  const parts = PARTS.slice(0, count);
  const ground = await openGround({ script: forking(parts), ...options });
  for (const part of parts) ground.folder.put(`${part}.txt`, `content of ${part}\n`);
  return ground;
};

/** Runs one prompt to its end. `at` is called with each event. */
export const prompted = async (
  session: Session,
  words: string,
  at: (event: RuntimeEvent) => void = () => {},
): Promise<void> => {
  const exchange = session.prompt(words);
  for await (const event of exchange) at(event);
  await exchange.result();
};

// --- what a test compares ------------------------------------------------------------------------------------------------

/** Agents in the order of their first request, because task ids differ from run to run. */
export const namesOf = (rows: readonly RequestRow[]): ReadonlyMap<string, string> => {
  const names = new Map<string, string>();
  for (const { agent } of rows)
    if (!names.has(agent))
      names.set(
        agent,
        agent === "main" ? "main" : `fork ${[...names.keys()].filter((one) => one !== "main").length + 1}`,
      );
  return names;
};

/** `main 1: none`, for each row. */
export const causesOf = (rows: readonly RequestRow[]): readonly string[] => {
  const names = namesOf(rows);
  return rows.map(({ agent, turn, cause }) => `${names.get(agent)} ${turn}: ${cause.kind}`);
};
