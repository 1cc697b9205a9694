/** `prefork mcp`: which tool servers are configured, adding and removing them, and trying one.
 *  Invariant: listing and editing start nothing; secrets are written as they were given and never printed; a file that
 *  is not understood is not changed; what a folder names is used only once it is trusted.
 *  Elsewhere: what an entry means, and servers in a session (@prefork/runtime). */

import { lstat } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { describeProblem, loadSettings, stateFolder, trustOf } from "@prefork/guard";
import type { ServerEntry } from "@prefork/runtime";
import {
  type ConfiguredServers,
  MCP_FILE,
  readServers,
  Servers,
  targetWords,
  toolEnvironment,
} from "@prefork/runtime/internal";
import { type Command, Option } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { renderTable } from "../table.ts";
import { visible } from "../visible.ts";
import { type AddFlags, addServer, removeServer, type ScopeFlags } from "./mcp-edit.ts";

const gather = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value];

const scope = (): Option =>
  new Option("--scope <scope>", "your own settings, or this folder's .mcp.json")
    .choices(["user", "project"])
    .default("user");

export const mcpCommand = (io: Io): Command => {
  const command = newCommand("mcp", io)
    .description("list, add, remove and test tool servers")
    .helpCommand(false)
    .addHelpText("after", "\nWithout a command: list.");
  command.addCommand(
    newCommand("list", io)
      .description("the servers that a session here would have")
      .option("--json", "one JSON object a line")
      .action((flags: { readonly json?: true }) => list(flags, io)),
    { isDefault: true },
  );
  command.addCommand(
    newCommand("add", io)
      .description("add a server: a program, or an address")
      .argument("<name>", "what it is called here; its tools are mcp__name__tool")
      .argument("[command...]", "the program and its arguments, after --")
      .option("--url <url>", "the address of a server that speaks streamable HTTP")
      .option(
        "--env <name>",
        "a variable of the program: NAME is taken from yours at each start, NAME=value is kept",
        gather,
      )
      .option(
        "--header <line>",
        "sent with every request, as 'Name: value'; variables in it are filled at each start",
        gather,
      )
      .addOption(scope())
      .action((name: string, words: readonly string[], flags: AddFlags) => addServer(name, words, { flags, io })),
  );
  command.addCommand(
    newCommand("remove", io)
      .description("take a server out of its file")
      .argument("<name>")
      .addOption(scope())
      .action((name: string, flags: ScopeFlags) => removeServer(name, { flags, io })),
  );
  command.addCommand(
    newCommand("test", io)
      .description("start a server, show what it offers, and end it")
      .argument("<name>")
      .action((name: string) => tryServer(name, io)),
  );
  return command;
};

type Found = ConfiguredServers & {
  readonly environment: Readonly<Record<string, string>>;
  /** Why a server that somebody has written down is not among them. */
  readonly whyNot: (name: string) => Promise<string | undefined>;
};

const configured = async ({ env }: Io): Promise<Found> => {
  const home = env.HOME || homedir();
  const project = resolve(".");
  const trust = await trustOf(stateFolder(env, home), project);
  const trusted = trust.kind === "trusted";
  const agreed = trusted ? { entries: trust.entries } : {};
  const loaded = await loadSettings({ home, project, trusted, ...agreed });
  if (loaded.kind === "broken") throw new UsageError(loaded.problems.map(describeProblem).join("; "));
  const environment = toolEnvironment(env);
  const { servers, notices } = await readServers({
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
    const isAbout = (one: string): boolean => one.includes(`: server ${JSON.stringify(name)} is left out: `);
    const notice = notices.find(isAbout);
    if (notice !== undefined) return notice.includes("is not set") ? `${notice}; set it before prefork starts` : notice;
    if (trusted) return undefined;
    // Only read, to tell whether it is there: nothing of it is started.
    const all = await loadSettings({ home, project, trusted: true });
    const settings = all.kind === "broken" ? [] : all.servers;
    const written = await readServers({ project, trusted: true, settings, environment });
    const isThere = written.servers.some((entry) => entry.name === name) || written.notices.some(isAbout);
    return isThere
      ? `server ${name} is written in this folder, which is not trusted, so it is left out (prefork trust)`
      : undefined;
  };
  return { servers, notices: [...notices, ...unused], environment, whyNot };
};

const list = async ({ json }: { readonly json?: true }, io: Io): Promise<void> => {
  const { servers, notices } = await configured(io);
  for (const notice of notices) io.err(`prefork: ${visible(notice)}\n`);
  if (json) {
    for (const entry of servers) io.out(`${JSON.stringify(shownEntry(entry))}\n`);
    return;
  }
  if (servers.length === 0) {
    io.out("No tool server is configured; prefork mcp add adds one.\n");
    return;
  }
  const rows = servers.map((entry) => ({
    cells: [entry.name, entry.transport, targetWords(entry), entry.from ?? ""].map(visible),
  }));
  const columns = ["server", "by", "what", "written in"].map((title) => ({ title }));
  io.out(renderTable({ columns, rows, colour: io.colour }));
};

/** Without the values of env and headers. */
const shownEntry = (entry: ServerEntry): object => {
  const { name, transport, from } = entry;
  const names = Object.keys((entry.transport === "stdio" ? entry.env : entry.headers) ?? {});
  const what = entry.transport === "stdio" ? { command: entry.command, args: entry.args ?? [] } : { url: entry.url };
  return { name, transport, ...what, [entry.transport === "stdio" ? "env" : "headers"]: names, from };
};

const START_MS = 30_000;

const tryServer = async (name: string, io: Io): Promise<void> => {
  const { servers: entries, environment, whyNot } = await configured(io);
  const entry = entries.find((one) => one.name === name);
  if (!entry)
    throw new UsageError(
      visible((await whyNot(name)) ?? `there is no server ${name} here; prefork mcp list shows those that there are`),
    );
  const servers = await Servers.open({
    ...{ servers: [entry], cwd: resolve("."), environment, clock: { now: Date.now } },
    times: { listMs: START_MS, startMs: START_MS },
  });
  try {
    const [server] = servers.offered().servers;
    const problem = servers.follow(() => {}).flatMap((event) => (event.type === "server_lost" ? [event.reason] : []));
    if (!server) {
      io.err(`prefork: server ${name} does not work: ${visible(problem[0] ?? "it did not start in time")}\n`);
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
