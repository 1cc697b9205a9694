/** What a session has beside its own tools: tool servers, open for as long as it is, and skills.
 *  Invariant: what enters the list of tools is fixed when the session is opened, and for a resumed one it is what its
 *  journal says; everything later goes through constant tools and words at the tail. A fork has the same, but for skills
 *  that would start one.
 *  Elsewhere: servers (mcp/), skills (skills/), telling the model (../agent: surroundings.ts). */

import type { ToolSpec } from "@prefork/wire";
import { type AgentExtensions, toolEnvironment } from "../agent/index.ts";
import type { EventBody } from "../events.ts";
import type { Clock, DelegatedCall, Delegation } from "../ports.ts";
import type { Tool } from "../tools/index.ts";
import { type ServerEntry, Servers, type ServersOptions } from "./mcp/index.ts";
import { type Skill, skillCall, skillsSection } from "./skills/index.ts";

export type ExtensionsOptions = {
  readonly cwd: string;
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly servers?: readonly ServerEntry[];
  readonly serverTimes?: ServersOptions["times"];
  readonly skills?: readonly Skill[];
};

export type Extensions = AgentExtensions & {
  /** For the list of tools, once. `earlier`: the list that an earlier life of the session has sent. */
  readonly freeze: (earlier?: readonly ToolSpec[]) => readonly Tool[];
  /** From now on what happens is told; what has happened so far is given back. */
  readonly follow: (emit: (event: EventBody) => void) => readonly EventBody[];
  readonly close: () => Promise<void>;
};

export const openExtensions = async (options: ExtensionsOptions): Promise<Extensions> => {
  const { cwd, clock, servers: entries = [], skills = [], serverTimes } = options;
  const sections = skillsSection(skills);
  const skill = (fork?: DelegatedCall): Pick<Delegation, "skill"> =>
    skills.length === 0 ? {} : { skill: skillCall(skills, fork) };
  if (entries.length === 0)
    return { freeze: () => [], sections, delegation: skill, follow: () => [], close: async () => {} };
  const environment = toolEnvironment(options.environment);
  const times = serverTimes === undefined ? {} : { times: serverTimes };
  const servers = await Servers.open({ servers: entries, cwd, clock, environment, ...times });
  return {
    freeze: (earlier) => servers.freeze(earlier),
    sections,
    offered: servers.offered,
    delegation: (fork) => ({ ...skill(fork), mcpCall: servers.mcpCall }),
    follow: (emit) => servers.follow(emit),
    close: () => servers.close(),
  };
};
