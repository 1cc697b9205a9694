/** What an agent is made with, whether it is the main agent of a session or a child. Types only.
 *  `AgentParts` is passed on as one value: the guard, the tools, the loop and each turn take from it what they need, and
 *  nobody lists it again.
 *  Elsewhere: what a caller of a session may leave out (../session: options.ts), making an agent (agent.ts). */

import type { GuardContext, Mode, Policy, ToolFilter, Touches } from "@prefork/guard";
import type { Move } from "@prefork/guard/internal";
import type {
  ImageBlock,
  Json,
  JsonObject,
  KeySettings,
  TextBlock,
  ToolResultBlock,
  ToolUseBlock,
  Ttl,
} from "@prefork/wire";
import type { OfferedTools, OpenTask, ReplacementState, Section } from "../context/index.ts";
import type { CallFault, EventBody } from "../events.ts";
import type { Journal, PlainEntry, Replayed } from "../journal/index.ts";
import type { Ask, Clock, DelegatedCall, Delegation, HookedCall, Hooks, Ids } from "../ports.ts";
import type { ReadState, Registry, ShellsOptions, ToolFiles } from "../tools/index.ts";
import type { Account } from "./account.ts";
import type { AgentEngine } from "./engine.ts";
import type { Lineage } from "./lineage.ts";

/** Where an agent works, and what it takes from its session. */
export type AgentOptions = {
  readonly cwd: string;
  /** Additional folders that count as part of the workspace. */
  readonly directories: readonly string[];
  readonly home: string;
  /** Where journals are kept. */
  readonly state: string;
  readonly settings: KeySettings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly permissions: {
    readonly policy: Policy;
    /** Keeps a rule of the answer "always" beyond this session. */
    readonly remember?: (rule: string) => Promise<void>;
  };
  readonly clock: Clock;
  readonly ids: Ids;
  readonly signal?: AbortSignal;
};

/** What stays the same while an agent runs. */
export type AgentSettings = {
  /** `main`, or the id of a task. */
  readonly name: string;
  /** What it is for, if it is not the main agent. */
  readonly scope?: string;
  /** Of a fork: its directive, which is repeated after a compaction. */
  readonly directive?: string;
  readonly maxTokens: number;
  readonly ttl: Ttl;
  readonly compactAt: number;
  readonly thinks: boolean;
};

/** What may be called, and who answers questions about it. */
export type Rights = {
  readonly policy: Policy;
  readonly mode: Mode;
  readonly asks: GuardContext["asks"];
  readonly filter?: ToolFilter | undefined;
  /** Why there is no comparison before and after the run. */
  readonly unwatched?: string | undefined;
};

export type AgentParts = {
  readonly options: AgentOptions;
  readonly settings: AgentSettings;
  readonly engine: AgentEngine;
  readonly journal: Journal;
  readonly line: Lineage;
  readonly account: Account;
  readonly registry: Registry;
  readonly rights: Rights;
  readonly extensions: AgentExtensions;
  readonly delegation: Delegation;
  /** What its approved commands see. */
  readonly environment: Readonly<Record<string, string>>;
  readonly emit: (event: EventBody) => void;
  readonly lastPrompt: string;
  readonly ask?: Ask | undefined;
  readonly remember?: ((rule: string) => Promise<void>) | undefined;
  /** The forks that the calls of this turn requested. */
  readonly family?: () => StartedFamily | undefined;
  /** Notices from tasks, or from a parent, for the next turn boundary. */
  readonly notices?: () => TailNotes;
  /** Keeps a batch from waiting for its slow calls. */
  readonly slowCalls?: (calls: readonly ToolUseBlock[]) => SlowCallPolicy | undefined;
  /** Where it may work, if that is less than its guard allows. */
  readonly bounds?: WorkBounds;
  /** What runs in the background now, for a summary. */
  readonly tasks?: () => readonly OpenTask[];
  /** The state that an earlier run of the agent left in its journal. */
  readonly replayed?: Replayed | undefined;
  /** What its journal holds of its state; for a resumed fork, with what its parent had read. */
  readonly state: ReadonlyMap<string, Json>;
  /** Of a fork: what its parent knows, as copies. */
  readonly inherited?: { readonly reads: ReadState; readonly replacements: ReplacementState } | undefined;
  /** For work in a worktree: rules written for the checkout apply there. */
  readonly move?: Move;
  /** What its commands must see in addition to the workspace's folders. */
  readonly visible?: readonly string[];
  /** Of a child that works in its parent's folders: these. */
  readonly files?: ToolFiles;
  /** What must be done before something changes: files are kept, so that they can be restored. */
  readonly effects?: Effects;
  readonly shellEvents?: Pick<ShellsOptions, "onStart" | "onEnd" | "onEndShown" | "clock">;
};

