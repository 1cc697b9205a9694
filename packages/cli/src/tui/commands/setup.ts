/** /config, /theme, /doctor: settings, colours, and whether everything works here.
 *  Invariant: settings are changed by `prefork config`, which refuses what would make a file invalid.
 *  Elsewhere: what can be set (@prefork/guard), themes (../views: theme.ts). */

import { settingsJsonSchema } from "@prefork/guard";
import type { TerminalContext } from "../context.ts";
import { type ListItem, safeLine, safeText } from "../state/index.ts";
import type { ThemeName } from "../views/index.ts";
import {
  type ArgumentChoice,
  changeByCli,
  notice,
  openList,
  openPage,
  type SlashCommand,
  typeNext,
} from "./command.ts";

// --- /config -------------------------------------------------------------------------------------------------------------

type Schema = {
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
};

type KnownSetting = { readonly key: string; readonly about: string; readonly values: readonly string[] };

const settingsIn = (schema: Schema, path: readonly string[] = []): readonly KnownSetting[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    if (name === "$schema") return [];
    const key = [...path, name];
    if (inner.properties) return settingsIn(inner, key);
    const values = (inner.enum ?? []).filter((value) => typeof value === "string");
    return [{ key: key.join("."), about: inner.description ?? "", values }];
  });

const knownSettings = (): readonly KnownSetting[] => settingsIn(JSON.parse(settingsJsonSchema()) as Schema);

type SettingRow = {
  readonly key: string;
  readonly value: unknown;
  readonly layer: string;
  readonly applies: boolean;
  readonly file?: string;
  readonly note?: string;
};

const readRows = async (context: TerminalContext): Promise<readonly SettingRow[]> => {
  const { text, code } = await context.runCli(["config", "list", "--all", "--json"]);
  const rows = text.split("\n").flatMap((line): readonly SettingRow[] => {
    try {
      return [JSON.parse(line) as SettingRow];
    } catch {
      return [];
    }
  });
  if (code !== 0 && rows.length === 0) throw new Error(safeText(text).replace(/^prefork: /, ""));
  return rows;
};

const settingItem = ({ key, about }: KnownSetting, rows: readonly SettingRow[]): ListItem => {
  const own = rows.filter((row) => row.key === key || row.key.startsWith(`${key}.`));
  const shown = own.filter(({ applies }) => applies);
  const value = shown.map((row) => `${row.key === key ? "" : `${row.key.slice(key.length + 1)} `}${valueText(row)}`);
  const [first] = shown;
  const where = own.map(
    (row) =>
      `${row.applies ? "✓" : "✗"} ${valueText(row)} (${row.layer}${row.file === undefined ? "" : `: ${safeLine(row.file)}`})${row.note === undefined ? "" : `: ${safeLine(row.note)}`}`,
  );
  return {
    id: key,
    label: `${key}${value.length === 0 ? "" : ` = ${value.join(", ")}`}`,
    detail: first ? first.layer : "not set",
    preview: [safeLine(about, 1_000), ...where].join("\n"),
  };
};

const valueText = ({ value }: SettingRow): string => safeLine(JSON.stringify(value) ?? "", 120);

const config: SlashCommand = {
  name: "config",
  args: "[key value | unset key | edit]",
  summary: "all settings and where they come from; Enter changes one",
  group: "Set up",
  complete: (_context, typed) => completeSetting(typed),
  run: async (args, context) => {
    const [first = "", ...rest] = args.trim().split(/\s+/);
    if (first === "edit") {
      const { text, code } = await context.lend(() => context.runCli(["config", "edit"]));
      return notice(context, safeText(text).trim() || "Settings closed.", code === 0 ? "info" : "warn");
    }
    if (first === "unset" && rest[0] !== undefined) return changeByCli(context, ["config", "unset", rest[0]]);
    const value = args.trim().slice(first.length).trim();
    if (first !== "" && value !== "") {
      await changeByCli(context, ["config", "set", first, value]);
      return notice(
        context,
        "What the agent follows changes with the next session; the terminal's own with the next start.",
      );
    }
    const rows = await readRows(context);
    openList(context, {
      title: "Settings",
      command: "config",
      hint: "changes it",
      items: knownSettings().map((setting) => settingItem(setting, rows)),
      filter: safeLine(first),
    });
  },
  chosen: (id, context) => typeNext(context, `/config ${id} `),
};

const completeSetting = (typed: string): readonly ArgumentChoice[] => {
  const settings = knownSettings();
  const [key = "", value] = typed.split(/\s+/);
  if (value === undefined)
    return [
      ...settings.map((setting) => ({ value: setting.key, about: setting.about })),
      { value: "edit", about: "open your settings file in your editor" },
      { value: "unset", about: "then a key: its default applies again" },
    ];
  const known = settings.find((setting) => setting.key === key);
  return (known?.values ?? []).map((one) => ({ value: `${key} ${one}` }));
};

// --- /theme --------------------------------------------------------------------------------------------------------------

const THEMES: Readonly<Record<ThemeName | "auto", string>> = {
  auto: "fits your terminal's background",
  dark: "for a dark background",
  light: "for a light background",
  system: "the sixteen colours of your terminal",
  "colour-blind": "blue and orange instead of green and red",
  none: "no colours",
};

const themeNames = Object.keys(THEMES) as readonly (ThemeName | "auto")[];

const useTheme = async (name: string, context: TerminalContext): Promise<void> => {
  const theme = themeNames.find((one) => one === name);
  if (!theme) throw new Error(`There is no theme ${safeLine(name, 40)}. Themes: ${themeNames.join(", ")}.`);
  context.setTheme(theme);
  await changeByCli(context, ["config", "set", "terminal.theme", theme]);
};

const theme: SlashCommand = {
  name: "theme",
  args: "[name]",
  summary: "colours: auto, dark, light, system, colour-blind or none",
  group: "Screen",
  complete: () => themeNames.map((name) => ({ value: name, about: THEMES[name] })),
  run: async (args, context) => {
    if (args.trim() !== "") return useTheme(args.trim(), context);
    openList(context, {
      title: "Theme",
      command: "theme",
      hint: "uses it",
      items: themeNames.map((name) => ({ id: name, label: name, detail: THEMES[name] })),
    });
  },
  chosen: (id, context) => useTheme(id, context),
};

// --- /doctor -------------------------------------------------------------------------------------------------------------

const doctor: SlashCommand = {
  name: "doctor",
  summary: "check protection, settings, key and model here",
  group: "Set up",
  run: async (_args, context) => {
    const { text } = await context.work("Checking…", () => context.runCli(["doctor"]));
    openPage(context, { title: "Doctor", text: safeText(text) });
  },
};

export const setupCommands: readonly SlashCommand[] = [config, theme, doctor];
