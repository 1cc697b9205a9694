/** What is the model told about server tools that are not in its tool list, or have changed since?
 *  Invariant: the tool list stays the same for the whole epoch. What a server offers in addition is announced once,
 *  with how to call it. The same two states give the same text. Text from servers is bounded and cannot pass as ours.
 *  Elsewhere: the servers (../extensions/mcp), the tool that reaches them (../tools), where a note goes
 *  (surroundings.ts). */

import type { JsonObject } from "@prefork/wire";
import { byteLength, escapeTags, takeHead } from "./text.ts";

export type OfferedTool = {
  readonly server: string;
  readonly tool: string;
  /** Bounded, and without our tags. */
  readonly description: string;
  readonly schema: JsonObject;
  /** Hash of description and schema. */
  readonly hash: string;
};

/** Hashes by the name that rules use: `mcp__server__tool`. */
export type ToolHashes = Readonly<Record<string, string>>;

export type OfferedTools = {
  /** As they are in the tool list. */
  readonly listed: ToolHashes;
  /** Servers whose tools are known by now, each with all its tools. */
  readonly servers: readonly { readonly name: string; readonly tools: readonly OfferedTool[] }[];
};

export const toolName = ({ server, tool }: Pick<OfferedTool, "server" | "tool">): string => `mcp__${server}__${tool}`;

/** What the model knows after all of this was announced. For servers that are not known yet: what it knew before. */
export const knownTools = ({ listed, servers }: OfferedTools, before: ToolHashes = listed): ToolHashes => {
  const isKnown = (name: string): boolean => servers.some((server) => belongsTo(name, server.name));
  const kept = Object.entries(before).filter(([name]) => !isKnown(name));
  const now = servers.flatMap(({ tools }) => tools.map((tool) => [toolName(tool), tool.hash] as const));
  return Object.fromEntries([...kept, ...now]);
};

/** A server name never contains two underscores in a row, so a tool name is unambiguous. */
const belongsTo = (name: string, server: string): boolean => name.startsWith(`mcp__${server}__`);

/** The announcement for a model that knows `before`; undefined if there is nothing to announce. */
export const describeOfferedTools = (
  offered: OfferedTools,
  before: ToolHashes = offered.listed,
): string | undefined => {
  const tools = offered.servers.flatMap((server) => server.tools);
  const fresh = tools.filter((tool) => before[toolName(tool)] !== tool.hash);
  const offeredNames = new Set(tools.map(toolName));
  const removed = Object.keys(before).filter(
    (name) => !offeredNames.has(name) && offered.servers.some((server) => belongsTo(name, server.name)),
  );
  const parts = [
    ...(fresh.length === 0 ? [] : [describeNewTools(fresh, offered.listed)]),
    ...describeRemovedTools(removed),
  ];
  return parts.length === 0 ? undefined : parts.join("\n");
};

const CALL_THEM =
  "Tools of tool servers that are not in your list, or no longer as they stand there. Call them with McpCall:";
const DESCRIPTION_BYTES = 1_000;
const SCHEMA_BYTES = 4_000;
const ALL_BYTES = 24_000;
const MAX_NAMED = 100;

const describeNewTools = (tools: readonly OfferedTool[], listed: ToolHashes): string => {
  const lines: string[] = [CALL_THEM];
  const unlisted: string[] = [];
  let room = ALL_BYTES;
  for (const tool of tools) {
    const line = describeTool(tool, listed);
    room -= byteLength(line);
    if (room < 0) unlisted.push(`${tool.server}/${tool.tool}`);
    else lines.push(line);
  }
  if (unlisted.length > 0) lines.push(`Further ones (server/tool): ${listNames(unlisted)}.`);
  return lines.join("\n");
};

const listNames = (names: readonly string[]): string =>
  names.length <= MAX_NAMED
    ? names.join(", ")
    : `${names.slice(0, MAX_NAMED).join(", ")} and ${names.length - MAX_NAMED} more`;

const describeTool = (offered: OfferedTool, listed: ToolHashes): string => {
  const { server, tool, description, schema } = offered;
  const json = escapeTags(JSON.stringify(schema));
  const args =
    byteLength(json) <= SCHEMA_BYTES ? json : "too long to show; a wrong call is answered with what is wrong";
  const old = toolName(offered) in listed ? " (its form in your list is old)" : "";
  return `- server "${server}", tool "${tool}"${old}: ${takeHead(description, DESCRIPTION_BYTES)}\n  args: ${args}`;
};

const describeRemovedTools = (names: readonly string[]): readonly string[] =>
  names.length === 0 ? [] : [`No longer offered: ${listNames(names)}.`];