export type Effects = {
  /** Before a call that may change anything. */
  readonly before: () => Promise<void>;
  /** Before a tool writes this file. */
  readonly beforeWrite: (path: string) => Promise<void>;
};

/** Forks that one turn requested. */
export type StartedFamily = {
  /** Starts them from what the line shares with them, and returns the text that only the parent reads. `lastResult`: the
   *  turn's last result, if that text must be inside it. */
  readonly launch: (line: Lineage, lastResult: ToolResultBlock | undefined) => Promise<string>;
};

/** Text for the model next to the results, and what to record once it has been entered. */
export type TailNotes = {
  readonly blocks: readonly TextBlock[];
  readonly also: readonly PlainEntry[];
  /** Called once they are in the context. */
  readonly entered: () => void;
};

/** A tool's result, as it enters the conversation. */
export type Content = readonly (TextBlock | ImageBlock)[];

/** Where an agent may work, if that is less than its guard allows. */
export type WorkBounds = {
  /** Rewrites a call whose paths belong somewhere else; its result says so. */
  readonly relocate?: (call: ToolUseBlock) => { readonly input: string; readonly note: string } | undefined;
  /** Called right before a call begins. Returns the reason if it must not begin. */
  readonly begin?: (touches: Touches | undefined) => Promise<string | undefined>;
};

/** For calls next to others that cannot wait: a call that takes too long continues in the background. */
export type SlowCallPolicy = {
  /** How long the calls of the batch may run, all together. */
  readonly ms: number;
  /** Takes over a call that still runs, and returns the text that replaces its result in the context. */
  readonly move: (moved: MovedCall) => Content;
};

export type MovedCall = {
  readonly callId: string;
  readonly tool: string;
  /** Its result when it has ended, shortened like any other. */
  readonly result: Promise<{ readonly content: Content; readonly fault?: CallFault }>;
  readonly stop: () => void;
};

/** The part of the session's extensions that an agent uses. */
export type AgentExtensions = {
  readonly sections: readonly Section[];
  readonly offered?: () => OfferedTools;
  /** `fork`: starts a fork for a skill; absent if forks are not allowed. */
  readonly delegation: (fork?: DelegatedCall) => Pick<Delegation, "mcpCall" | "skill">;
  readonly hooks?: AgentHooks;
};

/** The hooks of all extensions as an agent asks them. None of them rejects. */
export type AgentHooks = {
  /** `touches`: what the call would touch with other arguments. */
  readonly beforeCall: (
    call: HookedCall,
    judging: { readonly signal: AbortSignal; readonly touches: (args: JsonObject) => Touches | undefined },
  ) => Promise<HookVerdict>;
  /** Returns notes for the result. */
  readonly afterCall: (
    call: Parameters<NonNullable<Hooks["afterCall"]>>[0],
    signal: AbortSignal,
  ) => Promise<readonly string[]>;
  /** Returns notes that are put before the prompt. */
  readonly promptEntered: (prompt: { readonly text: string }, signal: AbortSignal) => Promise<readonly string[]>;
  readonly beforeCompaction: (
    compaction: Parameters<NonNullable<Hooks["beforeCompaction"]>>[0],
    signal: AbortSignal,
  ) => Promise<void>;
};

export type HookVerdict =
  | { readonly kind: "deny"; readonly reason: string }
  | {
      readonly kind: "go";
      /** Why a person should be asked. */
      readonly asks: readonly string[];
      readonly changed?: { readonly args: JsonObject; readonly by: string };
    };
