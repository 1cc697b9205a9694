/** What an agent is made with, whether it is the main one of a session or a child: where it works, what it sends its
 *  requests to, and what it may use.
 *  Elsewhere: what a caller of a session may leave out (../session: options.ts), making one (make-agent.ts). */

import type { Policy, Touches } from "@prefork/guard";
import type { JsonObject, KeySettings } from "@prefork/wire";
import type { Offered, Section } from "../context/index.ts";
import type { Clock, DelegatedCall, Delegation, HookedCall, Hooks, Ids } from "../ports.ts";
import type { Tool } from "../tools/index.ts";
import type { Engine } from "./engine.ts";

export type AgentOptions = {
  readonly engine: Engine;
  /** Engines that tasks of an earlier life may have been started with, where the session has moved since. */
  readonly engines?: readonly Engine[];
  readonly cwd: string;
  /** Folders beside `cwd` that count as part of the workspace. */
  readonly directories: readonly string[];
  readonly home: string;
  /** Where journals are kept. */
  readonly state: string;
  readonly tools: readonly Tool[];
  /** Tokens that fit into the model's window. */
  readonly window: number;
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

/** What an agent has of the session's extensions. */
export type AgentExtensions = {
  readonly sections: readonly Section[];
  readonly offered?: () => Offered;
  /** `fork`: starts one for a skill; absent where nobody may. */
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
  /** Gives notes for the result. */
  readonly afterCall: (
    call: Parameters<NonNullable<Hooks["afterCall"]>>[0],
    signal: AbortSignal,
  ) => Promise<readonly string[]>;
  /** Gives notes that stand before the prompt. */
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
