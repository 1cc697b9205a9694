/** What can be added to an agent? One contract for tool servers, skills and a user's own code.
 *  Invariant: tools and sections are read once, before the first request. After that, nothing an extension does changes
 *  an earlier byte; what it adds later goes to the tail.
 *  Elsewhere: hooks (../ports.ts), opening a session's extensions (open.ts), a user's own modules (modules.ts). */

import type { ToolSpec, ToolUseBlock } from "@prefork/wire";
import type * as z from "zod";
import type { OfferedTools, Section } from "../context/index.ts";
import type { EventBody } from "../events.ts";
import type { Clock, DelegatedCall, Delegation, Hooks } from "../ports.ts";
import type { defineTool, failed, Tool } from "../tools/index.ts";

/** What the model is told about an extension and can call, and what the extension is notified of. */
export type Contribution = {
  readonly tools?: readonly Tool[];
  /** Text that the conversation begins with. */
  readonly sections?: readonly Section[];
  readonly on?: Hooks;
};

export type Extension = Contribution & {
  readonly name: string;
  /** For an extension that has to start or load something first. If it throws, the extension is skipped with a
   *  warning, and the session opens without it. */
  readonly open?: (context: ExtensionContext) => Promise<LiveExtension>;
};

/** The session in which an extension is opened. */
export type ExtensionContext = {
  readonly cwd: string;
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
};

/** What an open extension adds. It is closed with the session. */
export type LiveExtension = Omit<Contribution, "tools"> & {
  readonly name?: string; // default: the extension's
  /** A function is called once. `earlier`: the tool list that an earlier run of the session has sent. */
  readonly tools?: readonly Tool[] | ((earlier?: readonly ToolSpec[]) => readonly Tool[]);
  readonly close?: () => Promise<void>;
};

/** A built-in extension that implements constant tools. */
export type ServingExtension = LiveExtension & {
  /** What servers offer now. Changes are announced at the tail. */
  readonly offered?: () => OfferedTools;
  /** Implements constant tools. `fork` starts a fork; absent if forks are not possible. */
  readonly delegation?: (fork?: DelegatedCall) => Pick<Delegation, "mcpCall" | "skill">;
  /** Does this call start a fork? */
  readonly startsFork?: (call: Pick<ToolUseBlock, "name" | "input">) => boolean;
  /** From now on events are passed to `emit`. Returns what has happened so far. */
  readonly follow?: (emit: (event: EventBody) => void) => readonly EventBody[];
};

/** What a user's own module receives: it only imports types from us. */
export type ExtensionApi = {
  readonly cwd: string;
  /** For the input of its tools. */
  readonly z: typeof z;
  readonly defineTool: typeof defineTool;
  readonly failed: typeof failed;
};

/** The default export of such a module. */
export type ExtensionFactory = (api: ExtensionApi) => Extension | Promise<Extension>;
