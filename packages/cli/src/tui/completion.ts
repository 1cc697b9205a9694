/** What could follow on the input line: a command, its argument, or a file after `@`.
 *  Invariant: typing never waits: a long list is searched in pieces, and a newer key ends the search; files and commands are
 *  loaded when the first one is completed; what is inserted is exactly what is shown. An `@file` is sent as it is typed, so the model reads the file with its own tools.
 *  Elsewhere: files (project-files.ts), commands (commands/), keys in the list of suggestions (pi-tui's editor). */

import { setImmediate as afterOthers } from "node:timers/promises";
import {
  type AutocompleteItem,
  type AutocompleteProvider,
  type AutocompleteSuggestions,
  fuzzyMatch,
} from "@earendil-works/pi-tui";
import type { TerminalContext } from "./context.ts";
import type { ProjectFiles } from "./project-files.ts";
import { safeLine } from "./state/index.ts";

const MAX_SUGGESTIONS = 50;
/** Between two of these, other work gets its turn. */
const PIECE = 2_000;

type CompletionContext = Pick<TerminalContext, "state" | "io">;
type Search = { readonly signal: AbortSignal };

export class Completions implements AutocompleteProvider {
  readonly #context: CompletionContext;
  #files: ProjectFiles | undefined;

  constructor(context: CompletionContext) {
    this.#context = context;
  }

  async getSuggestions(
    ...[lines, cursorLine, cursorCol, options]: Parameters<AutocompleteProvider["getSuggestions"]>
  ): Promise<AutocompleteSuggestions | null> {
    const typed = (lines[cursorLine] ?? "").slice(0, cursorCol);
    if (this.#context.state().composing.kind !== "prompt") return null;
    try {
      const mention = mentionIn(typed);
      if (mention !== undefined) return await this.#suggestFiles(mention, options);
      if (cursorLine === 0 && typed.startsWith("/")) return await this.#suggestCommands(typed, options);
    } catch {
      // a completion that fails is no completion
    }
    return null;
  }

  applyCompletion(
    ...[lines, cursorLine, cursorCol, item, prefix]: Parameters<AutocompleteProvider["applyCompletion"]>
  ): ReturnType<AutocompleteProvider["applyCompletion"]> {
    const line = lines[cursorLine] ?? "";
    const before = line.slice(0, cursorCol - prefix.length);
    const rest = line.slice(cursorCol);
    // A folder is not the end: its files may follow.
    const isOpen = item.value.endsWith("/") || item.value.endsWith('/"');
    const after = isOpen || rest.startsWith(" ") ? rest : ` ${rest}`;
    const column = before.length + item.value.length + (isOpen ? 0 : 1) - (item.value.endsWith('/"') ? 1 : 0);
    return { lines: lines.with(cursorLine, before + item.value + after), cursorLine, cursorCol: column };
  }

  /** Tab completes commands and mentions; on other text it does nothing. */
  shouldTriggerFileCompletion(lines: string[], cursorLine: number, cursorCol: number): boolean {
    const typed = (lines[cursorLine] ?? "").slice(0, cursorCol);
    return mentionIn(typed) !== undefined || (cursorLine === 0 && typed.startsWith("/"));
  }

  async #suggestCommands(typed: string, { signal }: Search): Promise<AutocompleteSuggestions | null> {
    const { slashCommands } = await import("./commands/index.ts");
    const [, name = "", args] = /^\/([\w:-]*)(?:\s+([\s\S]*))?$/.exec(typed) ?? [];
    if (args === undefined) {
      const found = await bestOf(slashCommands, { query: name, textOf: (command) => command.name, signal });
      return suggestions(
        found.map((command) => ({
          value: `/${command.name}`,
          label: `/${command.name}`,
          description: command.summary,
        })),
        typed,
      );
    }
    const command = slashCommands.find((one) => one.name === name);
    const choices = (await command?.complete?.(this.#context, args)) ?? [];
    const query = args.trimStart();
    // Nothing is left to choose, so Enter runs the command.
    if (choices.some(({ value }) => value === query.trimEnd())) return null;
    const found = await bestOf(choices, { query, textOf: ({ value, about = "" }) => `${value} ${about}`, signal });
    return suggestions(
      found.map(({ value, about }) => ({
        value: safeLine(value),
        label: safeLine(value),
        ...(about === undefined ? {} : { description: safeLine(about, 200) }),
      })),
      query,
    );
  }

  async #suggestFiles(mention: string, { signal }: Search): Promise<AutocompleteSuggestions | null> {
    const query = mention.replace(/^@"?/, "");
    const found = await bestOf(await this.#paths(), { query, textOf: (path) => path, signal });
    return suggestions(
      found.map((path) => ({ value: mentionOf(path), label: path })),
      mention,
    );
  }

  async #paths(): Promise<readonly string[]> {
    const { ProjectFiles: Files } = await import("./project-files.ts");
    this.#files ??= new Files(() => this.#context.state().cwd);
    return this.#files.paths();
  }
}

const suggestions = (items: AutocompleteItem[], prefix: string): AutocompleteSuggestions | null =>
  items.length === 0 ? null : { items, prefix };

/** The `@…` at the end of what is typed, at the start of a word; quoted if its name has spaces. */
const mentionIn = (typed: string): string | undefined => /(?:^|[\s([{])(@"[^"]*|@[^\s"]*)$/.exec(typed)?.[1];

/** As it is inserted: names with spaces are quoted. */
const mentionOf = (path: string): string => (/\s/.test(path) ? `@"${path}"` : `@${path}`);

type Query<T> = { readonly query: string; readonly textOf: (item: T) => string; readonly signal: AbortSignal };

/** The items that match, best first. Without a query: the first ones. */
const bestOf = async <T>(items: readonly T[], { query, textOf, signal }: Query<T>): Promise<readonly T[]> => {
  if (query === "") return items.slice(0, MAX_SUGGESTIONS);
  const found: { readonly item: T; readonly score: number }[] = [];
  for (let from = 0; from < items.length; from += PIECE) {
    if (from > 0) await afterOthers();
    if (signal.aborted) return [];
    for (const item of items.slice(from, from + PIECE)) {
      const score = scoreOf(textOf(item), query);
      if (score !== undefined) found.push({ item, score });
    }
  }
  return found
    .toSorted((one, other) => one.score - other.score)
    .slice(0, MAX_SUGGESTIONS)
    .map(({ item }) => item);
};

/** Lower is better. A match in the last part of a path counts more, and of two equal ones the shorter path. */
const scoreOf = (text: string, query: string): number | undefined => {
  const { matches, score } = fuzzyMatch(query, text);
  if (!matches) return undefined;
  const lower = text.toLowerCase();
  const sought = query.toLowerCase();
  const name = lower.slice(lower.lastIndexOf("/", lower.length - 2) + 1);
  const bonus = name.startsWith(sought) ? -60 : name.includes(sought) ? -40 : lower.includes(sought) ? -20 : 0;
  return score + bonus + text.length * 0.05;
};
