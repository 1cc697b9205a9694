/** `prefork config`: shows settings and where they come from, lists what can be set, changes and edits them.
 *  Invariant: a change that would make the file invalid is not written; nothing in an untrusted folder is read; comments
 *  and order of a file are kept.
 *  Elsewhere: which value applies (config-sources.ts), the editor (config-edit.ts), what a setting means
 *  (docs/permissions.md and the schema). */

import { settingsJsonSchema } from "@prefork/guard";
import { type Command, Option } from "commander";
import { collect, type Io, newCommand, UsageError } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { visible } from "../visible.ts";
import { editSettings } from "./config-edit.ts";
import {
  fileOf,
  knownKeys,
  parseEditable,
  pathOf,
  problemsOf,
  readAs,
  readSettingsText,
  type Scope,
  writeSettingsText,
} from "./config-files.ts";
import { type SettingFlags, type SettingSource, settingSources } from "./config-sources.ts";

type ScopeFlags = { readonly scope: Scope };
type JsonFlags = { readonly json?: true };
type ListFlags = SettingFlags & JsonFlags & { readonly all?: true };

const scope = (): Option =>
  new Option("--scope <scope>", "your own settings, the project's, or your own for this project")
    .choices(["user", "project", "local"])
    .default("user");

/** What `prefork -p` with the same flags would use. */
const addSettingFlags = (command: Command): Command =>
  command
    .addOption(
      new Option("--permission-mode <mode>", "as if prefork -p had this flag").choices([
        ...["default", "accept-edits", "plan", "bypass"],
      ]),
    )
    .option("--allow <rule>", "as if prefork -p had this flag (repeatable)", collect)
    .option("--deny <rule>", "as if prefork -p had this flag (repeatable)", collect);

export const configCommand = (io: Io): Command => {
  const command = newCommand("config", io).description("show, list, change and edit settings").helpCommand(false);
  command.addCommand(
    addSettingFlags(
      newCommand("list", io)
        .description("show every setting that applies here, with its layer and file")
        .option("--all", "also show the defaults of what is not set")
        .option("--json", "print one JSON object per line"),
    ).action((flags: ListFlags) => list(flags, io)),
    { isDefault: true },
  );
  command.addCommand(
    newCommand("keys", io)
      .description("list everything that can be set, and what it does")
      .option("--json", "print the JSON schema")
      .action(({ json }: JsonFlags) => io.out(json ? settingsJsonSchema() : keysText())),
  );
  command.addCommand(
    addSettingFlags(
      newCommand("get", io)
        .description("show the value of one setting, and each layer that has one")
        .argument("<key>", "for example forks.maxTurns")
        .option("--json", "print one JSON object per line"),
    ).action((key: string, flags: SettingFlags & JsonFlags) => get(key, flags, io)),
  );
  command.addCommand(
    newCommand("set", io)
      .description("change one setting")
      .argument("<key>", "for example forks.maxTurns")
      .argument("<value>", "JSON, or plain text")
      .addOption(scope())
      .action((key: string, value: string, flags: ScopeFlags) => change(key, parseValue(value), { flags, io })),
  );
  command.addCommand(
    newCommand("unset", io)
      .description("remove one setting, so that its default applies")
      .argument("<key>", "for example forks.maxTurns")
      .addOption(scope())
      .action((key: string, flags: ScopeFlags) => change(key, undefined, { flags, io })),
  );
  command.addCommand(
    newCommand("edit", io)
      .description("open the settings file in your editor, and check it before it is saved")
      .addOption(scope())
      .action(({ scope: which }: ScopeFlags) => editSettings(which, io)),
  );
  command.addCommand(
    newCommand("path", io)
      .description("print the path of the settings file")
      .addOption(scope())
      .action(({ scope: which }: ScopeFlags) => io.out(`${fileOf(which, io)}\n`)),
  );
  return command;
};

// --- showing -----------------------------------------------------------------------------------------------------------

const list = async ({ all, json, ...flags }: ListFlags, io: Io): Promise<void> => {
  const sources = await settingSources(flags, io);
  const shown = sources.filter(({ layer, applies }) => layer !== "default" || (all && applies));
  if (json) for (const source of shown) io.out(jsonLine(source));
  else if (shown.length === 0)
    io.out("Nothing is set, so the defaults apply. To see what can be set: prefork config keys\n");
  else io.out(sourcesByLayer(shown));
};

