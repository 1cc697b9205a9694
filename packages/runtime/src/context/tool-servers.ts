/** What is the model told of tools that are not in its list, or not as they stand there?
 *  Invariant: the list stays as it is for the whole epoch; what a server offers beside it is said once, in words, with how
 *  to call it; the same two states give the same words. Text of servers is bounded and cannot pose as ours.
 *  Elsewhere: the servers (../extensions/mcp), the tool that reaches them (../tools), where a note goes (notes.ts). */

import type { JsonObject } from "@prefork/wire";
import { bytesOfText, escapeTags, headOf } from "./text.ts";

export type OfferedTool = {
  readonly server: string;
  readonly tool: string;
  /** Bounded, and without tags of ours. */
  readonly description: string;
  readonly schema: JsonObject;
  /** Of description and schema. */
  readonly hash: string;
};

/** Hashes by the name that rules know: `mcp__server__tool`. */
export type ToolHashes = Readonly<Record<string, string>>;

export type Offered = {
  /** As they stand in the list of tools. */
  readonly listed: ToolHashes;
  /** Servers whose tools are known by now, each with all of them. */
  readonly servers: readonly { readonly name: string; readonly tools: readonly OfferedTool[] }[];
};

export const toolName = ({ server, tool }: Pick<OfferedTool, "server" | "tool">): string => `mcp__${server}__${tool}`;

/** What the model knows once it was told all of this; of servers that are not known yet, what it knew before. */
export const toldTools = ({ listed, servers }: Offered, before: ToolHashes = listed): ToolHashes => {
  const isKnown = (name: string): boolean => servers.some((server) => belongsTo(name, server.name));
  const kept = Object.entries(before).filter(([name]) => !isKnown(name));
  const now = servers.flatMap(({ tools }) => tools.map((tool) => [toolName(tool), tool.hash] as const));
  return Object.fromEntries([...kept, ...now]);
};

/** A server's name holds no two underscores, so a tool's name has one reading. */
const belongsTo = (name: string, server: string): boolean => name.startsWith(`mcp__${server}__`);

/** What has to be said to somebody who knows `before`; undefined where that is nothing. */
export const toolWords = (offered: Offered, before: ToolHashes = offered.listed): string | undefined => {
  const tools = offered.servers.flatMap((server) => server.tools);
  const fresh = tools.filter((tool) => before[toolName(tool)] !== tool.hash);
  const there = new Set(tools.map(toolName));
  const gone = Object.keys(before).filter(
    (name) => !there.has(name) && offered.servers.some((server) => belongsTo(name, server.name)),
  );
  const parts = [...(fresh.length === 0 ? [] : [freshText(fresh, offered.listed)]), ...goneText(gone)];
  return parts.length === 0 ? undefined : parts.join("\n");
};

const CALL_THEM =
  "Tools of tool servers that are not in your list, or no longer as they stand there. Call them with McpCall:";
const DESCRIPTION_BYTES = 1_000;
const SCHEMA_BYTES = 4_000;
const ALL_BYTES = 24_000;
const MAX_NAMED = 100;

const freshText = (tools: readonly OfferedTool[], listed: ToolHashes): string => {
  const lines: string[] = [CALL_THEM];
  const left: string[] = [];
  let room = ALL_BYTES;
  for (const tool of tools) {
    const line = toolText(tool, listed);
    room -= bytesOfText(line);
    if (room < 0) left.push(`${tool.server}/${tool.tool}`);
    else lines.push(line);
  }
  if (left.length > 0) lines.push(`Further ones (server/tool): ${namesText(left)}.`);
  return lines.join("\n");
};

const namesText = (names: readonly string[]): string =>
  names.length <= MAX_NAMED
    ? names.join(", ")
    : `${names.slice(0, MAX_NAMED).join(", ")} and ${names.length - MAX_NAMED} more`;

const toolText = (offered: OfferedTool, listed: ToolHashes): string => {
  const { server, tool, description, schema } = offered;
  const json = escapeTags(JSON.stringify(schema));
  const args =
    bytesOfText(json) <= SCHEMA_BYTES ? json : "too long to show; a wrong call is answered with what is wrong";
  const old = toolName(offered) in listed ? " (its form in your list is old)" : "";
  return `- server "${server}", tool "${tool}"${old}: ${headOf(description, DESCRIPTION_BYTES)}\n  args: ${args}`;
};

const goneText = (names: readonly string[]): readonly string[] =>
  names.length === 0 ? [] : [`No longer offered: ${namesText(names)}.`];
