/** An agent from its parts: the same for the main one and for all that it starts.
 *  Invariant: every agent has a guard, a world of tools and an account of its own; what differs between them comes in
 *  here and nowhere else.
 *  Elsewhere: the main agent (../session: open.ts), forks and others (../children). */

import { draftsIn, type GuardContext, type Mode, type Policy, type ToolFilter } from "@prefork/guard";
import type { Move } from "@prefork/guard/internal";
import { type Client, type Json, type KeySettings, modelFacts, type Protocol } from "@prefork/wire";
import { budgetFor, type ReplacementState } from "../context/index.ts";
import type { Journal, Replayed } from "../journal/index.ts";
import type { Delegation } from "../ports.ts";
import type { ReadState, Registry, ShellsOptions, ToolFiles } from "../tools/index.ts";
import type { Account } from "./account.ts";
import { Agent, type AgentParts, type AgentSettings } from "./agent.ts";
import { Guarding } from "./guarding.ts";
import type { Lineage } from "./lineage.ts";
import { leftOpenOf, nothingLeftOpen, OpenCalls } from "./open-calls.ts";
import type { AgentExtensions, AgentOptions } from "./options.ts";
import { SurroundingsWatch } from "./surroundings.ts";
import { ToolWorld } from "./tool-world.ts";

/** A conversation, and all that forks from it, stays where its entries are: providers that route by a key are given one. */
export const routed = (settings: KeySettings, { routes }: Protocol, key: string): KeySettings =>
  routes && settings.cacheKey === undefined ? { ...settings, cacheKey: key } : settings;

export const PRODUCT = "prefork";

/** What may be called, and who answers where that is open. */
export type Rights = {
  readonly policy: Policy;
  readonly mode: Mode;
  readonly asks: GuardContext["asks"];
  readonly filter?: ToolFilter;
  readonly unwatched?: string;
};

export type Making = Pick<
  AgentParts,
  "emit" | "ask" | "remember" | "family" | "notices" | "beside" | "bounds" | "tasks" | "lastPrompt"
> & {
  readonly options: AgentOptions;
  readonly registry: Registry;
  readonly client: Client;
  readonly journal: Journal;
  readonly line: Lineage;
  readonly settings: AgentSettings;
  readonly rights: Rights;
  readonly account: Account;
  readonly delegation: Delegation;
  readonly extensions: AgentExtensions;
  readonly environment: Readonly<Record<string, string>>;
  /** What an earlier life of it has left. */
  readonly replayed?: Replayed;
  readonly state?: ReadonlyMap<string, Json>;
  /** Of a fork: what its parent knows, as copies. */
  readonly inherited?: { readonly reads: ReadState; readonly replacements: ReplacementState };
  /** Of work in a copy of the folders that rules were written for. */
  readonly move?: Move;
  /** What its commands have to see beside the folders of the workspace. */
  readonly visible?: readonly string[];
  /** Of a child in its parent's folders: these. */
  readonly files?: ToolFiles;
  readonly shellTold?: Pick<ShellsOptions, "started" | "ended" | "shown" | "clock">;
};

export const makeAgent = async (making: Making): Promise<Agent> => {
  const { options, registry, journal, line, settings, rights, replayed, extensions } = making;
  const { cwd, directories, home, clock, ids, window } = options;
  const state = making.state ?? replayed?.state ?? new Map();
  const roots = [cwd, ...directories];
  const { policy } = rights;
  const guarding = new Guarding({
    ...{ ...rights, roots, cwd, home },
    outputs: journal.outputs.path,
    ...(making.move ? { move: making.move } : {}),
    readingTools: registry.tools.filter(({ readOnly }) => readOnly).map(({ name }) => name),
    tools: registry.tools.map(({ name }) => name),
  });
  const world = await ToolWorld.open({
    ...{ cwd, roots: [...roots, ...policy.directories], home, journal, clock, ids, state },
    agent: settings.name,
    ...making.inherited,
    ...(making.files ? { files: making.files } : {}),
    ...(rights.filter?.memory ? { memory: rights.filter.memory.names } : {}),
    ...(making.visible ? { visible: making.visible } : {}),
    ...(making.shellTold ? { shellTold: making.shellTold } : {}),
    sandbox: policy.sandbox,
    drafts: draftsIn(options.state),
    environment: making.environment,
    budget: budgetFor(window),
    mayShow: (from) => guarding.mayShow(from),
    delegation: making.delegation,
    emit: making.emit,
  });
  const { client, account, emit, ask, remember, family, notices, beside, bounds, tasks, lastPrompt } = making;
  return new Agent({
    ...{ settings, journal, line, client, guarding, world, registry, clock, ids, account, emit, lastPrompt },
    ...(ask ? { ask } : {}),
    ...(remember ? { remember } : {}),
    ...(family ? { family } : {}),
    ...(notices ? { notices } : {}),
    ...(beside ? { beside } : {}),
    ...(bounds ? { bounds } : {}),
    ...(tasks ? { tasks } : {}),
    ...(extensions.hooks ? { hooks: extensions.hooks } : {}),
    facts: modelFacts(line.state.head.model),
    watch: new SurroundingsWatch(
      {
        ...{ cwd, home, clock, sections: extensions.sections, keptBack: () => guarding.keptBack() },
        ...(extensions.offered ? { offered: extensions.offered } : {}),
      },
      state,
    ),
    openCalls: new OpenCalls(line, replayed ? leftOpenOf(replayed, { registry, guarding }) : nothingLeftOpen),
  });
};
