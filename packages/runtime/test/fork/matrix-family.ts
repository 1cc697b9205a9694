/** One family of the fork matrix, through a real session over HTTP, and what the provider saw of it.
 *  Invariant: time stands still but where a cell moves it: after the parent's answer and before its forks are made.
 *  Elsewhere: the model (matrix-model.ts), which cells there are (matrix-cells.ts), what must hold (matrix-laws.ts). */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type KeptRequest,
  type LedgerRow,
  ManualClock,
  type SimulatorOptions,
  startSimulator,
  textOfTokens,
} from "@prefork/simulator";
import { scratch } from "@prefork/testing/scratch";
import { type JsonObject, text } from "@prefork/wire";
import {
  anthropicEngine,
  createSession,
  type RuntimeEvent,
  resumeSession,
  type Session,
  type SessionOptions,
} from "../../src/index.ts";
import type { Task } from "../../src/tasks/index.ts";
import type { Cell } from "./matrix-cells.ts";
import {
  BEGIN,
  GO,
  isDirected,
  isNext,
  Leader,
  NEXT,
  promptOf,
  type Story,
  scriptOf,
  stories,
} from "./matrix-model.ts";

const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA2iEnWAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==";

/** A request as it arrived, with what it was billed. */
export type Sent = {
  readonly body: Buffer;
  readonly json: { readonly messages: readonly { readonly role: string; readonly content: readonly JsonObject[] }[] };
  readonly row: LedgerRow;
};

export type SeenFamily = {
  readonly model: string;
  /** The parent's last request before its forks, and its next one. */
  readonly parentLast: Sent;
  readonly parentNext: Sent;
  /** The first request of each child, in the order they arrived. */
  readonly firsts: readonly Sent[];
  /** All later requests of children. */
  readonly later: readonly Sent[];
  /** Requests that arrived while the first child had no word of its answer. */
  readonly besideLeader: number;
  readonly events: readonly RuntimeEvent[];
  readonly tasks: readonly Task[];
  readonly end: string;
};

// --- the session -----------------------------------------------------------------------------------------------------

const MINUTE_MS = 60_000;
const LIVES_MS = { "5m": 5 * MINUTE_MS, "1h": 60 * MINUTE_MS } as const;
/** What passes between the parent's answer and its forks. */
const passing = ({ entry, ttl }: Cell): number => {
  const later = { warm: -LIVES_MS[ttl], cold: MINUTE_MS, "near expiry": -10_000 }[entry];
  return LIVES_MS[ttl] + later;
};

const tails = {
  keep: { inFlight: "keep" },
  trim: { inFlight: "trim" },
  "placeholders all": { placeholders: "all" },
} as const;

/** Names in the order they are asked for. The last task of a family is named after its parent's answer and before its
 *  bytes are made: that is when time passes. */
const idsAnd = (forks: number, pass: () => void): NonNullable<SessionOptions["ids"]> => {
  let [named, tasks] = [0, 0];
  return {
    next: (kind) => {
      named += 1;
      if (kind === "task") tasks += 1;
      if (kind === "task" && tasks === forks) pass();
      return `${kind}-${String(named).padStart(4, "0")}`;
    },
  };
};

export type FamilyOptions = Pick<SimulatorOptions, "rules"> & {
  readonly story?: Story; // default: that of the cell's kind
  /** When time passes. Default: between the parent's answer and its forks. */
  readonly passes?: "while it answers" | "before it forks";
  /** All of the family arrive before any of them is answered. */
  readonly together?: boolean;
};

