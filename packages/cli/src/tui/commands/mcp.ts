/** /mcp: tool servers, whether they answer, and their tools.
 *  Invariant: names and descriptions come from servers and are made safe; nothing is started unless the person asks for it.
 *  Elsewhere: servers (@prefork/runtime), adding and removing them (`prefork mcp`). */

import type { TerminalContext } from "../context.ts";
import { type ListItem, safeLine, safeText } from "../state/index.ts";
import { counted, notice, openList, openPage, ownSession, type SlashCommand } from "./command.ts";

type Configured = { readonly name: string; readonly target: string; readonly from: string };

const configuredServers = async (context: TerminalContext): Promise<readonly Configured[]> => {
  const { text } = await context.runCli(["mcp", "list", "--json"]);
  return text.split("\n").flatMap((line): readonly Configured[] => {
    try {
      const { name, command, args, url, from } = JSON.parse(line) as Readonly<Record<string, unknown>>;
      if (typeof name !== "string") return [];
      const words = [command, ...(Array.isArray(args) ? args : [])].filter((word) => typeof word === "string");
      const target = typeof url === "string" ? url : words.join(" ");
      return [{ name, target: safeLine(target), from: typeof from === "string" ? safeLine(from) : "" }];
    } catch {
      return []; // a notice, for people
    }
  });
};

const mcp: SlashCommand = {
  name: "mcp",
  summary: "tool servers, whether they answer, and their tools",
  group: "Set up",
  run: async (_args, context) => {
    const own = await ownSession(context);
    const running = new Map(own.setup.toolServers().map(({ name, tools }) => [name, tools]));
    const items = (await configuredServers(context)).map(({ name, target, from }): ListItem => {
      const tools = running.get(name);
      return {
        id: name,
        label: safeLine(name, 80),
        detail: tools ? counted(tools.length, "tool") : "does not answer",
        preview: `${target}${from === "" ? "" : `\nConfigured in ${from}`}${tools ? "" : "\nEnter tries to start it, and shows why it fails."}`,
      };
    });
    if (items.length === 0)
      return notice(context, "No tool server is configured here. To add one, in a shell: prefork mcp add");
    openList(context, { title: "Tool servers", command: "mcp", hint: "shows its tools", items });
  },
  chosen: async (id, context) => {
    const own = await ownSession(context);
    const server = own.setup.toolServers().find(({ name }) => name === id);
    if (server) {
      const lines = server.tools.map(
        ({ tool, description }) => `${safeLine(tool, 100)}\n  ${safeLine(description, 500)}`,
      );
      return openPage(context, {
        title: `${safeLine(id)}: ${counted(lines.length, "tool")}`,
        text: lines.join("\n") || "It offers no tools.",
      });
    }
    const { text } = await context.work(`Starting ${safeLine(id)}…`, () => context.runCli(["mcp", "test", id]));
    openPage(context, { title: safeLine(id), text: safeText(text) });
  },
};

export const mcpCommands: readonly SlashCommand[] = [mcp];
