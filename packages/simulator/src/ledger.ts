/** What did every request expect, read, write and cost?
 *  Invariant: one row per request for an answer, in order of arrival, including failed ones; rows are returned as
 *  copies.
 *  Elsewhere: where the figures come from (engine.ts). */

import type { Ttl, Usage } from "@prefork/wire";
import type { Billed } from "./bill.ts";
import type { MissCause } from "./cache/index.ts";
import type { CacheRules } from "./rules/index.ts";

/** open: still answering. refused: an error status. interrupted: cut off by a fault. aborted: the client
 *  disconnected. */
export type Outcome = "open" | "complete" | "refused" | "interrupted" | "aborted";

export type LedgerRow = {
  readonly sequence: number;
  readonly requestId: string;
  /** Null if no message began. */
  readonly messageId: string | null;
  /** When the request started, on the simulator's clock. */
  readonly timeMs: number;
  /** Keys are never stored: each one gets a number. */
  readonly workspace: string;
  readonly model: string;
  readonly stream: boolean;
  readonly status: number;
  readonly outcome: Outcome;
  readonly error: string | null;
  readonly promptTokens: number;
  readonly read: number;
  /** By lifetime; other providers' lifetimes only if they can be requested. */
  readonly written: { readonly "5m": number; readonly "1h": number; readonly "30m"?: number; readonly "12h"?: number };
  readonly plain: number;
  readonly output: number;
  readonly expectedRead: number;
  /** What the same prompt would read if it were sent again while its entries live. */
  readonly nextRead: number;
  readonly firstDivergence: string | null;
  readonly missCause: MissCause | null;
  readonly missWords: string | null;
  readonly billed: Billed;
};

export type RowOpening = Pick<LedgerRow, "sequence" | "requestId" | "timeMs" | "workspace" | "model" | "stream">;

const emptyRow: Omit<LedgerRow, keyof RowOpening> = {
  messageId: null,
  status: 0,
  outcome: "open",
  error: null,
  promptTokens: 0,
  read: 0,
  written: { "5m": 0, "1h": 0 },
  plain: 0,
  output: 0,
  expectedRead: 0,
  nextRead: 0,
  firstDivergence: null,
  missCause: null,
  missWords: null,
  billed: { inputUnits: 0, usd: 0 },
};

export const usageColumns = (
  usage: Usage,
  ttls: CacheRules["ttls"],
): Pick<LedgerRow, "promptTokens" | "read" | "written" | "plain" | "output"> => {
  const others = (["30m", "12h"] as const).filter((ttl) => ttls[ttl] !== undefined);
  const written = {
    "5m": usage.written["5m"] ?? 0,
    "1h": usage.written["1h"] ?? 0,
    ...Object.fromEntries(others.map((ttl: Ttl) => [ttl, usage.written[ttl] ?? 0])),
  };
  const all = Object.values(written).reduce((total, tokens) => total + tokens, 0);
  return {
    promptTokens: usage.plain + usage.read + all,
    read: usage.read,
    written,
    plain: usage.plain,
    output: usage.output,
  };
};

export class Ledger {
  readonly #rows: LedgerRow[] = [];
  readonly #places = new Map<string, number>();

  open(opening: RowOpening): void {
    this.#places.set(opening.requestId, this.#rows.length);
    this.#rows.push({ ...opening, ...emptyRow });
  }

  update(requestId: string, change: Partial<LedgerRow>): void {
    const place = this.#places.get(requestId) ?? -1;
    const row = this.#rows[place];
    if (row !== undefined) this.#rows[place] = { ...row, ...change };
  }

  rows(since = 0): readonly LedgerRow[] {
    return this.#rows.filter((row) => row.sequence > since).map((row) => structuredClone(row));
  }
}
