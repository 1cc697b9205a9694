/** `prefork -p "…"`: one prompt, or a stream of them, to its end. On a terminal questions are put to the person there;
 *  elsewhere there is nobody to ask, and what would be asked is denied.
 *  Invariant: standard output holds what was asked for and nothing else; the exit code says how it ended; everything said
 *  is in the session's journal, also when it ends badly.
 *  Elsewhere: flags (../print), the session (@prefork/runtime), formats (../print/output.ts). */

import { type Command, Option } from "commander";
import { type Io, isStartedByFork, newCommand, UsageError } from "../io.ts";
import {
  canAsk,
  chooseEngine,
  createPrinter,
  type EngineFlags,
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
  STREAM_JSON_CHANGES,
  streamedPrompts,
  TerminalAnswers,
  wantedSession,
} from "../print/index.ts";

type PrintFlags = SessionFlags &
  EngineFlags &
  ResumeFlags & {
    readonly forks: boolean;
    readonly wait: boolean;
    readonly outputFormat: OutputFormat;
    readonly inputFormat: "text" | "stream-json";
  };

const gather = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value];

export const printCommand = (io: Io): Command =>
  newCommand("print", io)
    .configureHelp({ commandUsage: () => 'prefork -p [options] "prompt"' })
    .description("run one prompt to its end and print the answer; on a terminal you are asked what may run")
    .argument("[prompt...]", "what to do; standard input is added to it")
    .option("-p, --print", "run without a terminal (this command)")
    .addOption(
      new Option("--output-format <format>", "the answer, one JSON object, or every event as a line")
        .choices([...OUTPUT_FORMATS])
        .default("text"),
    )
    .addOption(
      new Option("--input-format <format>", "how prompts arrive").choices(["text", "stream-json"]).default("text"),
    )
    .option("--model <id>", "model to ask for")
    .addOption(new Option("--provider <name>", "who answers").choices([...PROVIDERS]))
    .option("--base-url <url>", "another endpoint that speaks the provider's format")
    .option("--permission-mode <mode>", "default, accept-edits, plan or bypass")
    .option("--allow <rule>", "allow calls under this rule; may be given again", gather)
    .option("--deny <rule>", "deny calls under this rule; may be given again", gather)
    .option("--max-turns <n>", "stop after this many turns")
    .option("--max-budget-usd <amount>", "stop before a request could cost more than this in all")
    .option("--timeout <seconds>", "stop after this time")
    .option("--no-forks", "the agent starts no forks; an agent it starts knows only its prompt")
    .option("--no-wait", "end when the answer is there; agents that still run are ended")
    .option("--cwd <dir>", "folder to work in")
    .option("--add-dir <dir>", "another folder that counts as part of the workspace; may be given again", gather)
    .option("--append-system-prompt <text>", "more for the system prompt")
    .option("-c, --continue", "go on with the last session of this folder")
    .option("-r, --resume [id]", "go on with this session, or the last one of this folder")
    .addHelpText(
      "after",
      `
Keys: ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, OPENAI_API_KEY, GEMINI_API_KEY, or the provider's own with --provider;
addresses: ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GOOGLE_GEMINI_BASE_URL. Without any of them the embedded rehearsal engine answers.
Exit codes: 0 done, 1 failed, 2 called wrongly, 3 stopped by a limit, 4 refused by the model, 5 done but incomplete (every
fork failed, the session's journal is damaged, or a merge left conflicts in files), 130 interrupted (129 by SIGHUP, 143 by
SIGTERM). What is worth knowing beside the answer stands on the error output, and with json and events in "warnings"
of the result.`,
    )
    .action(async (words: readonly string[], flags: PrintFlags) => {
      io.exitWith(await print(words, flags, io));
    });

const print = async (words: readonly string[], flags: PrintFlags, io: Io): Promise<number> => {
  if (await isStartedByFork(io))
    throw new UsageError("this was started by a fork, which does its work itself and starts no agent");
  const plan = await planSession(flags, io);
  const wanted = await wantedSession(flags, { ...plan, hasWords: words.length > 0 });
  const choice = chooseEngine(flags, io.env, wanted?.before);
  const prompts = await promptsFor(words, flags, io);
  using answers = canAsk(io) && flags.inputFormat === "text" ? new TerminalAnswers(io) : undefined;
  const forks = flags.forks ? undefined : "off";
  await using opened = await openSession({ plan, choice, wanted, forks, model: flags.model, ask: answers?.ask }, io);
  const { session, notices } = opened;
  const printer = createPrinter(flags.outputFormat, io);
  if (flags.outputFormat === "stream-json") io.err(`prefork: ${STREAM_JSON_CHANGES}\n`);
  notices.forEach(printer.notice);
  let code = 0;
  for await (const prompt of prompts) {
    const begun = performance.now();
    const exchange = session.prompt(prompt, { signal: io.signal, tasks: flags.wait ? "wait" : "leave" });
    for await (const event of exchange) printer.event(event);
    const result = await exchange.result();
    const { id: sessionId, model, engine } = session;
    const ended = printer.finished({ sessionId, model, engine, result, ms: Math.round(performance.now() - begun) });
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
  if (words.length > 0) throw new UsageError("with --input-format stream-json prompts come on standard input alone");
  return streamedPrompts(io.input());
};
