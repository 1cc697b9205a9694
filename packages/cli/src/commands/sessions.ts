/** `prefork sessions`: lists, shows, exports and deletes saved sessions.
 *  Invariant: reading changes nothing; all sessions to delete are found before the first is deleted, and none in use is.
 *  Elsewhere: journals (@prefork/runtime), resuming a session (print.ts). */

import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import {
  deleteSession,
  exportMarkdown,
  findSession,
  type ListedSession,
  listSessions,
  readSession,
  type UnreadableSession,
} from "@prefork/runtime/observe";
import { promptTokens } from "@prefork/wire";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { formatMoney, formatTokens } from "../numbers.ts";
import { renderTable, type Table } from "../table.ts";
import { reportProblem, reportUnreadable, storeFor, withJournalErrors } from "./tasks-store.ts";

export const sessionsCommand = (io: Io): Command => {
  const command = newCommand("sessions", io)
    .description("list, show, export and delete saved sessions")
    .helpCommand(false)
    .addHelpText("after", "\nWithout a command: list.");
  command.addCommand(
    newCommand("list", io)
      .description("list the sessions of this folder")
      .option("--all", "list the sessions of all folders")
      .option("--json", "print one JSON object per line")
      .action((options: ListFlags) => withJournalErrors(() => list(options, io))),
    { isDefault: true },
  );
  command.addCommand(
    newCommand("show", io)
      .description("show a session's turns, tokens and cost")
      .argument("<id>", "session id, or its first letters")
      .option("--json", "print one JSON object")
      .action((id: string, options: { readonly json?: true }) => withJournalErrors(() => show(id, options, io))),
  );
  command.addCommand(
    newCommand("export", io)
      .description("print the conversation as Markdown")
      .argument("<id>", "session id, or its first letters")
      .option("-o, --output <file>", "write to this file, which must not exist")
      .action((id: string, options: { readonly output?: string }) =>
        withJournalErrors(() => exportOne(id, options, io)),
      ),
  );
  command.addCommand(
    newCommand("delete", io)
      .description("delete sessions permanently")
      .argument("<id...>", "session ids, or their first letters")
      .option("--forks", "also delete their forks; otherwise a session that forks need is kept")
      .action((ids: readonly string[], options: { readonly forks?: true }) =>
        withJournalErrors(() => remove(ids, options, io)),
      ),
  );
  return command;
};

type ListFlags = { readonly all?: true; readonly json?: true };

const list = async ({ all, json }: ListFlags, io: Io): Promise<void> => {
  const found = await listSessions(storeFor(io), all ? {} : { cwd: resolve(".") });
  for (const session of found) if (session.kind === "unreadable") reportUnreadable(io)(session);
  for (const session of found)
    if (session.kind === "session" && session.problems > 0) {
      const { id, problems } = session;
      const places = problems === 1 ? "1 place" : `${problems} places`;
      io.err(`prefork: session ${id} is damaged in ${places} (prefork sessions show ${id})\n`);
    }
  if (json) for (const session of found) io.out(jsonLine(session));
  else listAsText(found, { folders: all === true }, io);
};

const listAsText = (
  found: readonly (ListedSession | UnreadableSession)[],
  { folders: all }: { readonly folders: boolean },
  io: Io,
): void => {
  const sessions = found.filter((session) => session.kind === "session");
  if (sessions.length === 0) {
    if (found.length > 0) return; // unreadable sessions were reported, so "no sessions" would be wrong
    io.out(
      all ? "There are no sessions.\n" : "There are no sessions in this folder. To list all: prefork sessions --all\n",
    );
  } else io.out(renderTable(tableOf(sessions, { folders: all, colour: io.colour })));
};

const tableOf = (
  sessions: readonly ListedSession[],
  { folders, colour }: { readonly folders: boolean; readonly colour: boolean },
): Table => ({
  colour,
  columns: [
    { title: "id" },
    { title: "last used (UTC)" },
    { title: "turns", align: "right" },
    { title: "size", align: "right" },
    ...(folders ? [{ title: "folder" }] : []),
    { title: "first prompt" },
  ],
  rows: sessions.map(({ id, usedAt, turns, bytes, cwd, firstPrompt, holder }) => ({
    cells: [
      id,
      `${timeOf(usedAt)}${holder ? ` (open in process ${holder.pid})` : ""}`,
      String(turns),
      sizeOf(bytes),
      ...(folders ? [cwd] : []),
      firstPrompt,
    ],
  })),
});

const timeOf = (ms: number): string => new Date(ms).toISOString().slice(0, 16).replace("T", " ");

const sizeOf = (bytes: number): string =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

const show = async (given: string, { json }: { readonly json?: true }, io: Io): Promise<void> => {
  const store = storeFor(io);
  const id = await findSession(store, given);
  const { replayed } = await readSession(store, id);
  const { opened, turns, usage, usd, lastAt, openEpoch: began, problems, openCalls, forks } = replayed;
  const facts = {
    id,
    folder: opened?.cwd ?? "",
    model: began?.head.model ?? opened?.model ?? "",
    lastUsed: timeOf(lastAt),
    epoch: began?.epoch ?? 0,
    turns,
    promptTokens: promptTokens(usage),
    readFromCache: usage.read,
    outputTokens: usage.output,
    usd,
    openCalls: openCalls.length,
    forks: forks.map(({ session }) => session),
    problems: problems.map(({ line, detail }) => `line ${line}: ${detail}`),
  };
  if (json) {
    io.out(jsonLine(facts));
    facts.problems.forEach(reportProblem(io));
    return;
  }
  const shown = { ...facts, promptTokens: formatTokens(facts.promptTokens), readFromCache: formatTokens(usage.read) };
  const figures = { outputTokens: formatTokens(usage.output), usd: formatMoney(usd) };
  for (const [name, value] of Object.entries({ ...shown, ...figures }))
    io.out(`${name.padEnd(14)} ${Array.isArray(value) ? value.join("; ") || "none" : value}\n`);
};

const exportOne = async (given: string, { output }: { readonly output?: string }, io: Io): Promise<void> => {
  const store = storeFor(io);
  const { reading, replayed } = await readSession(store, await findSession(store, given));
  for (const { line, detail } of replayed.problems) reportProblem(io)(`line ${line}: ${detail}`);
  const markdown = exportMarkdown(reading.entries);
  if (output === undefined) {
    io.out(markdown);
    return;
  }
  try {
    await writeFile(output, markdown, { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw new UsageError(`${output} cannot be written: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
};

const remove = async (
  given: readonly string[],
  { forks = false }: { readonly forks?: boolean },
  io: Io,
): Promise<void> => {
  const store = storeFor(io);
  // All are found before the first is deleted.
  const ids: string[] = [];
  for (const each of given) ids.push(await findSession(store, each));
  for (const id of new Set(ids))
    for (const gone of await deleteSession(store, id, { forks })) io.out(`deleted ${gone}\n`);
};
