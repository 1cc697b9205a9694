/** The session's side of the tools, over its own folder: real files, real shells, real programs. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import type { Json } from "@prefork/wire";
import type { Todo } from "../../src/events.ts";
import {
  builtInTools,
  createOutputStore,
  createRegistry,
  openToolFiles,
  ReadState,
  Shells,
  type ToolContext,
  type ToolFilesOptions,
  type ToolOutput,
} from "../../src/tools/index.ts";

export const registry = createRegistry(builtInTools);

export type Bench = AsyncDisposable & {
  /** Contains the workspace and, next to it, the kept outputs. */
  readonly base: Scratch;
  readonly work: string;
  readonly at: (name: string) => string;
  readonly put: (name: string, content?: string) => string;
  readonly context: ToolContext;
  readonly progressed: readonly string[];
  readonly todos: () => readonly Todo[];
  /** Checks the input as the loop does, then runs the tool. */
  readonly call: (tool: string, args: Json, over?: Partial<ToolContext>) => Promise<ToolOutput>;
};

export type BenchOptions = Partial<ToolContext> & {
  readonly files?: never;
  readonly fileOptions?: Partial<ToolFilesOptions>;
};

export const bench = async ({ fileOptions, ...over }: BenchOptions = {}): Promise<Bench> => {
  const base = scratch();
  const work = base.at("work");
  const kept = base.at("kept");
  for (const folder of [work, kept]) mkdirSync(folder);
  const files = await openToolFiles({ roots: [work], cwd: work, ...fileOptions });
  const keeping = createOutputStore(kept);
  let shellNumber = 0;
  let todos: readonly Todo[] = [];
  const progressed: string[] = [];
  const shells = new Shells({ ids: { next: (kind) => `${kind}-${++shellNumber}` }, keepStream: keeping.keepStream });
  const context: ToolContext = {
    callId: "call-1",
    agent: "main",
    signal: new AbortController().signal,
    cwd: work,
    environment: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: base.path, LANG: "C.UTF-8" },
    reads: ReadState.empty(),
    shells,
    todos: {
      get: () => todos,
      set: (next) => {
        todos = next;
      },
    },
    delegation: {},
    now: () => 0,
    progress: (text) => {
      progressed.push(text);
    },
    ...keeping,
    ...over,
    files,
  };
  const call: Bench["call"] = async (name, args, change = {}) => {
    const tool = registry.find(name);
    if (tool === undefined) throw new TypeError(`no tool ${name}`);
    const checked = registry.check(tool, JSON.stringify(args));
    if (!checked.ok) return { content: checked.reason, fault: "bad-input" };
    return tool.run(checked.input, { ...context, ...change });
  };
  return {
    base,
    work,
    at: (name) => join(work, name),
    put: (name, content) => base.put(join("work", name), content),
    context,
    progressed,
    todos: () => todos,
    call,
    [Symbol.asyncDispose]: async () => {
      await context.shells.stopAll();
      await files.close();
      base[Symbol.dispose]();
    },
  };
};

export const textOf = ({ content }: ToolOutput): string => {
  if (typeof content !== "string") throw new TypeError("not a text");
  return content;
};
