/** What lies around a session, and what the model has been told of it.
 *  Invariant: what was told is in the journal with the message that told it, so a resumed session tells no change twice
 *  and forgets none.
 *  Elsewhere: reading it and wording changes (../context). */

import { existsSync } from "node:fs";
import type { Mode } from "@prefork/guard";
import { type Json, type TextBlock, text } from "@prefork/wire";
import {
  changesBetween,
  type Environment,
  type KnownSurroundings,
  localDate,
  type Note,
  noteText,
  readConventions,
  readEnvironment,
  type Surroundings,
  toKnownSurroundings,
} from "../context/index.ts";
import type { PlainEntry } from "../journal/index.ts";
import type { AgentGuard } from "./guard.ts";
import type { AgentParts } from "./options.ts";

type SurroundingsParts = Pick<AgentParts, "options" | "extensions" | "state">;

/** Notes to be entered, and what is true once they are. */
export type SurroundingsNotes = {
  readonly notes: readonly Note[];
  readonly blocks: readonly TextBlock[];
  readonly also: readonly PlainEntry[];
  /** To be called when they stand in the context. */
  readonly entered: () => void;
};

const NOTHING: SurroundingsNotes = { notes: [], blocks: [], also: [], entered: () => {} };

const SLOT = "told";

export class SurroundingsWatch {
  readonly #parts: SurroundingsParts;
  readonly #guard: Pick<AgentGuard, "keptBack">;
  #told: KnownSurroundings | undefined;
  #environment: Environment | undefined;
  #today: { readonly minute: number; readonly date: string } | undefined;

  constructor(parts: SurroundingsParts, guard: Pick<AgentGuard, "keptBack">) {
    this.#parts = parts;
    this.#guard = guard;
    this.#told = readTold(parts.state.get(SLOT));
  }

  /** All of it, read anew. */
  async read(mode: Mode): Promise<Surroundings> {
    const { options, extensions } = this.#parts;
    const { cwd, home, clock } = options;
    const question = { home, cwd, workspace: cwd, keptBack: this.#guard.keptBack() };
    const [conventions, environment] = await Promise.all([
      readConventions(question).catch(async (error: unknown) => {
        if (existsSync(cwd)) throw error;
        return readConventions({ ...question, project: false }); // the folder is gone, and its files with it
      }),
      readEnvironment({ cwd, home, clock }),
    ]);
    this.#environment = environment;
    return { conventions, environment, mode, sections: extensions.sections, ...this.#offered() };
  }

  /** The conversation begins, or begins anew, with all of it. */
  startAnew(around: Surroundings): Pick<SurroundingsNotes, "also" | "entered"> {
    return this.#telling(toKnownSurroundings(around));
  }

  /** What has changed since it was told. Without `around` only what can be known at no cost: date, mode and
   *  the tools of servers. */
  changes(mode: Mode, around?: Surroundings): SurroundingsNotes {
    const before = this.#told;
    const now = around ?? this.#cheaply(mode);
    if (before === undefined || now === undefined) return NOTHING;
    const notes = changesBetween(before, now);
    if (notes.length === 0) return NOTHING;
    const told = around
      ? toKnownSurroundings(around, before)
      : { ...before, ...toKnownSurroundings(now, before), files: before.files };
    return { notes, blocks: notes.map((note) => text(noteText(note))), ...this.#telling(told) };
  }

  #cheaply(mode: Mode): Surroundings | undefined {
    const environment = this.#environment;
    return environment && { mode, environment: { ...environment, date: this.#date() }, ...this.#offered() };
  }

  #offered(): Pick<Surroundings, "offered"> {
    const offered = this.#parts.extensions.offered?.();
    return offered === undefined ? {} : { offered };
  }

  /** Asked after every tool batch, and the calendar is slow to answer: once a minute is enough, since every time zone's
   *  day begins with a minute. */
  #date(): string {
    const now = this.#parts.options.clock.now();
    const minute = Math.floor(now / 60_000);
    if (this.#today?.minute !== minute) this.#today = { minute, date: localDate(now) };
    return this.#today.date;
  }

  #telling(told: KnownSurroundings): Pick<SurroundingsNotes, "also" | "entered"> {
    return {
      also: [{ kind: "state", slot: SLOT, value: told as unknown as Json }],
      entered: () => {
        this.#told = told;
      },
    };
  }
}

/** Whatever is not what we wrote counts as nothing told: then no change is told either. */
const readTold = (value: Json | undefined): KnownSurroundings | undefined =>
  typeof value === "object" && value !== null && "files" in value && Array.isArray(value.files)
    ? (value as unknown as KnownSurroundings)
    : undefined;
