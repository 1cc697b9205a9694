/** Turns what a model or a program asks for into a plan, and decides whether it may be started. Pure.
 *  A request that would break the shared cache is refused with the reason; no part of it is dropped silently. Every
 *  default is filled here. A plan survives `structuredClone` and JSON. Every way to start an agent asks `forkAllowed`,
 *  so no way bypasses it.
 *  Elsewhere: the type of a plan (../ports.ts), starting what was asked for (../children: launcher.ts). */

import type { ToolFilter } from "@prefork/guard";
import { type ChildProtocol, InputError, type Json, type JsonObject, type Message } from "@prefork/wire";
import { checkAmounts, checkCounts, checkDurations } from "../agent/index.ts";
import { oneLine } from "../context/index.ts";
import type { DelegateMode, ForkLimits, ForkPlan, Isolation, SpendLimits, TailChoice } from "../ports.ts";

/** How agents are started in a session. */
export type ForkSettings = {
  /** A call must say "fork" to get one. */
  readonly isExplicit: boolean;
  /** Forks are switched off, so a call waits for its agent. */
  readonly forksOff: boolean;
  /** After this time a call no longer waits; 0: it always waits. */
  readonly autoBackgroundMs: number;
  readonly tail: Required<TailChoice>;
  readonly mostPerFamily: number;
  readonly mostPerSession: number;
  readonly fork: ForkLimits;
  readonly family: SpendLimits;
  /** How long the other calls of a turn may delay its forks. */
  readonly otherToolsMs: number;
  /** When an idle parent is notified: when a family is done or a task failed, or for each task. */
  readonly wake: "family" | "each";
};

/** Called for each message that enters a fork's context. */
export type Observer = (message: Message) => unknown;

/** A fork as a program asks for it. */
export type ForkOptions = TailChoice & {
  /** The task. Give this or `messages`. */
  readonly prompt?: string;
  /** The caller's own messages; the last one is a user message. */
  readonly messages?: readonly Message[];
  /** "none": the prompt without the text on how a fork behaves. Default: standard; none with messages. */
  readonly protocol?: ChildProtocol;
  readonly label?: string; // default: the first words of the prompt
  readonly querySource?: string; // default: agent:builtin:fork
  readonly mode?: DelegateMode; // default: sync
  readonly timeoutMs?: number; // of work; waiting for a person does not count
  readonly maxTurns?: number; // default: 200
  readonly limits?: SpendLimits;
  readonly signal?: AbortSignal; // ends the fork; its end never aborts this
  /** "worktree": it works in a worktree with the checkout's state, uncommitted files included; its work is merged later. */
  readonly isolation?: Isolation;
  /** Narrows what it may call while it runs; its tools are declared as they were. */
  readonly filter?: ToolFilter;
  /** Called for every message that enters its context. An observer that throws is reported and does no harm. */
  readonly onMessage?: Observer | readonly Observer[];
  /** No journal and no row, for forks that nobody will ask about again. Default: false. */
  readonly skipTranscript?: boolean;
  readonly overrides?: {
    /** What tools, events and traces call it. */
    readonly agentId?: string;
    /** Added at the tail, where it changes no earlier byte. */
    readonly criticalSystemReminder?: string;
  };
};

type RequestedAgent = Pick<ForkOptions, "prompt" | "label" | "mode" | "isolation"> & { readonly agentType?: string };

export type AgentCallRequest =
  /** `blocksCaller`: the call is answered when the agent has ended. `whyNotFork`: why it is not a fork, if the call asked for
   *  one. */
  | {
      readonly ok: true;
      readonly requested: RequestedAgent;
      readonly blocksCaller: boolean;
      readonly whyNotFork?: string;
    }
  | { readonly ok: false; readonly reason: string };

export const GENERAL_PURPOSE = "general-purpose";

const no = (reason: string): AgentCallRequest => ({ ok: false, reason });

/** What an Agent call asks for. */
export const readAgentCall = (
  args: JsonObject,
  { settings, gate }: { readonly settings: ForkSettings; readonly gate: ForkGate },
): AgentCallRequest => {
  const { description, prompt, subagent_type: type, isolation, run_in_background: inBackground } = args;
  if (typeof description !== "string" || typeof prompt !== "string") return no("Agent needs description and prompt.");
  if (!gate.allowed && gate.isFinal) return no(`Nothing was started: ${gate.reason}. Do the work yourself.`);
  const blocksCaller = settings.forksOff && inBackground !== true;
  const mode = blocksCaller ? "sync" : "fire-and-forget";
  const requested: RequestedAgent = {
    ...{ prompt, label: description, mode },
    ...(isolation === "worktree" ? { isolation } : {}),
  };
  switch (type) {
    case "fork":
      return gate.allowed ? { ok: true, requested, blocksCaller: false } : no(`No fork was started: ${gate.reason}.`);
    case undefined:
      if (gate.allowed && !settings.isExplicit) return { ok: true, requested, blocksCaller: false };
      return {
        ok: true,
        requested: { ...requested, agentType: GENERAL_PURPOSE },
        blocksCaller,
        ...(gate.allowed || settings.forksOff ? {} : { whyNotFork: gate.reason }),
      };
    case GENERAL_PURPOSE:
      return { ok: true, requested: { ...requested, agentType: GENERAL_PURPOSE }, blocksCaller };
    default:
      return no(`Unknown subagent_type ${JSON.stringify(type)}. Use "${GENERAL_PURPOSE}", or omit it to start a fork.`);
  }
};

