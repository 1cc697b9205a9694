/** `prefork attach`: shows a session that runs in another process of this machine, and answers its questions.
 *  Invariant: leaving never stops the session, however this process ends. A fork cannot attach, since it could answer
 *  its own questions.
 *  Elsewhere: the terminal (../tui), lines without it (attach-display.ts), the connection (../attach). */

import { existsSync } from "node:fs";
import { JournalError } from "@prefork/runtime";
import { findSession, listSessions, showTask } from "@prefork/runtime/observe";
import type { Command } from "commander";
import {
  ConnectError,
  type ConnectedControl,
  connectControl,
  listRunning,
  type RunningSession,
} from "../attach/index.ts";
import { type Io, isStartedByFork, newCommand, UsageError } from "../io.ts";
import { canAsk } from "../print/index.ts";
import { renderTable } from "../table.ts";
import { type DisplayEnd, SessionDisplay } from "./attach-display.ts";
import { formatAge } from "./tasks-report.ts";
import { inLine, storeFor, withJournalErrors } from "./tasks-store.ts";

type AttachFlags = { readonly readOnly?: true; readonly list?: true; readonly plain?: true };

export const attachCommand = (io: Io): Command =>
  newCommand("attach", io)
    .description("show a session that runs in another process, and answer its questions")
    .argument("[session]", "session or task id, or its first letters; default: the only session that runs")
    .option("--read-only", "only watch: send no answers")
    .option("--plain", "print lines instead of opening the terminal; also the default for pipes and TERM=dumb")
    .option("--list", "list the sessions that run, and exit")
    .action((given: string | undefined, flags: AttachFlags) =>
      withJournalErrors(async () => io.exitWith(await attach(given, flags, io))),
    );

const attach = async (given: string | undefined, flags: AttachFlags, io: Io): Promise<number> => {
  if (await isStartedByFork(io))
    throw new UsageError("a fork started this command, and a fork may not attach to sessions");
  const since = Date.now();
  const running = await listRunning({ state: storeFor(io).state, env: io.env });
  if (flags.list || (given === undefined && running.length > 1)) {
    io.out(running.length === 0 ? `${NONE_RUNS}\n` : runningTable(running, io));
    return 0;
  }
  const target = given === undefined ? onlyOne(running) : await findTarget(given, running, io);
  if (canAsk(io) && !flags.plain && io.env.TERM !== "dumb") return await attachTerminal(target, flags, io);
  const readOnly = flags.readOnly === true || !canAsk(io);
  const unanswered = flags.readOnly
    ? "Not answered here (--read-only)."
    : `Not answered here, because this is not a terminal. Answer it in one: prefork attach ${target.running.session}`;
  using display = new SessionDisplay({ io, task: target.task, since, ...(readOnly ? { unanswered } : {}) });
  return await follow(target, { display, readOnly }, io);
};

const NONE_RUNS = "No session is running that could be attached to. Saved ones: prefork sessions --all";

const onlyOne = ([running]: readonly RunningSession[]): Target => {
  if (!running) throw new UsageError(`${NONE_RUNS.charAt(0).toLowerCase()}${NONE_RUNS.slice(1)}`);
  return { running };
};

const runningTable = (running: readonly RunningSession[], io: Io): string => {
  const table = renderTable({
    colour: io.colour,
    columns: [
      { title: "id" },
      { title: "age", align: "right" },
      { title: "questions", align: "right" },
      { title: "process", align: "right", dispensable: 1 },
      { title: "folder", dispensable: 2 },
      { title: "first prompt" },
    ],
    rows: running.map(({ session, about }) => ({
      cells: about
        ? [
            session,
            formatAge(Date.now() - about.openedAt),
            String(about.questions),
            ...[String(about.pid), inLine(about.cwd), inLine(about.title)],
          ]
        : [session, "", "", "", "", "(its process does not answer)"],
    })),
  });
  return `${table}To attach to one: prefork attach <id>\n`;
};

// --- which one ----------------------------------------------------------------------------------------------------------

type Target = { readonly running: RunningSession; readonly task?: string };

const findTarget = async (given: string, running: readonly RunningSession[], io: Io): Promise<Target> => {
  const exact = running.find(({ session }) => session === given);
  const matching = exact ? [exact] : running.filter(({ session }) => session.startsWith(given));
  const [only, ...others] = matching;
  if (only && others.length === 0) return { running: only };
  if (only)
    throw new UsageError(
      `${matching.length} running sessions begin with ${given}: ${matching.map(({ session }) => session).join(", ")}`,
    );
  return (await findTaskTarget(given, running, io)) ?? (await explainMissing(given, io));
};

