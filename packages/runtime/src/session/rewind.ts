/** How does a session go back to an earlier point, or to one that it had left?
 *  The journal says so first, in one entry; everything in memory then follows what the journal adds up to, exactly as
 *  if the session had been closed there and resumed. Forks that run keep what they started from.
 *  Elsewhere: the points (../observe), what a branch means (../journal). */

import { InputError } from "@prefork/wire";
import type { Agent } from "../agent/index.ts";
import type { EventBody } from "../events.ts";
import { goBack, type JournalWriter, type Replayed } from "../journal/index.ts";
import { type RewindPoint, readTree, type SessionTree } from "../observe/index.ts";
import type { RewindOptions, RewindResult } from "../ports.ts";
import type { Inbox } from "../tasks/index.ts";

export type RewindParts = {
  readonly journal: JournalWriter;
  /** For a fork: what it continues. */
  readonly inherited: Replayed | undefined;
  readonly now: () => number;
  readonly agent: Agent;
  readonly inbox: Inbox;
  /** Saves what a fork would inherit now. */
  readonly saveSnapshot: () => void;
  readonly emit: (event: EventBody) => void;
};

export const treeOf = ({ journal, now }: Pick<RewindParts, "journal" | "now">): SessionTree =>
  readTree(journal.read().entries, now());

/** Call it while no exchange runs. */
export const rewindSession = async (parts: RewindParts, options: RewindOptions): Promise<RewindResult> => {
  const { to, place = "before", restore = "conversation", preview = false } = options;
  const point = treeOf(parts).pointAt(options);
  if (restore !== "conversation") throw new InputError("this session keeps no snapshots of files");
  const prompt = point.prompt === undefined ? {} : { prompt: point.prompt };
  const node = preview ? undefined : await branchTo(parts, point);
  if (node === undefined) return prompt;
  parts.emit({ type: "rewound", node, to, place, restored: restore, files: 0 });
  return { node, ...prompt };
};

const branchTo = async (parts: RewindParts, { after }: RewindPoint): Promise<string> => {
  const { journal, agent, inbox, inherited, saveSnapshot } = parts;
  const { entries } = journal.read();
  const { entry, replayed } = goBack(entries, after, inherited ? { inherited } : {});
  requireSameEngine(agent, replayed);
  // From here to the end nothing else may run: the journal and what is in memory must agree.
  const seq = journal.append(entry);
  agent.goBack(replayed);
  inbox.goBack(replayed.notices);
  saveSnapshot();
  await journal.flush();
  return `n${seq}`;
};

/** A model cannot continue what only another one can read. */
const requireSameEngine = (agent: Agent, { openEpoch, protocol }: Replayed): void => {
  const { head, protocol: current } = agent.line.state;
  if (!openEpoch || !protocol) throw new InputError("the journal does not say what the conversation was at that point");
  if (openEpoch.head.model === head.model && protocol.name === current.name) return;
  throw new InputError(
    `at that point the conversation was with ${openEpoch.head.model}; close this session, rewind it with prefork rewind, and resume it with --model ${openEpoch.head.model}`,
  );
};
