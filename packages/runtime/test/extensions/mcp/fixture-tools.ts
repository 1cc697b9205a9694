/** What the tool servers of the tests do, over any transport: real answers to real messages.
 *  Invariant: it knows nothing of our client, and is written from the protocol's side alone. */

import { spawn } from "node:child_process";

export type Described = { readonly name: string; readonly [key: string]: unknown };

type Incoming = {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly arguments?: Readonly<Record<string, unknown>>;
    readonly protocolVersion?: string;
    readonly cursor?: string;
  };
};

export type Side = {
  /** The tools that it offers now. */
  tools: readonly Described[];
  readonly pageSize?: number;
  readonly version?: string;
  /** Sends a notification of its own. */
  readonly notify: (method: string) => void;
  /** Notifications that it received. */
  readonly heard: string[];
  readonly exit?: (code: number) => void;
};

/** The answer, or undefined if there is none. */
export const respond = async (side: Side, message: Incoming): Promise<object | undefined> => {
  const { id, method, params = {} } = message;
  if (id === undefined) {
    side.heard.push(String(method));
    return undefined;
  }
  const result = (value: object): object => ({ jsonrpc: "2.0", id, result: value });
  const error = (code: number, words: string): object => ({ jsonrpc: "2.0", id, error: { code, message: words } });
  switch (method) {
    case "initialize":
      return result({
        protocolVersion: side.version ?? params.protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "fixture", version: "1" },
      });
    case "tools/list": {
      const from = Number(params.cursor ?? 0);
      const { pageSize = 100 } = side;
      const more = from + pageSize < side.tools.length ? { nextCursor: String(from + pageSize) } : {};
      return result({ tools: side.tools.slice(from, from + pageSize), ...more });
    }
    case "tools/call": {
      const made = await call(side, String(params.name), params.arguments ?? {});
      if (made === "hangs") return undefined;
      return "code" in made ? error(made.code, made.words) : result(made);
    }
    default:
      return error(-32601, "no such method");
  }
};

const said = (words: string): { readonly content: readonly object[] } => ({ content: [{ type: "text", text: words }] });

type Made = { readonly content: readonly object[] } | { readonly code: number; readonly words: string } | "hangs";

const call = async (side: Side, name: string, args: Readonly<Record<string, unknown>>): Promise<Made> => {
  switch (name) {
    case "echo":
      return said(JSON.stringify(args));
    case "environment":
      return said(JSON.stringify(process.env));
    case "fail":
      return { ...said("it did not work"), isError: true } as Made;
    case "picky":
      return { code: -32602, words: "number is missing" };
    case "flood":
      return said("x".repeat(17 * 1024 * 1024));
    case "hang":
      return "hangs";
    case "picture":
      return { content: [{ type: "image", data: "aGFsbG8=", mimeType: "image/png" }, ...said("a dot").content] };
    case "mixed":
      return {
        content: [
          { type: "audio", data: "aGFsbG8=", mimeType: "audio/wav" },
          { type: "resource_link", uri: "file:///a.txt", name: "a" },
          { type: "resource", resource: { uri: "file:///b.txt", text: "inside b" } },
        ],
      };
    case "become":
      side.tools = args.tools as readonly Described[];
      side.notify("notifications/tools/list_changed");
      return said("changed");
    case "die":
      side.exit?.(3);
      return "hangs";
    case "family": {
      const child = spawn("/bin/bash", ["-c", "trap '' TERM; while :; do sleep 1; done"], { stdio: "ignore" });
      return said(`${process.pid} ${child.pid}`);
    }
    default:
      return { code: -32602, words: `there is no tool ${name}` };
  }
};

export const described = (name: string, more: object = {}): Described => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: "object", properties: { value: { type: "string" } } },
  ...more,
});
