/** What a session has beside its own tools: its extensions, open for as long as it is.
 *  Invariant: what enters the list of tools and the first content is copied when the session is opened, and for a resumed
 *  one the list is what its journal says; everything later goes through constant tools and words at the tail. One that
 *  cannot be opened is skipped with a warning.
 *  Elsewhere: the contract (extension.ts), servers (mcp/), skills (skills/), a user's own (modules.ts). */

import { InputError, type ToolSpec, type ToolUseBlock } from "@prefork/wire";
import { type AgentExtensions, toolEnvironment } from "../agent/index.ts";
import { type OfferedTools, oneLine } from "../context/index.ts";
import type { EventBody, RuntimeEvent } from "../events.ts";
import type { Clock } from "../ports.ts";
import type { Tool } from "../tools/index.ts";
import type { Extension, ExtensionAround, ServingExtension } from "./extension.ts";
import { mcp, type ServerEntry, type ServersOptions } from "./mcp/index.ts";
import type { HookedExtension, HookRunner, HookTimes } from "./run-hooks.ts";
import { type Skill, skills } from "./skills/index.ts";

export type ExtensionsOptions = {
  readonly cwd: string;
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly tools: readonly Tool[];
  readonly extensions?: readonly Extension[];
  readonly extensionTimes?: HookTimes;
  readonly servers?: readonly ServerEntry[];
  readonly serverTimes?: ServersOptions["times"];
  readonly skills?: readonly Skill[];
};

export type Extensions = AgentExtensions & {
  /** For the list of tools, once. `earlier`: the list that an earlier life of the session has sent. */
  readonly freeze: (earlier?: readonly ToolSpec[]) => readonly Tool[];
  /** Does this call start a fork? */
  readonly startsFork: (call: Pick<ToolUseBlock, "name" | "input">) => boolean;
  /** From now on what happens is told; what has happened so far is given back. */
  readonly follow: (emit: (event: EventBody) => void) => readonly EventBody[];
  /** Tells extensions of what happens in the session. */
  readonly happened: (event: RuntimeEvent) => void;
  /** `session`: its id, where it had opened. */
  readonly close: (session?: string) => Promise<void>;
};

export const openExtensions = async (options: ExtensionsOptions): Promise<Extensions> => {
  const all = extensionsOf(options);
  const tried = await Promise.all(all.map((extension) => openOne(extension, options)));
  const { opened, skipped } = fitting(tried, options.tools);
  const live = opened.map((one) => one.live);
  const hooked = opened.flatMap(({ name, live: { on } }) => (on ? [{ name, on }] : []));
  const hooks = hooked.length === 0 ? undefined : await runHooks(hooked, options.extensionTimes);
  const offers = live.flatMap(({ offered }) => offered ?? []);
  return {
    freeze: (earlier) => live.flatMap(({ tools = [] }) => (typeof tools === "function" ? tools(earlier) : tools)),
    sections: live.flatMap(({ sections = [] }) => sections.map(({ name, text }) => ({ name, text }))),
    ...(offers.length === 0 ? {} : { offered: () => offers.map((offered) => offered()).reduce(together) }),
    delegation: (fork) => Object.assign({}, ...live.map(({ delegation }) => delegation?.(fork))),
    startsFork: (call) => live.some(({ startsFork }) => startsFork?.(call)),
    ...(hooks ? { hooks } : {}),
    follow: (emit) => {
      hooks?.tellTo(emit);
      return [...skipped, ...live.flatMap(({ follow }) => follow?.(emit) ?? [])];
    },
    happened: (event) => hooks?.happened(event, event.agent),
    close: async (session) => {
      if (session !== undefined) await hooks?.close(session);
      await Promise.all(live.map(({ close }) => close?.()));
    },
  };
};

/** Loaded where somebody has hooks. */
const runHooks = async (hooked: readonly HookedExtension[], times?: HookTimes): Promise<HookRunner> => {
  const { HookRunner: Runner } = await import("./run-hooks.ts");
  return new Runner(hooked, times);
};

