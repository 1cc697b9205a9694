/** What applies to a session while it runs: permission rules, conventions, tool servers.
 *  Rules of files stay as they are: only rules that a person added while the session runs can be removed here.
 *  Elsewhere: rules (@prefork/guard), reading conventions (../context), servers (../extensions). */

import type { Policy, RuleList } from "@prefork/guard";
import { InputError } from "@prefork/wire";
import type { Agent } from "../agent/index.ts";
import { type Conventions, type OfferedTools, readConventions } from "../context/index.ts";
import type { Extensions } from "../extensions/index.ts";
import type { ResolvedOptions } from "./options.ts";

export type SessionSetup = {
  /** The rules that apply now, including those that were added while it runs. */
  readonly policy: () => Policy;
  /** A person adds a rule for this session. An invalid rule is an InputError that says why. */
  readonly addRule: (list: RuleList, rule: string) => void;
  /** False: there is no such rule, or a file states it. */
  readonly removeRule: (list: RuleList, rule: string) => boolean;
  /** AGENTS.md, CLAUDE.md and what they import, as they are now. */
  readonly conventions: () => Promise<Conventions>;
  /** Tool servers whose tools are known by now, each with all its tools. */
  readonly toolServers: () => OfferedTools["servers"];
};

type SetupParts = {
  readonly agent: Pick<Agent, "guard">;
  readonly options: Pick<ResolvedOptions, "cwd" | "home">;
  readonly extensions: Pick<Extensions, "offered">;
};

export const createSetup = ({ agent: { guard }, options, extensions }: SetupParts): SessionSetup => ({
  policy: () => guard.policy,
  addRule: (list, rule) => {
    const problem = guard.addRule(list, rule);
    if (problem !== undefined) throw new InputError(problem);
  },
  removeRule: (list, rule) => guard.removeRule(list, rule),
  conventions: () => {
    const { cwd, home } = options;
    return readConventions({ home, cwd, workspace: cwd, keptBack: guard.keptBack() });
  },
  toolServers: () => extensions.offered?.().servers ?? [],
});
