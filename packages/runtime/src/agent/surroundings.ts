/** What surrounds a session (conventions, environment, mode, tool servers), and what of it the model already knows?
 *  What the model was told is in the journal with the message that told it, so a resumed session reports no change
 *  twice and misses none.
 *  Elsewhere: reading the surroundings and wording the changes (../context). */

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

/** Notes to enter, and the entries that are written with them. */
export type SurroundingsNotes = {
  readonly notes: readonly Note[];
  readonly blocks: readonly TextBlock[];
  readonly also: readonly PlainEntry[];
  /** Call this when they are in the context. */
  readonly entered: () => void;
};

const NOTHING: SurroundingsNotes = { notes: [], blocks: [], also: [], entered: () => {} };

const SLOT = "told";

export class SurroundingsWatch {
  readonly #parts: SurroundingsParts;
  readonly #guard: Pick<AgentGuard, "keptBack">;
  #known: KnownSurroundings | undefined;
  #environment: Environment | undefined;
  #today: { readonly minute: number; readonly date: string } | undefined;

  constructor(parts: SurroundingsParts, guard: Pick<AgentGuard, "keptBack">) {
    this.#parts = parts;
    this.#guard = guard;
    this.#known = readKnown(parts.state.get(SLOT));
  }

  /** The conversation went back to where the model knew less. */
  goBack(state: ReadonlyMap<string, Json>): void {
    this.#known = readKnown(state.get(SLOT));
  }

  /** Reads all of it again. */
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

  /** The conversation begins, or begins again after a compaction, with all of it. */
  startAnew(surroundings: Surroundings): Pick<SurroundingsNotes, "also" | "entered"> {
    return this.#record(toKnownSurroundings(surroundings));
  }

  /** What has changed since the model was last told. Without `surroundings`, only what is known without reading: date,
   *  mode and the tools of servers. */
  changes(mode: Mode, surroundings?: Surroundings): SurroundingsNotes {
    const before = this.#known;
    const now = surroundings ?? this.#withoutReading(mode);
    if (before === undefined || now === undefined) return NOTHING;
    const notes = changesBetween(before, now);
    if (notes.length === 0) return NOTHING;
    const known = surroundings
      ? toKnownSurroundings(surroundings, before)
      : { ...before, ...toKnownSurroundings(now, before), files: before.files };
    return { notes, blocks: notes.map((note) => text(noteText(note))), ...this.#record(known) };
  }

  #withoutReading(mode: Mode): Surroundings | undefined {
    const environment = this.#environment;
    return environment && { mode, environment: { ...environment, date: this.#date() }, ...this.#offered() };
  }

  #offered(): Pick<Surroundings, "offered"> {
    const offered = this.#parts.extensions.offered?.();
    return offered === undefined ? {} : { offered };
  }

  /** Formatting a date is slow and happens after every tool batch. Once a minute is enough, because in every time zone a day
   *  begins at a full minute. */
  #date(): string {
    const now = this.#parts.options.clock.now();
    const minute = Math.floor(now / 60_000);
    if (this.#today?.minute !== minute) this.#today = { minute, date: localDate(now) };
    return this.#today.date;
  }

  #record(known: KnownSurroundings): Pick<SurroundingsNotes, "also" | "entered"> {
    return {
      also: [{ kind: "state", slot: SLOT, value: known as unknown as Json }],
      entered: () => {
        this.#known = known;
      },
    };
  }
}

/** A value that we did not write is ignored, and then no change is reported. */
const readKnown = (value: Json | undefined): KnownSurroundings | undefined =>
  typeof value === "object" && value !== null && "files" in value && Array.isArray(value.files)
    ? (value as unknown as KnownSurroundings)
    : undefined;
