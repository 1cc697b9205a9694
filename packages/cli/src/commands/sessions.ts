/** `prefork sessions`: lists, shows, searches, renames, exports and deletes saved sessions.
 *  Invariant: reading changes no session; all sessions to delete are found before the first is deleted, and none in use is.
 *  Elsewhere: layout (sessions-report.ts), journals (@prefork/runtime), resuming a session (print.ts). */

import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import {
  deleteSession,
  exportMarkdown,
  findSession,
  listSessionPreviews,
  listSessions,
  readSession,
  renameSession,
  searchSessions,
} from "@prefork/runtime/observe";
import { FileHistory } from "@prefork/worktrees";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { visible } from "../visible.ts";
import { factsAsText, factsOf, matchAsText, sessionTable } from "./sessions-report.ts";
import { attachHints, reportProblem, reportUnreadable, storeFor, withJournalErrors } from "./tasks-store.ts";

export const sessionsCommand = (io: Io): Command => {
  const command = newCommand("sessions", io)
    .description("list, show, search, rename, export and delete saved sessions")
    .helpCommand(false);
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
      .description("show a session's title, turns, tokens, cost and last answer")
      .argument("<id>", "session id, or its first letters")
      .option("--json", "print one JSON object")
      .action((id: string, options: { readonly json?: true }) => withJournalErrors(() => show(id, options, io))),
  );
  command.addCommand(
    newCommand("search", io)
      .description("find sessions by words of their prompts and answers")
      .argument("<words...>", "a session must have them all; case does not matter")
      .option("--all", "search the sessions of all folders")
      .option("--json", "print one JSON object per line")
      .action((words: readonly string[], options: SearchFlags) => withJournalErrors(() => search(words, options, io))),
  );
  command.addCommand(
    newCommand("rename", io)
      .description("give a session a title; an empty one removes it")
      .argument("<id>", "session id, or its first letters")
      .argument("<title...>", "shown in lists instead of the first prompt")
      .action((id: string, words: readonly string[]) => withJournalErrors(() => rename(id, words, io))),
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
  const { state, now } = storeFor(io);
  const found = await listSessionPreviews(state, all ? {} : { cwd: resolve(".") });
  for (const session of found) if (session.kind === "unreadable") reportUnreadable(io)(session);
  for (const session of found)
    if (session.kind === "session" && session.problems > 0) {
      const { id, problems } = session;
      const places = problems === 1 ? "1 place" : `${problems} places`;
      io.err(`prefork: session ${id} is damaged in ${places} (prefork sessions show ${id})\n`);
    }
  if (json) {
    for (const session of found) io.out(jsonLine(session));
    return;
  }
  const sessions = found.filter((session) => session.kind === "session");
  if (sessions.length > 0) io.out(sessionTable(sessions, { folders: all === true, colour: io.colour, now: now() }));
  // Unreadable sessions were reported, so "no sessions" would be wrong.
  else if (found.length === 0)
    io.out(
      all ? "There are no sessions.\n" : "There are no sessions in this folder. To list all: prefork sessions --all\n",
    );
  const open = sessions.filter(({ holder }) => holder !== undefined).map(({ id }) => id);
  io.out(await attachHints(open, io));
};

const show = async (given: string, { json }: { readonly json?: true }, io: Io): Promise<void> => {
  const store = storeFor(io);
  const id = await findSession(store, given);
  const reading = await readSession(store, id);
  const previews = await listSessionPreviews(store.state, { forks: true });
  const preview = previews.find((one) => one.kind === "session" && one.id === id);
  const facts = factsOf(reading, id, preview?.kind === "session" ? preview : undefined);
  if (!json) return io.out(factsAsText(facts));
  io.out(jsonLine(facts));
  facts.problems.forEach(reportProblem(io));
};

const rename = async (given: string, words: readonly string[], io: Io): Promise<void> => {
  const store = storeFor(io);
  const id = await findSession(store, given);
  const title = await renameSession(store, id, words.join(" "));
  io.out(
    title === undefined ? `Session ${id} is named by its first prompt again.\n` : `Session ${id} is now: ${title}\n`,
  );
};

type SearchFlags = { readonly all?: true; readonly json?: true };

const search = async (words: readonly string[], { all, json }: SearchFlags, io: Io): Promise<void> => {
  const { state, now } = storeFor(io);
  const asked = words.flatMap((word) => word.split(/\s+/)).filter((word) => word !== "");
  if (asked.length === 0) throw new UsageError("name a word to search for: prefork sessions search flaky test");
  const onUnreadable = reportUnreadable(io);
  const where = all ? {} : { cwd: resolve(".") };
  let count = 0;
  for await (const match of searchSessions(state, asked, { ...where, signal: io.signal, onUnreadable })) {
    count += 1;
    io.out(json ? jsonLine(match) : matchAsText(match, { words: asked, colour: io.colour, now: now() }));
  }
  if (count > 0) return;
  if (!json)
    io.err(
      `prefork: no session ${all ? "" : "of this folder "}has ${quoted(asked)}${all ? "" : " (--all searches every folder)"}\n`,
    );
  io.exitWith(1);
};

const quoted = (words: readonly string[]): string => visible(words.map((word) => `"${word}"`).join(" and "));

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
  const listed = await listSessions(store, { forks: true });
  // Children keep no files.
  const folders = new Map(
    listed.flatMap((one) =>
      one.kind === "session" && !one.parent && !one.startedBy ? [[one.id, one.cwd] as const] : [],
    ),
  );
  for (const id of new Set(ids))
    for (const gone of await deleteSession(store, id, { forks })) {
      await dropSnapshots(gone, folders.get(gone));
      io.out(`deleted ${gone}\n`);
    }
};

/** The files that were kept for its rewinds. The repository may be gone, and nothing depends on them. */
const dropSnapshots = async (session: string, cwd: string | undefined): Promise<void> => {
  if (cwd !== undefined)
    await FileHistory.drop({ cwd, session, signal: AbortSignal.timeout(20_000) }).catch(() => undefined);
};