const findTaskTarget = async (
  given: string,
  running: readonly RunningSession[],
  io: Io,
): Promise<Target | undefined> => {
  const detail = await showTask(storeFor(io), given, { cwd: process.cwd() }).catch(undefinedIfMissing);
  if (!detail) return undefined;
  const { task, session, owner } = detail;
  if (task.state.kind === "ended")
    throw new UsageError(
      `${task.id} has ended (prefork tasks show ${task.id}; to resume: prefork tasks resume ${task.id})`,
    );
  const owning = running.find((one) => one.session === session);
  if (owning) return { running: owning, task: task.id };
  if (owner) throw new UsageError(`${task.id} belongs to ${cannotAttach(session, owner.pid)}`);
  throw new UsageError(`${task.id} is not running; to resume it: prefork tasks resume ${task.id}`);
};

const undefinedIfMissing = (error: unknown): undefined => {
  if (!(error instanceof JournalError) || error.reason !== "not-found") throw error;
};

const explainMissing = async (given: string, io: Io): Promise<never> => {
  const store = storeFor(io);
  const id = await findSession(store, given).catch(undefinedIfMissing);
  if (id === undefined)
    throw new UsageError(`there is no session or task ${given} (prefork attach --list shows what runs)`);
  const saved = (await listSessions(store, { forks: true })).find((one) => one.id === id);
  if (saved?.kind === "session" && saved.holder) throw new UsageError(cannotAttach(id, saved.holder.pid));
  throw new UsageError(`session ${id} is not running; to resume it: prefork -p --resume ${id} "…"`);
};

const cannotAttach = (session: string, pid: number): string =>
  `session ${session}, which process ${pid} runs and nobody can attach to: it has just started, or was started with --no-attach`;

// --- in the terminal ----------------------------------------------------------------------------------------------------

const attachTerminal = async ({ running, task }: Target, flags: AttachFlags, io: Io): Promise<number> => {
  const { openTerminal } = await import("../tui/index.ts");
  const isReadOnly = flags.readOnly === true;
  const attach = { connect: () => connect(running, isReadOnly), store: storeFor(io), isReadOnly, task };
  // The terminal's own commands work in the folder of the session.
  if (running.about && existsSync(running.about.cwd)) process.chdir(running.about.cwd);
  return await openTerminal({ flags: {}, attach, run: io.run ?? (async () => 1) }, io);
};

// --- as lines -----------------------------------------------------------------------------------------------------------

type Following = { readonly display: SessionDisplay; readonly readOnly: boolean };

/** Until the person leaves or the session ends. A connection that was too slow is made again. */
const follow = async ({ running }: Target, { display, readOnly }: Following, io: Io): Promise<number> => {
  for (let isFirst = true; ; isFirst = false) {
    const connected = await connect(running, readOnly);
    if (!connected) return lost(running, io);
    using control = connected;
    if (isFirst) io.err(greeting(control, readOnly));
    const left = Promise.withResolvers<"detached">();
    const leave = (): void => left.resolve("detached");
    io.signal.addEventListener("abort", leave, { once: true });
    if (io.signal.aborted) leave();
    const end = await Promise.race([display.show(control), left.promise]);
    io.signal.removeEventListener("abort", leave);
    const code = await exitCodeFor(end, control, io);
    if (code !== "again") return code === "lost" ? lost(running, io) : code;
  }
};

const connect = async ({ path, session }: RunningSession, readOnly: boolean): Promise<ConnectedControl | undefined> => {
  try {
    return await connectControl(path, { readOnly });
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    if (error.reason === "dead") return undefined;
    throw new Error(`session ${session}: ${error.message}`, { cause: error });
  }
};

const greeting = ({ about }: ConnectedControl, readOnly: boolean): string => {
  const { session, cwd, pid } = about;
  const how = readOnly ? "watching; " : "";
  return `prefork: attached to session ${session} in ${inLine(cwd)} (process ${pid}; ${how}Ctrl-C detaches)\n`;
};

const exitCodeFor = async (
  end: DisplayEnd | "detached",
  { ended, session }: ConnectedControl,
  io: Io,
): Promise<number | "again" | "lost"> => {
  if (end === "task-ended") return 0;
  if (end !== "events-ended") {
    io.err(`\nprefork: detached; session ${session} continues (prefork attach ${session})\n`);
    // Ctrl-C is how people leave; other signals end this process as they end any other.
    const code = io.signal.aborted ? (io.interruptedCode?.() ?? 130) : 130;
    return code === 130 ? 0 : code;
  }
  const { kind, message } = await ended;
  switch (kind) {
    case "ended":
      io.err(`prefork: session ${session} has ended (to resume: prefork -p --resume ${session} "…")\n`);
      return 0;
    case "slow":
      io.err("prefork: this terminal fell behind; continuing from the last event\n");
      return "again";
    case "full":
    case "broken":
      throw new Error(`session ${session}: ${message}`);
    case "left":
    case "lost":
      return "lost";
  }
};

const lost = ({ session, about }: RunningSession, io: Io): number => {
  const who = about ? `process ${about.pid}` : "its process";
  io.err(
    `prefork: the connection to session ${session} was lost: ${who} has ended. To resume: prefork -p --resume ${session} "…"\n`,
  );
  return 1;
};
