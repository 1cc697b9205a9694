/** One child as its host runs it: from its first turn to its report.
 *  However it ends, its work is saved before its end is reported, its report is checked and never refused, and everything
 *  that was opened for it is closed.
 *  Elsewhere: opening it (local-host.ts), where it works (workspace.ts), what a report says (report.ts), the loop (../agent). */

import { addUsage, noUsage } from "@prefork/wire";
import { type Agent, CUT_AGAIN, type ExchangeResult, runExchange } from "../agent/index.ts";
import { escapeTags } from "../context/index.ts";
import type { ExchangeEnd } from "../events.ts";
import { MOST_TURNS } from "../fork/index.ts";
import type { ChildEnding, ChildParent, ChildResult, ForkPlan, Mail, OpenChild, Report, TaskEnd } from "../ports.ts";
import { type Inbox, summarizeReport } from "../tasks/index.ts";
import { readReport } from "./report.ts";
import { errorMessage } from "./runs.ts";
import type { ChildWorkspace } from "./workspace.ts";

export type ChildParts = Pick<OpenChild, "session" | "cacheKeyHash" | "diverged"> & {
  readonly plan: ForkPlan;
  readonly parent: ChildParent;
  readonly agent: Agent;
  readonly workspace: ChildWorkspace;
  readonly inbox: Inbox;
  readonly newNoticeId: () => string;
  readonly signal: AbortSignal;
  /** Checks whether it changed only what it was allowed to. `breach`: why the run failed. */
  readonly audit?: (() => Promise<{ readonly breach?: string; readonly notes: readonly string[] }>) | undefined;
  /** Notes on what its report claims wrongly or leaves out. */
  readonly check: (report: Report | undefined, text: string) => Promise<readonly string[]>;
  readonly close: () => Promise<void>;
};

export class ChildRun implements OpenChild {
  readonly #parts: ChildParts;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  #ending: ChildEnding | undefined;
  #isOver = false;

  constructor(parts: ChildParts) {
    this.#parts = parts;
    this.#signal = AbortSignal.any([parts.signal, this.#stop.signal]);
  }

  get session(): string | undefined {
    return this.#parts.session;
  }
  get cacheKeyHash(): string {
    return this.#parts.cacheKeyHash;
  }
  get diverged(): string | undefined {
    return this.#parts.diverged;
  }

  steer(mail: Mail): boolean {
    if (this.#isOver) return false;
    this.#parts.inbox.add({ id: mail.id, task: "parent", text: messageText(mail) });
    return true;
  }

  refuseCalls(reason: string): void {
    this.#parts.agent.guard.refuseAll(reason);
  }

  stop(ending?: ChildEnding): void {
    this.#ending ??= ending;
    this.#stop.abort();
  }

  async result(): Promise<ChildResult> {
    const { parent, close } = this.#parts;
    const exchange = await this.#untilDone().catch(
      (error: unknown): ExchangeResult => ({ ...NOTHING, end: "provider-failed", reason: errorMessage(error) }),
    );
    this.#isOver = true;
    parent.append({ kind: "exchange_ended", end: exchange.end });
    const result = await this.#outcome(exchange);
    await close().catch((error: unknown) => parent.emit({ type: "journal_troubled", problem: errorMessage(error) }));
    return result;
  }

  /** A message that arrives during its last turn is still answered. */
  async #untilDone(): Promise<ExchangeResult> {
    const { agent, plan } = this.#parts;
    const { turns: most = MOST_TURNS } = plan.limits;
    const once = (maxTurns: number): Promise<ExchangeResult> =>
      runExchange(agent.run({ maxTurns }, this.#signal), this.#signal);
    let result = await once(most);
    while (result.end === "done" && (this.#hasMore() || (await this.#mustReconsider()))) {
      const next = await once(Math.max(0, most - result.turns));
      result = {
        ...next,
        text: next.text === "" ? result.text : next.text,
        turns: result.turns + next.turns,
        usage: addUsage(result.usage, next.usage),
        usd: result.usd + next.usd,
      };
    }
    return result;
  }

  /** Enters messages that arrived after its last turn. False: there are none. */
  #hasMore(): boolean {
    const { inbox, agent } = this.#parts;
    return inbox.notices.length > 0 && agent.enterNotices();
  }

  /** It believes it is done. If its work conflicts with the checkout, it is told so and continues. */
  async #mustReconsider(): Promise<boolean> {
    const { workspace, inbox, newNoticeId } = this.#parts;
    const conflicts = await workspace.conflicts();
    if (conflicts !== undefined) inbox.add({ id: newNoticeId(), task: "parent", text: escapeTags(conflicts) });
    return this.#hasMore();
  }

  async #outcome(exchange: ExchangeResult): Promise<ChildResult> {
    const { audit, workspace, plan, check } = this.#parts;
    const { text: answer, turns, usage, usd } = exchange;
    const audited = await audit?.();
    const stopped = exchange.end === "aborted" ? this.#ending : undefined;
    const end = audited?.breach === undefined ? (stopped?.end ?? endOf(exchange.end)) : "failed";
    const reason = audited?.breach ?? stopped?.reason ?? exchange.reason;
    const spent = { turns, usage, usd };
    const summary = summarizeReport(answer, end);
    const cut = exchange.reason === CUT_AGAIN.reason ? [CUT_AGAIN.reason] : [];
    const kept = [...(audited?.notes ?? []), ...(await workspace.settle(end, answer))];
    if (end !== "reported")
      return { end, summary, text: withNotes(unfinishedText(answer, { end, reason }), kept), ...spent };
    if (plan.protocol === "none" || plan.agentType !== "fork")
      return { end, summary, text: withNotes(answer, [...cut, ...kept]), ...spent };
    const read = readReport(answer);
    const report = read.kind === "report" ? read.report : undefined;
    const form = read.kind === "text" ? [read.note] : [];
    const text = withNotes(answer, [...cut, ...form, ...(await check(report, read.text)), ...kept]);
    return { end, summary, text, ...spent, ...(report ? { report } : {}) };
  }
}

const NOTHING = { text: "", turns: 0, usage: noUsage, usd: 0 } as const;

const messageText = ({ message, by }: Mail): string =>
  `${by === "user" ? "Message of the user to you:" : "Message of the main agent to you (no human wrote it):"}\n${escapeTags(message)}\nTake it into account, finish your part and report in the same form as before.`;

const withNotes = (text: string, notes: readonly string[]): string =>
  [text, ...notes.map((note) => `[${note}]`)].join("\n\n");

const unfinishedText = (answer: string, { end, reason }: ChildEnding): string =>
  [`Ended as ${end}: ${reason}`, ...(answer === "" ? [] : [`What it had said:\n${answer}`])].join("\n");

const endOf = (end: ExchangeEnd): TaskEnd => {
  switch (end) {
    case "done":
      return "reported";
    case "aborted":
      return "aborted";
    case "max-turns":
      return "out-of-turns";
    case "over-budget":
      return "over-budget";
    case "out-of-time":
      return "timed-out";
    case "refused":
    case "context-full":
    case "provider-failed":
    case "journal-failed":
      return "failed";
  }
};
