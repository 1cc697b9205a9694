/** Grep: finds lines that match a pattern, or the files that contain such lines.
 *  Invariant: files that a rule denies or git ignores are skipped. What is not shown is counted.
 *  Elsewhere: searching (ripgrep.ts, search-text.ts), where to search (search-root.ts). */

import * as z from "zod";
import { truncateLine } from "./file-content.ts";
import { NO_RIPGREP_NOTE, ripgrepFor } from "./list-files.ts";
import { searchWithRipgrep } from "./ripgrep.ts";
import { findSearchRoot, globFilter, shownPath } from "./search-root.ts";
import { type GrepMatch, type Search, type SearchMode, searchWithoutRipgrep } from "./search-text.ts";
import { READING_CALLS } from "./slots.ts";
import { defineTool, failed, type ToolContext } from "./tool.ts";

const DEFAULT_LIMIT = 200;
const MAX_CHARACTERS = 30_000;
const MAX_LINE_LENGTH = 500;
const MAX_COUNTED = 1_000_000;
const MAX_CONTEXT_LINES = 100;

const contextLines = z.int().min(0).max(MAX_CONTEXT_LINES).optional();

const input = z.strictObject({
  pattern: z.string().min(1).describe("Regular expression in ripgrep's syntax"),
  path: z.string().optional().describe("File or folder; default: the working directory"),
  glob: z.string().min(1).optional().describe("Only files that fit, such as *.{ts,tsx}"),
  type: z.string().min(1).optional().describe("Only files of this type: ts, py, rust, …"),
  output_mode: z.enum(["content", "files_with_matches", "count"]).optional().describe("Default: files_with_matches"),
  "-i": z.boolean().optional().describe("Ignore case"),
  "-n": z.boolean().optional().describe("Line numbers in content; default true"),
  "-A": contextLines.describe("Lines after each match"),
  "-B": contextLines.describe("Lines before"),
  "-C": contextLines.describe("Lines before and after"),
  head_limit: z.int().min(1).optional().describe(`Most lines or files to show; default ${DEFAULT_LIMIT}`),
  multiline: z.boolean().optional().describe("Let a match go over several lines, . included"),
});

type GrepInput = z.output<typeof input>;

export const grepTool = defineTool({
  name: "Grep",
  description:
    "Searches file contents with ripgrep, leaving out what git ignores. Names come relative to the working directory.",
  input,
  readOnly: true,
  touches: ({ path = "." }) => ({ reads: [path] }),
  run: async (request, context) => {
    using _ = await READING_CALLS.enter(context.signal);
    const root = await findSearchRoot(request.path, context);
    if (!root.ok) return failed(`${root.reason}.`);
    const isWanted = globFilter(request.glob, root);
    if (typeof isWanted === "string") return failed(`Not searched: ${isWanted}.`, "bad-input");
    const results = new Results(request, context, root.path);
    const search: Search = {
      pattern: request.pattern,
      root,
      options: optionsOf(request),
      isWanted,
      onMatch: (match) => results.add(match),
    };
    const ripgrep = ripgrepFor(context);
    const searched =
      ripgrep === undefined
        ? await searchWithoutRipgrep(search, context)
        : await searchWithRipgrep(ripgrep, search, context);
    if (!searched.ok) return failed(`Not searched: ${searched.reason}`, "bad-input");
    const notes = [
      ...(searched.isCut ? ["[the search was ended before it was through; narrow it]"] : []),
      ...(ripgrep === undefined ? [context.files.noteOnce(NO_RIPGREP_NOTE)] : []),
    ].filter((note) => note !== "");
    return { content: [results.text(), ...notes].join("\n") };
  },
});

const modeOf = ({ output_mode = "files_with_matches" }: GrepInput): SearchMode => output_mode;

const optionsOf = (request: GrepInput): Search["options"] => {
  const { glob, type, "-i": ignoreCase = false, multiline = false, "-C": both = 0 } = request;
  return {
    mode: modeOf(request),
    ignoreCase,
    multiline,
    before: request["-B"] ?? both,
    after: request["-A"] ?? both,
    ...(glob === undefined ? {} : { glob }),
    ...(type === undefined ? {} : { type }),
  };
};

/** What is shown, and how much is not. */
class Results {
  readonly #request: GrepInput;
  readonly #context: ToolContext;
  readonly #mayRead: (path: string) => boolean;
  readonly #shown: string[] = [];
  #room = MAX_CHARACTERS;
  #left: number;
  #notShown = 0;
  #last: GrepMatch | undefined;
  /** The matches of a file come together, so the guard judges each file once. */
  #judged = { path: "", mayRead: false };

  /** `from`: the file or folder that is searched. */
  constructor(request: GrepInput, context: ToolContext, from: string) {
    this.#request = request;
    this.#mayRead = context.files.mayRead(from);
    this.#context = context;
    this.#left = request.head_limit ?? DEFAULT_LIMIT;
  }

  add(match: GrepMatch): boolean {
    const { path } = match;
    if (path !== this.#judged.path) this.#judged = { path, mayRead: this.#mayRead(path) };
    if (!this.#judged.mayRead) return true;
    const lines = this.#left === 0 ? [] : this.#linesOf(match);
    const size = lines.reduce((sum, line) => sum + line.length + 1, 0);
    if (this.#left === 0 || size > this.#room) {
      this.#left = 0; // a later result is never shown if an earlier one was not
      if (match.line?.isMatch ?? true) this.#notShown++;
      return this.#notShown < MAX_COUNTED;
    }
    this.#left--;
    this.#room -= size;
    this.#last = match;
    this.#shown.push(...lines);
    return true;
  }

  text(): string {
    if (this.#shown.length === 0 && this.#notShown === 0) return "Nothing found (what git ignores was not searched).";
    if (this.#notShown === 0) return this.#shown.join("\n");
    const what = modeOf(this.#request) === "content" ? "matching lines" : "files";
    return [...this.#shown, `[${this.#notShown} more ${what}; narrow the search or raise head_limit]`].join("\n");
  }

  /** The lines of a file follow its name. A gap between them is marked if context lines were requested. */
  #linesOf({ path, line, count }: GrepMatch): readonly string[] {
    const name = shownPath(path, this.#context.cwd);
    if (count !== undefined) return [`${name}: ${count}`];
    if (line === undefined) return [name];
    const { "-n": numbers = true, "-A": after, "-B": before, "-C": both } = this.#request;
    const text = line.isCut
      ? `${line.text.slice(0, MAX_LINE_LENGTH).toWellFormed()}… [a long line]`
      : truncateLine(line.text, MAX_LINE_LENGTH);
    const shown = numbers ? `${line.number}${line.isMatch ? ":" : "-"}${text}` : text;
    const last = this.#last;
    if (last?.path !== path) return [...(last === undefined ? [] : [""]), name, shown];
    const isGap = [after, before, both].some((lines = 0) => lines > 0) && line.number !== (last.line?.number ?? 0) + 1;
    return isGap ? ["--", shown] : [shown];
  }
}