export const runFamily = async (cell: Cell, options: FamilyOptions = {}): Promise<SeenFamily> => {
  const { story = stories[cell.kind], passes = "before it forks", together = false, ...rules } = options;
  const clock = new ManualClock(Date.UTC(2026, 2, 3, 12));
  const pass = (when: typeof passes) => (): void => {
    if (when === passes) clock.advance(passing(cell));
  };
  const leader = new Leader();
  using place = scratch();
  mkdirSync(place.at("home"));
  mkdirSync(place.at("work"));
  writeFileSync(place.at("work", "small.txt"), "a small file\n");
  writeFileSync(place.at("work", "picture.png"), Buffer.from(PICTURE, "base64"));
  const answering = (): void => {
    pass("while it answers")();
    if (together) simulator.fault({ kind: "together", times: cell.forks + 1 });
  };
  await using simulator = await startSimulator({
    ...{ clock, keepBodies: true, lookback: cell.lookback, script: scriptOf(cell, { story, leader, answering }) },
    ...rules,
  });
  const made: SessionOptions = {
    engine: anthropicEngine({
      baseUrl: simulator.url,
      credential: { kind: "api-key", value: "any" },
      diagnoses: true,
    }),
    ...(story.model === undefined ? {} : { model: story.model }),
    ...(story.settings === undefined ? {} : { settings: story.settings }),
    ttl: cell.ttl,
    cwd: place.at("work"),
    home: place.at("home"),
    state: join(place.path, "state"),
    environment: { PATH: process.env.PATH },
    permissions: { mode: "default" },
    clock: { now: () => clock.now() },
    ids: idsAnd(cell.forks, pass("before it forks")),
    forking: { ...tails[cell.tail], fork: cell.turns === 1 ? { turns: 1 } : {} },
  };
  const begun = await opened(made, story.opening);
  const words = `${textOfTokens(cell.tokens, 7)}\n${GO}`;
  const picture = { type: "image", source: { kind: "base64", mediaType: "image/png", data: PICTURE } } as const;
  const exchange = begun.prompt(cell.kind === "images" ? [picture, text(words)] : words);
  const events: RuntimeEvent[] = [];
  for await (const event of exchange) events.push(event);
  const { end } = await exchange.result();
  await using session = await forkedFrom(begun, { made, cell, story, events });
  const all = sentTo(simulator.requests(), simulator.ledger());
  return { ...sorted(all), model: session.model, events, tasks: session.tasks, end, besideLeader: leader.beside };
};

type Forking = {
  readonly made: SessionOptions;
  readonly cell: Cell;
  readonly story: Story;
  readonly events: RuntimeEvent[];
};

/** The session in which a program has forked, and prompted once more; as it is, where the model did. */
const forkedFrom = async (begun: Session, { made, cell, story, events }: Forking): Promise<Session> => {
  const { by = "the model" } = story;
  if (by === "the model") return begun;
  if (by === "the program, compacted") await begun.compact();
  const session = by === "the program, resumed" ? await resumed(begun, made) : begun;
  using reader = session.events();
  const handles = session.forkAll(Array.from({ length: cell.forks }, (_, part) => ({ prompt: promptOf(part) })));
  await Promise.all(handles.map((handle) => handle.result()));
  await session.prompt(NEXT).result();
  for await (const event of reader) {
    events.push(event);
    if (event.type === "exchange_ended" && event.agent === "main") break;
  }
  return session;
};

const resumed = async (session: Session, options: SessionOptions): Promise<Session> => {
  await session.close();
  return resumeSession(session.id, options);
};

const opened = async (options: SessionOptions, opening: Story["opening"]): Promise<Session> => {
  const session = await createSession(options);
  if (opening === undefined) return session;
  await session.prompt(BEGIN).result();
  if (opening === "compacted") {
    await session.compact();
    return session;
  }
  return resumed(session, options);
};

const sentTo = (requests: readonly KeptRequest[], ledger: readonly LedgerRow[]): readonly Sent[] => {
  const rows = new Map(ledger.map((row) => [row.sequence, row]));
  return requests.map(({ sequence, body }) => {
    const row = rows.get(sequence);
    if (!row) throw new Error(`request ${sequence} has no row`);
    return { body, json: JSON.parse(body.toString()), row };
  });
};

const sorted = (all: readonly Sent[]): Pick<SeenFamily, "parentLast" | "parentNext" | "firsts" | "later"> => {
  const isChild = ({ json }: Sent): boolean => json.messages.some(isDirected);
  const isFirst = ({ json }: Sent): boolean => isDirected(json.messages.at(-1));
  const own = all.filter((sent) => !isChild(sent));
  const at = own.findIndex(({ json }) => isNext(json.messages.at(-1)));
  const [parentLast, parentNext] = [own[at - 1], own[at]];
  if (!parentLast || !parentNext) throw new Error("the parent did not go on after its forks");
  const children = all.filter(isChild);
  return {
    parentLast,
    parentNext,
    firsts: children.filter(isFirst),
    later: children.filter((sent) => !isFirst(sent)),
  };
};
