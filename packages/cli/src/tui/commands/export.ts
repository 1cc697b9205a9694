/** /export and /copy: the conversation as a file, and the last answer in the clipboard.
 *  Invariant: an existing file is never replaced; text in the clipboard has no control characters but line feeds and tabs, so
 *  that pasting it somewhere cannot act.
 *  Elsewhere: a session as Markdown (@prefork/runtime/observe). */

import { mkdir, open, readdir } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, isAbsolute, join, resolve } from "node:path";
import { exportMarkdown, listTasks, readSession } from "@prefork/runtime/observe";
import type { TerminalContext } from "../context.ts";
import { type Block, safeLine } from "../state/index.ts";
import { counted, notice, type SlashCommand, storeOf } from "./command.ts";

const requireSession = ({ state }: TerminalContext): string => {
  const { session } = state();
  if (session === undefined) throw new Error("The session is not open yet.");
  return session;
};

// --- /export -------------------------------------------------------------------------------------------------------------

const sessionMarkdown = async (
  context: TerminalContext,
): Promise<{ readonly text: string; readonly forks: number }> => {
  const store = storeOf(context);
  const session = requireSession(context);
  const main = exportMarkdown((await readSession(store, session)).reading.entries);
  const parts: string[] = [];
  for (const { task } of await listTasks(store, { session, ended: true })) {
    if (task.session === undefined) continue;
    const read = await readSession(store, task.session).catch(() => undefined);
    if (!read) continue;
    const title = safeLine(task.label, 200).replace(/[\\`*_[\]<>#]/g, "\\$&");
    parts.push(`---\n\n# Fork: ${title}\n\n${exportMarkdown(read.reading.entries)}`);
  }
  return { text: [main, ...parts].join("\n"), forks: parts.length };
};

const pathOf = async (name: string, context: TerminalContext): Promise<string> => {
  const { env } = context.io;
  const { cwd, session = "session" } = context.state();
  if (name === "") return freePath(join(storeOf(context).state, "exports"), basename(session));
  if (name === "~" || name.startsWith("~/")) return join(env.HOME || homedir(), name.slice(2));
  return isAbsolute(name) ? name : resolve(cwd, name);
};

/** Outside the checkout, where it would be an untracked file. */
const freePath = async (folder: string, session: string): Promise<string> => {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const names = new Set(await readdir(folder));
  for (let count = 1; ; count++) {
    const name = `prefork-${session}${count === 1 ? "" : `-${count}`}.md`;
    if (!names.has(name)) return join(folder, name);
  }
};

const exportCommand: SlashCommand = {
  name: "export",
  args: "[file]",
  summary: "write the conversation with its calls and forks to a Markdown file",
  group: "Session",
  run: async (args, context) => {
    const path = await pathOf(args.trim(), context);
    const { text, forks } = await sessionMarkdown(context);
    try {
      await using file = await open(path, "wx", 0o600);
      await file.writeFile(text);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === "EEXIST")
        throw new Error(`${safeLine(path)} exists already and was not changed. Name another file: /export talk.md`);
      throw new Error(`${safeLine(path)} cannot be written: ${safeLine(code ?? message)}`);
    }
    const also = forks === 0 ? "" : ` with ${counted(forks, "fork")}`;
    notice(context, `The conversation${also} is in ${safeLine(path)}`);
  },
};

// --- /copy ---------------------------------------------------------------------------------------------------------------

/** Terminals drop longer sequences without a word. */
const MAX_SEQUENCE_BYTES = 74_994;

/** From the journal, which has the text as the model wrote it. */
const lastAnswer = async (context: TerminalContext): Promise<string> => {
  const { reading } = await readSession(storeOf(context), requireSession(context));
  for (const { entry } of reading.entries.toReversed()) {
    if (entry.kind !== "message" || entry.message.role !== "assistant") continue;
    const text = entry.message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
    if (text.trim() !== "") return text;
  }
  return shownAnswer(context);
};

/** What streams in now is not in the journal yet. */
const shownAnswer = ({ state }: TerminalContext): string => {
  const { done, open: unfinished } = state().main;
  const isAnswer = (block: Block): boolean => block.kind === "answer" && block.text.trim() !== "";
  const last = [...done, ...unfinished].findLast(isAnswer);
  return last?.kind === "answer" ? last.text : "";
};

const copy: SlashCommand = {
  name: "copy",
  summary: "put the last answer into the clipboard",
  group: "Session",
  run: async (_args, context) => {
    const answer = (await lastAnswer(context)).replace(/[^\P{Cc}\n\t]/gu, "").trim();
    if (answer === "") throw new Error("There is no answer to copy yet.");
    const encoded = Buffer.from(answer, "utf8").toString("base64");
    if (encoded.length > MAX_SEQUENCE_BYTES)
      throw new Error("The answer is too long for the clipboard of a terminal. /export writes it to a file.");
    context.writeSequence(`\u001b]52;c;${encoded}\u0007`);
    notice(
      context,
      `Sent ${counted(answer.length, "character")} to the clipboard of your terminal (OSC 52). If it does not arrive, the terminal does not allow that: /export writes a file.`,
    );
  },
};

export const exportCommands: readonly SlashCommand[] = [exportCommand, copy];
