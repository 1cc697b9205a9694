/** How are a session's extensions opened, used and closed?
 *  Invariant: tools and sections are copied when the session is opened. A resumed session has the tool list of its
 *  journal. Everything later goes through constant tools and text at the tail. An extension that cannot be opened is
 *  skipped with a warning.
 *  Elsewhere: the contract (extension.ts), servers (mcp/), skills (skills/), a user's own (modules.ts). */

import { InputError, type ToolSpec, type ToolUseBlock } from "@prefork/wire";
import { type AgentExtensions, toolEnvironment } from "../agent/index.ts";
import { type OfferedTools, oneLine } from "../context/index.ts";
import type { EventBody, RuntimeEvent } from "../events.ts";
import type { Clock } from "../ports.ts";
import type { Tool } from "../tools/index.ts";
import type { Extension, ExtensionContext, ServingExtension } from "./extension.ts";
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
  /** The tools for the tool list, once. `earlier`: the list that an earlier run of the session has sent. */
  readonly freezeTools: (earlier?: readonly ToolSpec[]) => readonly Tool[];
  /** Does this call start a fork? */
  readonly startsFork: (call: Pick<ToolUseBlock, "name" | "input">) => boolean;
  /** From now on events are passed to `emit`. Returns what has happened so far. */
  readonly follow: (emit: (event: EventBody) => void) => readonly EventBody[];
  /** Tells extensions what happens in the session. */
  readonly notify: (event: RuntimeEvent) => void;
  /** `session`: its id, if it was opened. */
  readonly close: (session?: string) => Promise<void>;
};

export const openExtensions = async (options: ExtensionsOptions): Promise<Extensions> => {
  const all = extensionsOf(options);
  const tried = await Promise.all(all.map((extension) => openOne(extension, options)));
  const { opened, skipped } = dropClashing(tried, options.tools);
  const live = opened.map((one) => one.live);
  const hooked = opened.flatMap(({ name, live: { on } }) => (on ? [{ name, on }] : []));
  const hooks = hooked.length === 0 ? undefined : await runHooks(hooked, options.extensionTimes);
  const offers = live.flatMap(({ offered }) => offered ?? []);
  return {
    freezeTools: (earlier) => live.flatMap(({ tools = [] }) => (typeof tools === "function" ? tools(earlier) : tools)),
    sections: live.flatMap(({ sections = [] }) => sections.map(({ name, text }) => ({ name, text }))),
    ...(offers.length === 0 ? {} : { offered: () => offers.map((offered) => offered()).reduce(mergeOffered) }),
    delegation: (fork) => Object.assign({}, ...live.map(({ delegation }) => delegation?.(fork))),
    startsFork: (call) => live.some(({ startsFork }) => startsFork?.(call)),
    ...(hooks ? { hooks } : {}),
    follow: (emit) => {
      hooks?.setEmitter(emit);
      return [...skipped, ...live.flatMap(({ follow }) => follow?.(emit) ?? [])];
    },
    notify: (event) => hooks?.notify(event, event.agent),
    close: async (session) => {
      if (session !== undefined) await hooks?.close(session);
      await Promise.all(live.map(({ close }) => close?.()));
    },
  };
};

/** Only loaded if there are hooks. */
const runHooks = async (hooked: readonly HookedExtension[], times?: HookTimes): Promise<HookRunner> => {
  const { HookRunner: Runner } = await import("./run-hooks.ts");
  return new Runner(hooked, times);
};

/** The caller's extensions, and those for the servers and skills of the options. */
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

type OpenedExtension = {
  readonly name: string;
  readonly live: ServingExtension;
  /** Tools that are known without calling anything. */
  readonly listed: readonly Tool[];
  /** Created when the session was opened, so the caller cannot have known its tools. */
  readonly isLate: boolean;
};
type SkippedExtension = Extract<EventBody, { readonly type: "extension_skipped" }>;

const skip = (extension: string, reason: string): SkippedExtension => ({
  type: "extension_skipped",
  extension,
  reason,
});

const openOne = async (
  extension: Extension,
  options: ExtensionsOptions,
): Promise<OpenedExtension | SkippedExtension> => {
  const { cwd, clock, environment } = options;
  try {
    const context = { cwd, clock, environment: toolEnvironment(environment) };
    const { name = extension.name, listed, ...live } = await openLive(extension, context);
    return { name, listed, live, isLate: extension.open !== undefined };
  } catch (error) {
    return skip(extension.name, oneLine(error instanceof Error ? error.message : String(error)));
  }
};

/** An extension's own contribution together with what opening it returns. Lists are copied, so later additions have
 *  no effect. */
export const openLive = async (
  { tools = [], sections = [], on, open }: Extension,
  context: ExtensionContext,
): Promise<ServingExtension & Pick<OpenedExtension, "listed">> => {
  const live: ServingExtension = (await open?.(context)) ?? {};
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

/** Of the late extensions, one whose name or tool already exists is skipped as a whole. */
const dropClashing = (
  tried: readonly (OpenedExtension | SkippedExtension)[],
  tools: readonly Tool[],
): UsableExtensions => {
  const taken = new Set(tools.map(({ name }) => name));
  const names = new Set<string>();
  const opened: OpenedExtension[] = [];
  const skipped: SkippedExtension[] = [];
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
  { name, listed }: OpenedExtension,
  { taken, names }: { readonly taken: ReadonlySet<string>; readonly names: ReadonlySet<string> },
): string | undefined => {
  if (names.has(name)) return `there is another extension named ${name}`;
  const tool = listed.find((one) => taken.has(one.name));
  return tool && `there is another tool named ${tool.name}`;
};

type UsableExtensions = { readonly opened: readonly OpenedExtension[]; readonly skipped: readonly SkippedExtension[] };

const mergeOffered = (one: OfferedTools, other: OfferedTools): OfferedTools => ({
  listed: { ...one.listed, ...other.listed },
  servers: [...one.servers, ...other.servers],
});