/** Those of a caller, and what its options say of servers and skills. */
const extensionsOf = (options: ExtensionsOptions): readonly Extension[] => {
  const { extensions = [], servers = [], skills: list = [], serverTimes: times } = options;
  const all = [
    ...(list.length === 0 ? [] : [skills(list)]),
    ...(servers.length === 0 ? [] : [mcp(servers, times === undefined ? {} : { times })]),
    ...extensions,
  ];
  const twice = all.find(({ name }, at) => all.findIndex((other) => other.name === name) !== at);
  if (twice) throw new InputError(`there are two extensions named ${twice.name}`);
  return all;
};

type Opened = {
  readonly name: string;
  readonly live: ServingExtension;
  /** Tools that are known without asking. */
  readonly listed: readonly Tool[];
  /** It came to be when the session was opened, so the caller cannot have known of its tools. */
  readonly isLate: boolean;
};
type Skipped = Extract<EventBody, { readonly type: "extension_skipped" }>;

const skip = (extension: string, reason: string): Skipped => ({ type: "extension_skipped", extension, reason });

const openOne = async (extension: Extension, options: ExtensionsOptions): Promise<Opened | Skipped> => {
  const { cwd, clock, environment } = options;
  try {
    const around = { cwd, clock, environment: toolEnvironment(environment) };
    const { name = extension.name, listed, ...live } = await openLive(extension, around);
    return { name, listed, live, isLate: extension.open !== undefined };
  } catch (error) {
    return skip(extension.name, oneLine(error instanceof Error ? error.message : String(error)));
  }
};

/** What an extension says of itself, and what opening it gives. Lists are copied: what their owner puts in later does not
 *  count. */
export const openLive = async (
  { tools = [], sections = [], on, open }: Extension,
  around: ExtensionAround,
): Promise<ServingExtension & Pick<Opened, "listed">> => {
  const live: ServingExtension = (await open?.(around)) ?? {};
  const more = live.tools ?? [];
  const listed = [...tools, ...(typeof more === "function" ? [] : more)];
  const hooks = live.on ?? on;
  return {
    ...live,
    listed,
    tools: typeof more === "function" ? (earlier) => [...listed, ...more(earlier)] : listed,
    sections: [...sections, ...(live.sections ?? [])],
    ...(hooks ? { on: { ...hooks } } : {}),
  };
};

/** Of those that came late, one with a name or a tool that is there already is skipped as a whole. */
const fitting = (tried: readonly (Opened | Skipped)[], tools: readonly Tool[]): Fitting => {
  const taken = new Set(tools.map(({ name }) => name));
  const names = new Set<string>();
  const opened: Opened[] = [];
  const skipped: Skipped[] = [];
  for (const one of tried) {
    const clash = "live" in one && one.isLate ? clashOf(one, { taken, names }) : undefined;
    if (!("live" in one)) skipped.push(one);
    else if (clash !== undefined) {
      skipped.push(skip(one.name, clash));
      void one.live.close?.();
    } else {
      opened.push(one);
      names.add(one.name);
      for (const { name } of one.listed) taken.add(name);
    }
  }
  return { opened, skipped };
};

const clashOf = (
  { name, listed }: Opened,
  { taken, names }: { readonly taken: ReadonlySet<string>; readonly names: ReadonlySet<string> },
): string | undefined => {
  if (names.has(name)) return `there is another extension named ${name}`;
  const tool = listed.find((one) => taken.has(one.name));
  return tool && `there is another tool named ${tool.name}`;
};

type Fitting = { readonly opened: readonly Opened[]; readonly skipped: readonly Skipped[] };

const together = (one: OfferedTools, other: OfferedTools): OfferedTools => ({
  listed: { ...one.listed, ...other.listed },
  servers: [...one.servers, ...other.servers],
});
