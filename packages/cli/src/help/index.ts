/** Adds the second half of its help to every command: details, examples, exit codes, files and variables. */

import type { Command } from "commander";
import { helpWidth } from "../width.ts";
import { type HelpPage, pageText } from "./page.ts";
import { CACHE_PAGES } from "./pages-cache.ts";
import { SESSION_PAGES } from "./pages-sessions.ts";
import { SETUP_PAGES } from "./pages-setup.ts";

const PAGES: Readonly<Record<string, HelpPage>> = { ...SESSION_PAGES, ...CACHE_PAGES, ...SETUP_PAGES };

/** `cache cost` is also `cost`, and `worktrees merge` is also `merge`: both names have one page. */
const pageOf = (path: readonly string[]): HelpPage | undefined => PAGES[path.join(" ")] ?? PAGES[path.at(-1) ?? ""];

/** The examples of a command, for tests. */
export const examplesOf = (path: readonly string[]): readonly string[] =>
  pageOf(path)?.examples.map(([line]) => line) ?? [];

export const addHelpPages = (command: Command, path: readonly string[]): void => {
  const page = pageOf(path);
  if (page) command.addHelpText("after", () => `\n${pageText(page, helpWidth())}`);
  for (const below of command.commands) addHelpPages(below, [...path, below.name()]);
};
