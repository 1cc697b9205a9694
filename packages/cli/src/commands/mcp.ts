/** `prefork mcp`: lists, adds, removes and tests tool servers.
 *  Invariant: listing and editing start nothing; secrets are written as given and never printed; a file that cannot be
 *  parsed is not changed; a folder's servers are used only if the folder is trusted.
 *  Elsewhere: what an entry means, and servers in a session (@prefork/runtime). */

import { lstat } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { describeProblem, loadSettings, stateFolder, trustOf } from "@prefork/guard";
import type { ServerEntry } from "@prefork/runtime";
import {
  type ConfiguredServers,
  describeTarget,
  MCP_FILE,
  readServers,
  Servers,
  toolEnvironment,
} from "@prefork/runtime/internal";
import { type Command, Option } from "commander";
import { collect, type Io, newCommand, UsageError } from "../io.ts";
import { renderTable } from "../table.ts";
import { visible } from "../visible.ts";
import { type AddFlags, addServer, removeServer, type ScopeFlags } from "./mcp-edit.ts";

const scope = (): Option =>
  new Option("--scope <scope>", "your own settings, or this folder's .mcp.json")
    .choices(["user", "project"])
    .default("user");

export const mcpCommand = (io: Io): Command => {
  const command = newCommand("mcp", io).description("list, add, remove and test tool servers").helpCommand(false);
  command.addCommand(
    newCommand("list", io)
      .description("list the servers that a session here would use")
      .option("--json", "print one JSON object per line")
      .action((flags: { readonly json?: true }) => list(flags, io)),
    { isDefault: true },
  );
  command.addCommand(
    newCommand("add", io)
      .description("add a server: a program or a URL")
      .argument("<name>", "its name here; its tools are called mcp__name__tool")
      .argument("[command...]", "the program and its arguments, after --")
      .option("--url <url>", "URL of a server with streamable HTTP")
      .option(
        "--env <name>",
        "environment variable: NAME copies your value at each start, NAME=value stores it",
        collect,
      )
      .option(
        "--header <line>",
        "header of every request, as 'Name: value'; variables in it are expanded at each start",
        collect,
      )
      .addOption(scope())
      .action((name: string, words: readonly string[], flags: AddFlags) => addServer(name, words, { flags, io })),
  );
  command.addCommand(
    newCommand("remove", io)
      .description("remove a server from its file")
      .argument("<name>")
      .addOption(scope())
      .action((name: string, flags: ScopeFlags) => removeServer(name, { flags, io })),
  );
  command.addCommand(
    newCommand("test", io)
      .description("start a server, list its tools, and stop it")
      .argument("<name>")
      .action((name: string) => testServer(name, io)),
  );
  return command;
};

type ConfiguredHere = Pick<ConfiguredServers, "servers" | "notices"> & {
  readonly environment: Readonly<Record<string, string>>;
  /** Why a server that a file configures is not in the list. */
  readonly whyNot: (name: string) => Promise<string | undefined>;
};

const readConfigured = async ({ env }: Io): Promise<ConfiguredHere> => {
  const home = env.HOME || homedir();
  const project = resolve(".");
  const trust = await trustOf(stateFolder(env, home), project);
  const trusted = trust.kind === "trusted";
  const agreed = trusted ? { entries: trust.entries } : {};
  const loaded = await loadSettings({ home, project, trusted, ...agreed });
  if (loaded.kind === "broken") throw new UsageError(loaded.problems.map(describeProblem).join("; "));
  const environment = toolEnvironment(env);
  const { servers, notices, skipped } = await readServers({
    project,
    trusted,
    ...agreed,
    settings: loaded.servers,
    environment,
  });
  const file = trusted ? undefined : await lstat(join(project, MCP_FILE)).catch(() => undefined);
  const unused =
    file === undefined ? [] : [`${join(project, MCP_FILE)} is not used: the folder is not trusted (prefork trust)`];
  const whyNot = async (name: string): Promise<string | undefined> => {
    const hasName = (server: { readonly name: string }): boolean => server.name === name;
    const skippedServer = skipped.find(hasName);
    if (skippedServer) {
      const { notice, unset } = skippedServer;
      return unset === undefined ? notice : `${notice}; set it before you start prefork`;
    }
    if (trusted) return undefined;
    // Read only to see whether it exists; nothing of it is started.
    const all = await loadSettings({ home, project, trusted: true });
    const settings = all.kind === "broken" ? [] : all.servers;
    const configured = await readServers({ project, trusted: true, settings, environment });
    return [...configured.servers, ...configured.skipped].some(hasName)
      ? `server ${name} is configured in this folder, which is not trusted, so it is skipped (prefork trust)`
      : undefined;
  };
  return { servers, notices: [...notices, ...unused], environment, whyNot };
};

const list = async ({ json }: { readonly json?: true }, io: Io): Promise<void> => {
  const { servers, notices } = await readConfigured(io);
  for (const notice of notices) io.err(`prefork: ${visible(notice)}\n`);
  if (json) {
    for (const entry of servers) io.out(`${JSON.stringify(entryAsObject(entry))}\n`);
    return;
  }
  if (servers.length === 0) {
    io.out("No tool server is configured. To add one: prefork mcp add\n");
    return;
  }
  const rows = servers.map((entry) => ({
    cells: [entry.name, entry.transport, describeTarget(entry), entry.from ?? ""].map(visible),
  }));
  const columns = ["server", "transport", "target", "file"].map((title) => ({ title }));
  io.out(renderTable({ columns, rows, colour: io.colour }));
};

/** Without the values of env and headers. */
const entryAsObject = (entry: ServerEntry): object => {
  const { name, transport, from } = entry;
  const names = Object.keys((entry.transport === "stdio" ? entry.env : entry.headers) ?? {});
  const what = entry.transport === "stdio" ? { command: entry.command, args: entry.args ?? [] } : { url: entry.url };
  return { name, transport, ...what, [entry.transport === "stdio" ? "env" : "headers"]: names, from };
};

const START_MS = 30_000;

const testServer = async (name: string, io: Io): Promise<void> => {
  const { servers: entries, environment, whyNot } = await readConfigured(io);
  const entry = entries.find((one) => one.name === name);
  if (!entry)
    throw new UsageError(visible((await whyNot(name)) ?? `there is no server ${name} here (prefork mcp lists them)`));
  const servers = await Servers.open({
    ...{ servers: [entry], cwd: resolve("."), environment, clock: { now: Date.now } },
    times: { listMs: START_MS, startMs: START_MS },
  });
  try {
    const [server] = servers.offered().servers;
    const problem = servers.follow(() => {}).flatMap((event) => (event.type === "server_lost" ? [event.reason] : []));
    if (!server) {
      io.err(`prefork: server ${name} failed: ${visible(problem[0] ?? "it did not start in time")}\n`);
      io.exitWith(1);
      return;
    }
    io.out(`Server ${name} offers ${server.tools.length} ${server.tools.length === 1 ? "tool" : "tools"}.\n`);
    for (const { tool, description } of server.tools)
      io.out(`  ${tool}: ${visible(description.split("\n")[0] ?? "")}\n`);
  } finally {
    await servers.close();
  }
};
