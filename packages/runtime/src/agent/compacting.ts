/** Makes room in the context: the conversation is summarized on top of the old prefix, and continues from the summary
 *  in a new epoch.
 *  The old epoch is read and never edited. A summary that fails changes nothing. What it costs and saves is reported.
 *  Elsewhere: when it is due, and the texts (../context). */

import type { Mode } from "@prefork/guard";
import {
  costOf,
  type FrozenPrefix,
  ModelError,
  nextMarkers,
  noUsage,
  prepare,
  promptTokens,
  serviceOf,
  text,
  type Usage,
} from "@prefork/wire";
import {
  nextEpochContent,
  type ReadFile,
  readSummary,
  rewriteEconomics,
  SUMMARY_MAX_TOKENS,
  shouldCompact,
  summaryDirective,
} from "../context/index.ts";
import type { Spent } from "../ports.ts";
import { estimatePrompt, estimateTokens, fitRequest } from "./account.ts";
import { AttemptUsage, textOf } from "./answer.ts";
import type { LineageStart } from "./lineage.ts";
import type { AgentParts } from "./options.ts";
import type { SurroundingsWatch } from "./surroundings.ts";
import type { ToolWorld } from "./tool-world.ts";
import { reportRetry } from "./turn.ts";

/** An agent's parts, with what it has opened for itself and what this summary is for. */
export type CompactionParts = AgentParts & {
  readonly world: ToolWorld;
  readonly watch: SurroundingsWatch;
  readonly mode: Mode;
  readonly follows: "go-on" | "wait";
  readonly focus?: string;
  readonly signal: AbortSignal;
};

