/** What would the same work have cost without forks, without a cache, or with a cold cache and all at once? Pure.
 *  Invariant: every request keeps its prompt and its answer unless the alternative itself changes them, and each
 *  alternative says how it is calculated. Requests that it does not affect are billed as they were.
 *  Elsewhere: what was billed (ledger.ts), sums and money (explain.ts). */

import { noUsage, promptTokens, type Ttl, type Usage } from "@prefork/wire";
import { cachedTokens } from "./entries.ts";
import type { RequestRow } from "./ledger.ts";

export type AlternativeId = "no-fork" | "no-cache" | "cold-at-once";

/** Another way to do the same: the rows with the usage they would have had. */
export type Alternative = { readonly id: AlternativeId; readonly how: string; readonly rows: readonly RequestRow[] };

export const alternativesTo = (rows: readonly RequestRow[]): readonly Alternative[] => {
  const hasForks = rows.some(isFork);
  return [
    ...(hasForks && rows.some(({ agent }) => agent === MAIN) ? [withoutForks(rows)] : []),
    withoutCache(rows),
    ...(hasForks ? [coldAtOnce(rows)] : []),
  ];
};

const MAIN = "main";

const isFork = ({ agent, family }: RequestRow): boolean => agent !== MAIN && family !== undefined;

const withUsage = (row: RequestRow, usage: Omit<Usage, "output" | "thinking">): RequestRow => ({
  ...row,
  usage: { ...row.usage, ...usage },
});

const withoutCache = (rows: readonly RequestRow[]): Alternative => ({
  id: "no-cache",
  how: "the same requests with every prompt as uncached input",
  rows: rows.map((row) => withUsage(row, { plain: promptTokens(row.usage), read: 0, written: {} })),
});

const coldAtOnce = (rows: readonly RequestRow[]): Alternative => ({
  id: "cold-at-once",
  how: "the first requests of the forks and the parent's next one sent together with a cold cache: each writes the whole prefix",
  rows: rows.map((row) => {
    if (!row.family) return row;
    const { plain } = row.usage;
    return withUsage(row, { plain, read: 0, written: { [lifetimeOf(row)]: cachedTokens(row.usage) } });
  }),
});

const lifetimeOf = ({ usage }: RequestRow): Ttl =>
  (Object.entries(usage.written) as readonly [Ttl, number][]).find(([, tokens]) => tokens > 0)?.[0] ?? "5m";

// --- no fork -----------------------------------------------------------------------------------------------------------

/** A fork's turns as if they were in the parent's own conversation. */
type ForkPart = {
  readonly agent: string;
  readonly epoch: number;
  /** Its index among all rows: later requests of the parent have it in their context. */
  readonly begins: number;
  readonly rows: readonly RequestRow[];
  /** How much of its first prompt was cached already in this scenario. */
  readonly from: number;
  /** Tokens that it leaves in the context. */
  readonly leaves: number;
};

const withoutForks = (rows: readonly RequestRow[]): Alternative => {
  const parts = forkPartsIn(rows);
  const earlier = (epoch: number, place: number): number =>
    parts.reduce((sum, part) => sum + (part.epoch === epoch && part.begins < place ? part.leaves : 0), 0);
  const changed = new Map<RequestRow, RequestRow>();
  for (const part of parts) {
    let known = part.from;
    for (const row of part.rows) {
      const prompt = promptTokens(row.usage);
      const added = Math.max(0, prompt - known);
      known = prompt;
      const read = prompt - added + earlier(part.epoch, part.begins);
      changed.set(row, withUsage(row, { plain: 0, read, written: { [lifetimeOf(row)]: added } }));
    }
  }
  for (const [place, row] of rows.entries()) {
    const more = row.agent === MAIN && row.isAnswered ? earlier(row.epoch, place) : 0;
    if (more > 0) changed.set(row, withUsage(row, { ...row.usage, read: row.usage.read + more }));
  }
  return {
    id: "no-fork",
    how: "the forks' turns one after another in the parent's conversation: only what is new is written, and all of it stays in the context of every later request",
    rows: rows.map((row) => changed.get(row) ?? row),
  };
};

const forkPartsIn = (rows: readonly RequestRow[]): readonly ForkPart[] => {
  const families = new Set<string>();
  const agents = new Set<string>();
  return rows.flatMap((first, begins) => {
    const { agent, epoch, family } = first;
    if (!isFork(first) || !family || !first.isAnswered || agents.has(agent)) return [];
    agents.add(agent);
    const isFirst = !families.has(family.family);
    families.add(family.family);
    // After a rewrite of its own, nothing of what it inherited is left. Those turns are billed as they were.
    const own = rows.filter(
      (row) => row.agent === agent && row.epoch === epoch && row.kind === "turn" && row.isAnswered,
    );
    const last = own.at(-1)?.usage ?? noUsage;
    return [
      {
        ...{ agent, epoch, begins, rows: own },
        from: isFirst ? family.inherited : family.shared,
        leaves: Math.max(0, promptTokens(last) + last.output - family.shared),
      },
    ];
  });
};
