/** `prefork -p "…"`: runs one prompt, or a stream of prompts. On a terminal it asks the person for permission; elsewhere
 *  there is nobody to ask, so a call that needs permission is denied.
 *  Invariant: standard output holds the requested output and nothing else; the exit code says how the run ended; the
 *  session's journal holds everything, even when the run fails.
 *  Elsewhere: flags (../print), the session (@prefork/runtime), formats (../print/output.ts). */

import { type Command, Option } from "commander";
import { collect, type Io, isStartedByFork, newCommand, UsageError } from "../io.ts";
import {
  canAsk,
  chooseEngine,
  createPrinter,
  type EngineFlags,
  findResumeTarget,
  INCOMPLETE,
  OUTPUT_FORMATS,
  type OutputFormat,
  openSession,
  PROVIDERS,
  planSession,
  promptOf,
  type ResumeFlags,
  readPiped,
  type SessionFlags,
  STREAM_JSON_NOTICE,
  streamedPrompts,
  TerminalAnswers,
} from "../print/index.ts";
import { addSessionOptions } from "../session-options.ts";

type PrintFlags = SessionFlags &
  EngineFlags &
  ResumeFlags & {
    readonly forks: boolean;
    readonly wait: boolean;
    readonly askAttached?: true;
    readonly outputFormat: OutputFormat;
    readonly inputFormat: "text" | "stream-json";
  };

export const printCommand = (io: Io): Command =>
  addSessionOptions(commandWithOptions(io), { providers: PROVIDERS }).action(
    async (words: readonly string[], flags: PrintFlags) => {
      io.exitWith(await print(words, flags, io));
    },
  );

const commandWithOptions = (io: Io): Command =>
  newCommand("print", io)
    .configureHelp({ commandUsage: () => 'prefork -p [options] "prompt"' })
    .description("run one prompt and print the answer; on a terminal, ask before risky calls")
    .argument("[prompt...]", "what to do; standard input is appended to it")
    .option("-p, --print", "run one prompt (this command)")
    .addOption(
      new Option("--output-format <format>", "print the answer, one JSON object, or one line per event")
        .choices([...OUTPUT_FORMATS])
        .default("text"),
    )
    .addOption(
      new Option("--input-format <format>", "how prompts arrive").choices(["text", "stream-json"]).default("text"),
    )
    .option("--max-turns <n>", "stop after this many turns")
    .option("--timeout <seconds>", "stop after this time")
    .option("--no-forks", "start no forks; sub-agents then know only their prompt")
    .option("--no-wait", "exit with the first answer, and stop agents that still run")
    .option("--ask-attached", "let questions wait until somebody answers them with prefork attach")
    .option("--cwd <dir>", "folder to work in")
    .option("--add-dir <dir>", "another folder that belongs to the workspace (repeatable)", collect)
    .option("--append-system-prompt <text>", "text to add to the system prompt")
    .option("-c, --continue", "resume the last session in this folder")
    .option("-r, --resume [id]", "resume this session, or the last one in this folder");

const print = async (words: readonly string[], flags: PrintFlags, io: Io): Promise<number> => {
  if (await isStartedByFork(io))
    throw new UsageError("a fork started this command, and a fork may not start agents: it does its work itself");
  if (flags.askAttached && flags.attach === false)
    throw new UsageError("--ask-attached and --no-attach exclude each other: nobody could answer");
  const plan = await planSession(flags, io);
  const resume = await findResumeTarget(flags, { ...plan, hasWords: words.length > 0 });
  const choice = chooseEngine(flags, io.env, resume?.before);
  const prompts = await promptsFor(words, flags, io);
  using answers = canAsk(io) && flags.inputFormat === "text" ? new TerminalAnswers(io) : undefined;
  const forks = flags.forks ? undefined : "off";
  const needsClients = answers === undefined && flags.askAttached === true;
  const ask = answers?.ask ?? (needsClients ? "attached" : undefined);
  await using opened = await openSession({ plan, choice, resume, forks, model: flags.model, ask, needsClients }, io);
  const { session, notices } = opened;
  const printer = createPrinter(flags.outputFormat, io);
  if (flags.outputFormat === "stream-json") io.err(`prefork: ${STREAM_JSON_NOTICE}\n`);
  notices.forEach(printer.notice);
  let code = 0;
  for await (const prompt of prompts) {
    const startedAt = performance.now();
    const exchange = session.prompt(prompt, { signal: io.signal, tasks: flags.wait ? "wait" : "leave" });
    for await (const event of exchange) {
      printer.event(event);
      if (needsClients && event.type === "question_opened")
        io.err(`prefork: a question waits for an answer: prefork attach ${session.id}\n`);
    }
    const result = await exchange.result();
    const { id: sessionId, model, engine } = session;
    const ended = printer.finished({ sessionId, model, engine, result, ms: Math.round(performance.now() - startedAt) });
    if (ended !== 0) code = ended;
    if (ended !== 0 && ended !== INCOMPLETE) break;
  }
  return code;
};

const promptsFor = async (
  words: readonly string[],
  { inputFormat }: PrintFlags,
  io: Io,
): Promise<AsyncIterable<string> | readonly string[]> => {
  if (inputFormat === "text") return [promptOf({ words, piped: await readPiped(io, { hasWords: words.length > 0 }) })];
  if (words.length > 0)
    throw new UsageError(
      "with --input-format stream-json, give prompts on standard input only, not on the command line",
    );
  return streamedPrompts(io.input());
};