export type CompactionResult =
  /** `left`: estimated tokens at the start of the new epoch. */
  | { readonly kind: "compacted"; readonly economics: string; readonly left: number }
  /** There was no need, or nothing to gain. */
  | { readonly kind: "left"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

/** A conversation is compacted again only after it has grown by half. */
const REGROWN = 1.5;

export type CompactionCause = "threshold" | "context-full" | "asked";

type Earlier = {
  /** Tokens right after the last time room was made; 0 before. */
  readonly left: number;
  /** Tokens when the last summary failed; 0 if it succeeded. */
  readonly failedAt: number;
};

/** After a failed summary the conversation must grow by this factor before the next attempt; otherwise each turn would pay
 *  for one. */
const GROWN_SINCE_FAILED = 1.1;

/** Asked before every turn. Undefined: compact it. */
export const reasonNotToCompact = (
  why: CompactionCause,
  { line, engine: { window }, settings: { compactAt, maxTokens } }: Pick<AgentParts, "line" | "engine" | "settings">,
  { left, failedAt }: Earlier,
): string | undefined => {
  const { messages } = line.prefix;
  if (messages === 0) return "the conversation is empty";
  if (why === "threshold") {
    if (compactAt >= 1) return "switched off";
    const tokens = estimatePrompt(line.prefix.byteLength, line.state);
    if (!shouldCompact({ promptTokens: tokens, window, maxTokens, threshold: compactAt })) return "there is room";
    // If a summary did not bring it below the threshold, another one would not either, and would only lose detail.
    if (tokens < left * REGROWN) return "there would be nothing to gain";
    if (tokens < failedAt * GROWN_SINCE_FAILED) return "the last summary failed";
  }
  // A summary of a summary would only lose detail.
  return messages <= 2 && why !== "asked" ? "the conversation has just begun" : undefined;
};

/** Call it only if `reasonNotToCompact` gives no reason. */
export const compact = async (why: CompactionCause, compacting: CompactionParts): Promise<CompactionResult> => {
  const { line, emit, signal } = compacting;
  const tokens = estimatePrompt(line.prefix.byteLength, line.state);
  emit({ type: "compaction_started", tokens, why });
  const summed = await requestSummary(compacting, signal);
  if (!summed.ok) {
    emit({ type: "compaction_failed", reason: summed.reason });
    return { kind: "failed", reason: summed.reason };
  }
  const bytesBefore = line.prefix.byteLength;
  const { economics } = await startEpoch(compacting, { ...summed, tokens });
  const bytesAfter = line.prefix.byteLength;
  emit({ type: "compaction_ended", usage: summed.usage, bytesBefore, bytesAfter, economics });
  emit({ type: "epoch_started", epoch: line.state.epoch, reason: "compaction", bytes: bytesAfter });
  return { kind: "compacted", economics, left: estimateTokens(bytesAfter) };
};

type Summed =
  | { readonly ok: true; readonly summary: string; readonly usage: Usage }
  | { readonly ok: false; readonly reason: string };

/** Asks for the summary on top of the old prefix, so that all of it is read from the cache. Nobody reads its tail again. */
const requestSummary = async (compacting: CompactionParts, signal: AbortSignal): Promise<Summed> => {
  const { line, account, journal, focus } = compacting;
  const { client, facts } = compacting.engine;
  const { now } = compacting.options.clock;
  const prefix = withDirective(line.prefix, summaryDirective(focus === undefined ? {} : { focus }));
  const promptLength = estimatePrompt(prefix.byteLength, line.state);
  const { protocol, markers: last, unanswered = false, lastSent } = line.state;
  const answered = lastSent?.tip;
  const markers = nextMarkers(prefix, last, { tail: false, unanswered, ...(answered ? { answered } : {}) });
  const ttls = markers.map(({ ttl }) => ttl);
  const { settings } = line.state.head;
  const asking = { promptTokens: promptLength, maxTokens: SUMMARY_MAX_TOKENS, facts, ttls, speed: settings.speed };
  const fitted = fitRequest(account, asking);
  if (!fitted.ok) return { ok: false, reason: `a summary does not fit into the ${fitted.shortage.limit} budget` };
  const prepared = prepare({
    protocol,
    prefix,
    markers,
    closing: { maxTokens: fitted.maxTokens, stream: true },
  });
  const startedAt = now();
  const service = serviceOf(settings, startedAt);
  const attempts = new AttemptUsage(promptLength);
  let used: Spent = { usage: noUsage, usd: 0 };
  try {
    // Only one attempt is reserved.
    const { id, model, stop, usage, message } = await client.send(prepared, signal, {
      ...{ onEvent: (event) => attempts.observe(event), mayRetry: () => false, promptTokens: promptLength },
      onRetry: reportRetry(compacting.emit),
    });
    const usd = costOf(usage, facts, service)?.total;
    used = { usage, usd: usd ?? 0 };
    const spent = usd === undefined ? {} : { usd };
    journal.appendAll([
      { entry: { kind: "response", turn: 0, id, model, stop, usage, ms: now() - startedAt, ...spent } },
    ]);
    const read = readSummary(textOf(message.content));
    return read.ok ? { ok: true, summary: read.summary, usage } : { ok: false, reason: read.reason };
  } catch (caught) {
    if (!(caught instanceof ModelError)) throw caught;
    const lost = attempts.ofAllAttempts(facts, service);
    if (lost) {
      used = { usd: 0, ...lost };
      journal.appendAll([{ entry: { kind: "billed", turn: 0, ...lost } }]);
    }
    return { ok: false, reason: caught.message };
  } finally {
    account.settle(fitted.reserved, used);
  }
};

const withDirective = (prefix: FrozenPrefix, directive: string): FrozenPrefix =>
  prefix.tip?.role === "user" && prefix.pending.length === 0
    ? prefix.extend([text(directive)])
    : prefix.append({ role: "user", content: [text(directive)] });

type SummedUp = { readonly summary: string; readonly usage: Usage; readonly tokens: number };

const startEpoch = async (
  compacting: CompactionParts,
  { summary, usage, tokens }: SummedUp,
): Promise<{ readonly economics: string }> => {
  const { line, world, watch, mode, lastPrompt, follows, journal } = compacting;
  const { facts, window } = compacting.engine;
  const { directive } = compacting.settings;
  const surroundings = await watch.read(mode);
  const content = nextEpochContent({
    surroundings,
    summary,
    todos: world.todos,
    openTasks: compacting.tasks?.() ?? [],
    files: await filesLastRead(world),
    filesTokens: Math.floor(window / 12),
    followedBy: { kind: follows },
    ...(lastPrompt === "" ? {} : { lastPrompt }),
  });
  const { also, entered } = watch.startAnew(surroundings);
  const withDirective = directive === undefined ? content : [...content, text(directive)];
  const messages = [{ role: "user" as const, content: withDirective }];
  const beginning: LineageStart = { head: line.state.head, messages, source: "compaction" };
  line.startEpoch("compaction", beginning, also);
  entered();
  await journal.flush();
  const after = estimateTokens(line.prefix.byteLength);
  const before = Math.max(tokens, promptTokens(usage));
  const { reason } = rewriteEconomics({ before, after, output: usage.output, ...(facts ? { facts } : {}) });
  return { economics: reason };
};

const MOST_FILES = 5;

/** Their present content, without files that are gone or are no longer text. */
const filesLastRead = async ({ reads, files }: ToolWorld): Promise<readonly ReadFile[]> => {
  const recent = reads.paths().toReversed().slice(0, MOST_FILES);
  const read = await Promise.all(recent.map(async (path) => ({ path, result: await files.read(path) })));
  return read.flatMap(({ path, result }) =>
    result.ok && !result.bytes.includes(0) ? [{ path, text: result.bytes.toString("utf8") }] : [],
  );
};