/** A file is the heading of its values; a variable or flag stands beside its value. */
const sourcesByLayer = (sources: readonly SettingSource[]): string => {
  const headingOf = ({ layer, file }: SettingSource): string =>
    file?.startsWith("/") ? `${layer}: ${visible(file)}` : layer;
  const groups = Map.groupBy(sources, headingOf);
  const texts = [...groups].map(
    ([heading, group]) =>
      `${heading}\n${group.map((source) => `  ${settingText(source)}${asideOf(source)}\n`).join("")}`,
  );
  return texts.join("\n");
};

const settingText = ({ key, value }: Pick<SettingSource, "key" | "value">): string =>
  `${visible(key)} = ${visible(JSON.stringify(value))}`;

const asideOf = ({ layer, file, applies, note }: SettingSource): string => {
  const named = layer === "environment" || layer === "flag" ? [file ?? ""] : [];
  const fate = note !== undefined ? [note] : applies ? [] : ["another layer's value applies: prefork config get"];
  const words = [...named, ...fate].map(visible).join("; ");
  return words === "" ? "" : `  (${words})`;
};

const get = async (key: string, { json, ...flags }: SettingFlags & JsonFlags, io: Io): Promise<void> => {
  pathOf(key);
  const all = await settingSources(flags, io);
  const found = all.filter((one) => one.key === key || one.key.startsWith(`${key}.`));
  if (found.length === 0) {
    io.err(`prefork: ${key} is not set\n`);
    return io.exitWith(1);
  }
  if (json) for (const source of found) io.out(jsonLine(source));
  else for (const [name, sources] of Map.groupBy(found, (one) => one.key)) io.out(keyText(name, sources));
};

/** The value that applies, and below it every layer that has one, the strongest first. */
const keyText = (key: string, sources: readonly SettingSource[]): string => {
  const values = sources.filter(({ applies }) => applies).map(({ value }) => value);
  const lists = values.filter((value) => Array.isArray(value));
  const value = lists.length > 1 ? lists.flat() : values[0];
  const first = value === undefined ? `${visible(key)} is not set` : settingText({ key, value });
  const rows = sources.toReversed().map((source) => {
    const { layer, file = "", line, applies, note } = source;
    const where = `${file}${line === undefined ? "" : `:${line}`}`;
    const fate = note ?? (applies ? "applies" : "does not apply");
    const cells = [layer.padEnd(11), JSON.stringify(source.value), ...(where === "" ? [] : [where]), `(${fate})`];
    return `  ${cells.map(visible).join("  ")}\n`;
  });
  return `${first}\n${rows.join("")}`;
};

const keysText = (): string =>
  knownKeys()
    .map(({ key, description, default: fallback }) => {
      const sentence = /[.?]$/.test(description) ? description : `${description}.`;
      return `${key}\n  ${fallback === undefined ? description : `${sentence} Default: ${JSON.stringify(fallback)}`}\n`;
    })
    .join("");

// --- changing ----------------------------------------------------------------------------------------------------------

/** `true`, `5` and `["a"]` are JSON; everything else is text. */
const parseValue = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
};

type ChangeContext = { readonly flags: ScopeFlags; readonly io: Io };

const change = async (key: string, value: unknown, { flags, io }: ChangeContext): Promise<void> => {
  const path = pathOf(key);
  const file = fileOf(flags.scope, io);
  const settings = parseEditable(flags.scope, await readSettingsText(flags.scope, io), io);
  if (value === undefined && settings.valueAt(path) === undefined) throw new UsageError(`${key} is not set in ${file}`);
  const text = settings.withValue(path, value);
  const read = readAs(flags.scope, text, { io, name: file });
  if (read.kind === "broken") throw new UsageError(`not changed: ${problemsOf(read)}`);
  await writeSettingsText(flags.scope, text, { io });
  io.out(
    value === undefined ? `Removed ${key} from ${file}.\n` : `Set ${key} = ${JSON.stringify(value)} in ${file}.\n`,
  );
  for (const notice of read.settings.notices)
    if (notice.startsWith(`${file}: ${key}: `)) io.err(`prefork: ${visible(notice)}\n`);
  if (flags.scope !== "user") io.out("It applies once you trust the folder in its present form: prefork trust\n");
};
