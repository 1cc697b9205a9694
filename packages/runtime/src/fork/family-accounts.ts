/** What each family may still spend, however its members were started.
 *  Invariant: all of a family take from one account, those that are woken later too; where an earlier life of the session
 *  started it, what it spent then counts.
 *  Elsewhere: holding and settling (../agent), who starts a family (../children: host.ts). */

import { addUsage, noUsage } from "@prefork/wire";
import { Account } from "../agent/index.ts";
import type { SpendLimits, Spent } from "../ports.ts";
import type { TaskTable } from "../tasks/index.ts";

export type FamilyAccountsOptions = {
  readonly limits: SpendLimits;
  readonly table: TaskTable;
  /** The session's, which all families take from. */
  readonly session: () => Account;
};

export class FamilyAccounts {
  readonly #options: FamilyAccountsOptions;
  readonly #kept = new Map<string, Account>();

  constructor(options: FamilyAccountsOptions) {
    this.#options = options;
  }

  /** `family`: as its tasks name it. */
  of(family: string): Account {
    const known = this.#kept.get(family);
    if (known) return known;
    const account = this.#open(this.#options.table.all.filter((task) => task.family === family).reduce(added, NOTHING));
    this.#kept.set(family, account);
    return account;
  }

  /** For a family without any row, which nobody can wake. */
  unkept(): Account {
    return this.#open(NOTHING);
  }

  #open(spent: Spent): Account {
    const { limits, session } = this.#options;
    return new Account(limits, { spent, above: session() });
  }
}

const NOTHING: Spent = { usage: noUsage, usd: 0 };

const added = (sum: Spent, { spent }: { readonly spent?: Spent }): Spent =>
  spent ? { usage: addUsage(sum.usage, spent.usage), usd: sum.usd + spent.usd } : sum;
