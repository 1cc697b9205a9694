/** What can be completed after which words? A table made from the real commands, for the scripts of all shells.
 *  Invariant: every command, option and choice comes from the commands themselves, so the table cannot be outdated.
 *  Elsewhere: the scripts (bash.ts, zsh.ts, fish.ts), names that only the running program knows (../commands/complete.ts). */

import type { Argument, Command, Option } from "commander";

/** What a value can be: names that `prefork __complete` lists, files, folders, fixed choices, or free text. */
export type ValueKind = "session" | "task" | "key" | "value" | "file" | "folder" | "text" | readonly string[];

export type CompletedOption = {
  readonly flag: string;
  readonly description: string;
  /** Missing if the option takes no value. */
  readonly value?: ValueKind;
};

export type CompletionRow = {
  /** The names of the command, without `prefork`. */
  readonly path: readonly string[];
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletedOption[];
  readonly arguments: readonly { readonly kind: ValueKind; readonly isRepeated: boolean }[];
};

const KINDS: Readonly<Record<string, ValueKind>> = {
  session: "session",
  task: "task",
  key: "key",
  value: "value",
  file: "file",
  files: "file",
  dir: "folder",
  folder: "folder",
  mode: ["default", "accept-edits", "plan", "bypass"],
};

/** `<id>` is a session's where the command or the option is about sessions; elsewhere it is a model's. */
const kindOf = (name: string, about: string): ValueKind => {
  if (name === "id") return /^(?:sessions|session|resume)$/.test(about) ? "session" : "text";
  return KINDS[name] ?? "text";
};

const valueKindOf = (option: Option): { readonly value?: ValueKind } => {
  if (option.argChoices) return { value: option.argChoices };
  const [, name] = /[<[]([\w-]+)(?:\.\.\.)?[>\]]$/.exec(option.flags) ?? [];
  return name === undefined ? {} : { value: kindOf(name, option.name()) };
};

const optionsOf = (options: readonly Option[]): readonly CompletedOption[] =>
  options
    .filter(({ hidden }) => !hidden)
    .flatMap((option) =>
      [option.long, option.short].flatMap((flag) =>
        flag ? [{ flag, description: option.description, ...valueKindOf(option) }] : [],
      ),
    );

const HELP: readonly CompletedOption[] = [
  { flag: "--help", description: "show help" },
  { flag: "-h", description: "show help" },
];

const argumentOf = (argument: Argument, path: readonly string[]): CompletionRow["arguments"][number] => ({
  kind: argument.argChoices ?? kindOf(argument.name(), path[0] ?? ""),
  isRepeated: argument.variadic,
});

/** `own` are the options of `prefork` itself and of what it runs without a command. */
export const completionTable = (program: Command, own: readonly Command[]): readonly CompletionRow[] => {
  const rowsOf = (command: Command, path: readonly string[]): readonly CompletionRow[] => {
    // `prefork sessions --all` means `prefork sessions list --all`.
    const isDefault = (one: Command): boolean => one.name() === "list";
    const shared = path.length === 0 ? own : command.commands.filter(isDefault);
    const options = [command, ...shared].flatMap((one) => optionsOf(one.options));
    const names = command.commands.map((one) => ({ name: one.name(), description: one.description() }));
    const isHelp = path.length === 1 && path[0] === "help";
    return [
      {
        path,
        commands: names,
        options: uniqueFlags([...options, ...HELP]),
        arguments: isHelp
          ? [{ kind: program.commands.map((one) => one.name()), isRepeated: true }]
          : command.registeredArguments.map((argument) => argumentOf(argument, path)),
      },
      ...command.commands.flatMap((one) => rowsOf(one, [...path, one.name()])),
    ];
  };
  return rowsOf(program, []);
};

const uniqueFlags = (options: readonly CompletedOption[]): readonly CompletedOption[] =>
  [...new Map(options.toReversed().map((option) => [option.flag, option])).values()].toReversed();
