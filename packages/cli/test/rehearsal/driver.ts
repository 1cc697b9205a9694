/** A minimal agent loop: sends a request over HTTP, runs the calls in a folder, sends the next request. */

import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { builtInTools } from "@prefork/runtime";
import { createRegistry } from "@prefork/runtime/internal";
import type { Json, JsonObject } from "@prefork/wire";

type Input = Readonly<Record<string, string | number | boolean | undefined>>;
export type Block = JsonObject & { readonly type: string };
export type Message = { readonly role: "user" | "assistant"; readonly content: readonly Block[] };
type Ran = { readonly text: string; readonly isError?: true };

const registry = createRegistry(builtInTools);

/** The real tools, as a session declares them. */
export const TOOLS: readonly JsonObject[] = registry.specs.flatMap((spec) =>
  spec.type === "function" ? [{ name: spec.name, description: spec.description, input_schema: spec.inputSchema }] : [],
);

/** Throws if the real tool would reject the call. */
const checkInput = (name: string, input: Json): void => {
  const tool = registry.find(name);
  const checked =
    tool === undefined ? { ok: false, reason: "there is no such tool" } : registry.check(tool, JSON.stringify(input));
  if (!checked.ok) throw new Error(`${name} ${JSON.stringify(input)}: ${"reason" in checked ? checked.reason : ""}`);
};

export const folderWith = (files: Readonly<Record<string, string>>): Disposable & { readonly path: string } => {
  const path = mkdtempSync(join(tmpdir(), "rehearsal-"));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
};

/** A program's output and exit code. A program that cannot be started is a mistake in the test, never an answer. */
const runProgram = (
  cwd: string,
  program: string,
  args: readonly string[],
): { readonly text: string; readonly code: number } => {
  const { stdout, stderr, status, error } = spawnSync(program, args, {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (error !== undefined) throw new Error(`${program} could not be run`, { cause: error });
  return { text: `${stdout}${stderr}`, code: status ?? -1 };
};

const failure = (text: string): Ran => ({ text, isError: true });

const bash = (cwd: string, { command }: Input): Ran => {
  const { text, code } = runProgram(cwd, "/bin/sh", ["-c", String(command)]);
  return { text: `${text}[exit code ${code}]` };
};

/** Files below a folder whose names match, sorted by name. */
const filesIn = (cwd: string, { path = ".", glob = "**/*" }: Input): readonly string[] =>
  globSync(String(glob).includes("/") ? String(glob) : `**/${glob}`, { cwd: resolve(cwd, String(path)) })
    .map((name) => join(String(path), name))
    .filter((name) => statSync(join(cwd, name)).isFile())
    .sort();

const grep = (cwd: string, input: Input): Ran => {
  const { pattern, output_mode: mode } = input;
  const found = filesIn(cwd, input).flatMap((name) => {
    const lines = readFileSync(join(cwd, name), "utf8").replace(/\n$/, "").split("\n");
    const fitting = lines.flatMap((line, at) => (line.search(String(pattern)) >= 0 ? [`${at + 1}:${line}`] : []));
    if (fitting.length === 0) return [];
    if (mode === "count") return [`${name}: ${fitting.length}`];
    return mode === "files_with_matches" ? [name] : [[name, ...fitting].join("\n")];
  });
  if (found.length === 0) return { text: "Nothing found (what git ignores was not searched)." };
  return { text: found.join(mode === "content" ? "\n\n" : "\n") };
};

const list = (cwd: string, { pattern, path }: Input): Ran => {
  const names = filesIn(cwd, { path, glob: pattern });
  return {
    text: names.length === 0 ? `No file fits ${pattern} (what git ignores was not looked at).` : names.join("\n"),
  };
};

const read = (cwd: string, { file_path: path, offset = 1, limit = 2_000 }: Input): Ran => {
  try {
    const lines = readFileSync(resolve(cwd, String(path)), "utf8")
      .replace(/\n$/, "")
      .split("\n");
    const shown = lines.slice(Number(offset) - 1, Number(offset) - 1 + Number(limit));
    return { text: shown.map((line, at) => `${Number(offset) + at}\t${line}`).join("\n") };
  } catch {
    return failure(`${path}: there is no such file or folder.`);
  }
};

const edit = (cwd: string, { file_path: path, old_string: old, new_string: text, replace_all: all }: Input): Ran => {
  const before = readFileSync(resolve(cwd, String(path)), "utf8");
  if (!before.includes(String(old))) return failure(`${path}: the text is not in the file. Nothing was changed.`);
  const after = all
    ? before.replaceAll(String(old), () => String(text))
    : before.replace(String(old), () => String(text));
  writeFileSync(resolve(cwd, String(path)), after);
  return { text: `Edited ${path}.` };
};

/** The tools of a session that these tests need. */
export const toolsIn =
  (cwd: string) =>
  (name: string, input: Input): Ran => {
    switch (name) {
      case "Grep":
        return grep(cwd, input);
      case "Read":
        return read(cwd, input);
      case "Edit":
        return edit(cwd, input);
      case "Glob":
        return list(cwd, input);
      case "Bash":
        return bash(cwd, input);
      case "Write":
        writeFileSync(resolve(cwd, String(input.file_path)), String(input.content));
        return { text: `Made ${input.file_path}.` };
      default:
        return { text: `${name}: ok` };
    }
  };

export type Run = ReturnType<typeof toolsIn>;

export const ask = async (
  url: string,
  messages: readonly Message[],
  tools: Json = TOOLS,
): Promise<readonly Block[]> => {
  const response = await fetch(`${url}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "any", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "claude-opus-4-6", max_tokens: 8_000, tools, messages }),
  });
  const { content, error } = (await response.json()) as { content?: readonly Block[]; error?: Json };
  if (content === undefined) throw new Error(JSON.stringify(error));
  return content;
};

export const user = (...texts: readonly string[]): Message => ({
  role: "user",
  content: texts.map((text) => ({ type: "text", text })),
});

type Played = {
  /** Each turn's calls, without ids. */
  readonly turns: readonly (readonly JsonObject[])[];
  readonly text: string;
  readonly messages: readonly Message[];
};

export type Stage = { readonly url: string; readonly run: Run; readonly tools?: Json; readonly mostTurns?: number };

/** Continues until the model makes no more calls. */
export const play = async ({ url, run, tools, mostTurns = 20 }: Stage, start: readonly Message[]): Promise<Played> => {
  const messages = [...start];
  const turns: JsonObject[][] = [];
  for (;;) {
    const content = await ask(url, messages, tools);
    messages.push({ role: "assistant", content });
    const calls = content.filter(({ type }) => type === "tool_use");
    if (calls.length === 0 || turns.length === mostTurns)
      return { turns, text: content.map(({ text }) => text).join(""), messages };
    turns.push(calls.map(({ name, input }) => ({ [String(name)]: input ?? null })));
    const results = calls.map(({ id, name, input }): Block => {
      checkInput(String(name), input ?? null);
      const { text, isError } = run(String(name), input as Input);
      return {
        type: "tool_result",
        tool_use_id: id ?? "",
        content: [{ type: "text", text }],
        ...(isError ? { is_error: true } : {}),
      };
    });
    messages.push({ role: "user", content: results });
  }
};