/** Fills everything that a call or a program left open from the settings. */
export const createPlan = (
  options: ForkOptions & { readonly agentType?: string },
  names: { readonly task: string; readonly runId: string },
  settings: ForkSettings,
): ForkPlan => {
  const {
    prompt = "",
    messages,
    overrides,
    agentType = "fork",
    timeoutMs,
    maxTurns,
    mode = "sync",
    isolation,
  } = options;
  if (prompt.trim() === "" && (messages ?? []).length === 0) throw new InputError("a fork needs a prompt or messages");
  if (prompt !== "" && messages) throw new InputError("a fork takes a prompt or messages, not both");
  checkDurations({ timeoutMs });
  checkCounts({ maxTurns, timeoutMs });
  checkAmounts({ "limits.usd": options.limits?.usd, "limits.tokens": options.limits?.tokens });
  const { agentId, criticalSystemReminder: reminder } = overrides ?? {};
  const { inFlight = settings.tail.inFlight, placeholders = settings.tail.placeholders } = options;
  const isFork = agentType === "fork";
  return {
    ...names,
    label: toLabel(options.label ?? (prompt === "" ? wordsOf(messages ?? []) : prompt)),
    agentType,
    querySource: options.querySource ?? (isFork ? FORK_SOURCE : `agent:${agentType}`),
    mode,
    directive: prompt,
    protocol: options.protocol ?? (messages ? "none" : "standard"),
    ...(messages ? { messages } : {}),
    tail: { inFlight, placeholders },
    limits: {
      ...settings.fork,
      ...options.limits,
      ...(timeoutMs === undefined ? {} : { ms: timeoutMs }),
      ...(maxTurns === undefined ? {} : { turns: maxTurns }),
    },
    ...(reminder === undefined ? {} : { reminder }),
    ...(agentId === undefined ? {} : { agentId }),
    ...(isolation === undefined ? {} : { isolation: checkedIsolation(options) }),
    skipTranscript: options.skipTranscript ?? false,
    isFiltered: options.filter !== undefined,
  };
};

/** A worktree's work is found by its task, so it needs a row. */
const checkedIsolation = ({ isolation, skipTranscript }: ForkOptions): Isolation => {
  if (isolation !== "worktree") throw new InputError(`isolation must be "worktree"`);
  if (skipTranscript) throw new InputError("a fork in a worktree needs its transcript; remove skipTranscript");
  return isolation;
};

const wordsOf = (messages: readonly Message[]): string =>
  messages.flatMap(({ content }) => content.flatMap((block) => (block.type === "text" ? [block.text] : []))).join(" ");

// --- plans ---------------------------------------------------------------------------------------------------------------

/** The query source of forks. Like every source except `main` and `sdk`, it only reads snapshots and writes none. */
export const FORK_SOURCE = "agent:builtin:fork";

export const MOST_TURNS = 200;
const LABEL_CHARACTERS = 120;

/** The short form of a caller's words for rows and questions. */
export const toLabel = (words: string): string => oneLine(words, LABEL_CHARACTERS);

/** The caller's messages must end with one that the model answers. */
export const checkMessages = (messages: readonly Message[]): void => {
  if (messages.at(-1)?.role !== "user") throw new InputError("the messages of a fork must end with a user message");
  for (const { content } of messages) {
    if (!Array.isArray(content)) throw new InputError("the content of a fork's message must be a list of blocks");
    if (content.every((block) => block.type === "text" && block.text === ""))
      throw new InputError("a message of the fork is empty");
  }
};

/** The form stored with the task. */
export const planToJson = (plan: ForkPlan): Json => plan as unknown as Json;

/** Undefined if the value is not a plan. */
export const parsePlan = (value: Json | undefined): ForkPlan | undefined => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { task, label, directive, agentType, limits } = value as Readonly<Record<string, Json>>;
  const texts = [task, label, directive, agentType].every((each) => typeof each === "string");
  return texts && typeof limits === "object" ? (value as unknown as ForkPlan) : undefined;
};

// --- the gate ------------------------------------------------------------------------------------------------------------

export type ForkConditions = {
  /** The setting `forks` and the variable PREFORK_FORK_SUBAGENT. */
  readonly isEnabled: boolean;
  readonly interactive: boolean;
  /** A permission policy was stated, so questions have an answer without a person. */
  readonly policyStated: boolean;
  readonly insideFork: boolean;
  /** Tokens left in the window for a child to work in. */
  readonly headroom: number;
};

export type ForkGate =
  | { readonly allowed: true }
  /** `isFinal`: no other agent may be started in its place either. */
  | { readonly allowed: false; readonly reason: string; readonly isFinal: boolean };

/** A child that cannot even read a few files is useless. */
export const LEAST_HEADROOM = 8_000;

export const forkAllowed = (conditions: ForkConditions): ForkGate => {
  const { isEnabled, interactive, policyStated, insideFork, headroom } = conditions;
  const no = (reason: string): ForkGate => ({ allowed: false, reason, isFinal: insideFork });
  if (insideFork) return no("a fork does its work itself and starts no other agents");
  if (!isEnabled) return no("forks are switched off");
  if (!interactive && !policyStated)
    return no("nobody can be asked here and no permission policy was stated (--permission-mode, --allow or --deny)");
  if (headroom < LEAST_HEADROOM)
    return no(`only ${Math.max(0, headroom)} tokens of the window are left for a child; compact first`);
  return { allowed: true };
};
