/** The commands by name, each loaded only when it is asked for: a command pays for no other's imports. */

import type { Command } from "commander";
import type { Io } from "../io.ts";

type CommandMaker = (io: Io) => Command;

const LOADERS: ReadonlyMap<string, () => Promise<CommandMaker>> = new Map([
  ["tour", async () => (await import("./tour.ts")).tourCommand],
  ["print", async () => (await import("./print.ts")).printCommand],
  ["sessions", async () => (await import("./sessions.ts")).sessionsCommand],
  ["explain", async () => (await import("./explain.ts")).explainCommand],
  ["ps", async () => (await import("./ps.ts")).psCommand],
  ["tasks", async () => (await import("./tasks.ts")).tasksCommand],
  ["merge", async () => (await import("./merge.ts")).mergeCommand],
  ["worktrees", async () => (await import("./worktrees.ts")).worktreesCommand],
  ["trust", async () => (await import("./trust.ts")).trustCommand],
  ["mcp", async () => (await import("./mcp.ts")).mcpCommand],
  ["demo", async () => (await import("./demo.ts")).demoCommand],
  ["cost", async () => (await import("./cost.ts")).costCommand],
  ["xray", async () => (await import("./xray.ts")).xrayCommand],
  ["proxy", async () => (await import("./proxy.ts")).proxyCommand],
  ["sim", async () => (await import("./sim.ts")).simCommand],
  ["check-command", async () => (await import("./check-command.ts")).checkCommandCommand],
  ["check-path", async () => (await import("./check-path.ts")).checkPathCommand],
  ["doctor", async () => (await import("./doctor.ts")).doctorCommand],
]);

export const isCommand = (name: string): boolean => LOADERS.has(name) || name === "help";

/** The command of that name alone; all of them where the name is none of theirs, for help and for suggestions. */
export const loadCommands = (name: string | undefined): Promise<readonly CommandMaker[]> => {
  const loader = LOADERS.get(name ?? "");
  return Promise.all((loader ? [loader] : [...LOADERS.values()]).map((load) => load()));
};
