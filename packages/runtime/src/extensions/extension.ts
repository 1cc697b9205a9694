/** What can be added to an agent, and how: one contract for tool servers, skills and a user's own code.
 *  Invariant: tools and sections are read once, before the first request; after it nothing that an extension does changes
 *  an earlier byte. What it adds later stands at the tail.
 *  Elsewhere: hooks (../ports.ts), opening all of a session (open.ts), a user's own modules (modules.ts). */

import type { ToolSpec, ToolUseBlock } from "@prefork/wire";
import type * as z from "zod";
import type { OfferedTools, Section } from "../context/index.ts";
import type { EventBody } from "../events.ts";
import type { Clock, DelegatedCall, Delegation, Hooks } from "../ports.ts";
import type { defineTool, failed, Tool } from "../tools/index.ts";

/** What a model is told of an extension and may call of it, and what the extension hears. */
export type Contribution = {
  readonly tools?: readonly Tool[];
  /** Text that the conversation begins with. */
  readonly sections?: readonly Section[];
  readonly on?: Hooks;
};

export type Extension = Contribution & {
  readonly name: string;
  /** For what has to be started or loaded first. One that throws is skipped with a warning, and the session opens without
   *  it. */
  readonly open?: (around: ExtensionAround) => Promise<LiveExtension>;
};

/** Where an extension is opened. */
export type ExtensionAround = {
  readonly cwd: string;
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
};

/** What an opened extension has beside its data; closed with the session. */
export type LiveExtension = Omit<Contribution, "tools"> & {
  readonly name?: string; // default: the extension's
  /** A function is asked once. `earlier`: the list that an earlier life of the session has sent. */
  readonly tools?: readonly Tool[] | ((earlier?: readonly ToolSpec[]) => readonly Tool[]);
  readonly close?: () => Promise<void>;
};

/** An extension of ours that stands behind constant tools. */
export type ServingExtension = LiveExtension & {
  /** What servers offer now; changes are announced at the tail. */
  readonly offered?: () => OfferedTools;
  /** The far side of constant tools. `fork`: starts one; absent where nobody may. */
  readonly delegation?: (fork?: DelegatedCall) => Pick<Delegation, "mcpCall" | "skill">;
  /** Does this call start a fork? */
  readonly startsFork?: (call: Pick<ToolUseBlock, "name" | "input">) => boolean;
  /** From now on what happens is told; what has happened so far is given back. */
  readonly follow?: (emit: (event: EventBody) => void) => readonly EventBody[];
};

/** What a user's own module is given: it imports only types from us. */
export type ExtensionApi = {
  readonly cwd: string;
  /** For the input of its tools. */
  readonly z: typeof z;
  readonly defineTool: typeof defineTool;
  readonly failed: typeof failed;
};

/** The default export of such a module. */
export type ExtensionFactory = (api: ExtensionApi) => Extension | Promise<Extension>;
