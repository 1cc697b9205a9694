/** Grep: lines of files that fit a pattern, or the files that have such lines.
 *  Invariant: files that a rule denies are left out, and so is what git ignores; what is not shown is counted.
 *  Elsewhere: searching (ripgrep.ts, search-text.ts), where (search-place.ts). */

import * as z from "zod";
import { shortened } from "./file-content.ts";
import { ripgrepOf, WITHOUT_RIPGREP } from "./list-files.ts";
import { searchWithRipgrep } from "./ripgrep.ts";
import { placeOf, shownPath, wantedBy } from "./search-place.ts";
import { type Found, type Search, type SearchMode, searchWithout } from "./search-text.ts";
import { defineTool, failed, type ToolContext } from "./tool.ts";

const DEFAULT_LIMIT = 200;
const MOST_CHARACTERS = 30_000;
const MOST_LINE_LENGTH = 500;
const MOST_COUNTED = 1_000_000;
const MOST_AROUND = 100;

const around = z.int().min(0).max(MOST_AROUND).optional();

const input = z.strictObject({
  pattern: z.string().min(1).describe("Regular expression in ripgrep's syntax"),
  path: z.string().optional().describe("File or folder; default: the working directory"),
  glob: z.string().min(1).optional().describe("Only files that fit, such as *.{ts,tsx}"),
  type: z.string().min(1).optional().describe("Only files of this type: ts, py, rust, …"),
  output_mode: z.enum(["content", "files_with_matches", "count"]).optional().describe("Default: files_with_matches"),
  "-i": z.boolean().optional().describe("Ignore case"),
  "-n": z.boolean().optional().describe("Line numbers in content; default true"),
  "-A": around.describe("Lines after each match"),
  "-B": around.describe("Lines before"),
  "-C": around.describe("Lines before and after"),
  head_limit: z.int().min(1).optional().describe(`Most lines or files to show; default ${DEFAULT_LIMIT}`),
  multiline: z.boolean().optional().describe("Let a match go over several lines, . included"),
});

type Asked = z.output<typeof input>;

export const grepTool = defineTool({
  name: "Grep",
  description:
    "Searches file contents with ripgrep, leaving out what git ignores. Names come relative to the working directory.",
  input,
  readOnly: true,
  touches: ({ path = "." }) => ({ reads: [path] }),
  run: async (asked, context) => {
    const place = await placeOf(asked.path, context);
    if (!place.ok) return failed(`${place.reason}.`);
    const results = new Results(asked, context, place.path);
    const search: Search = {
      pattern: asked.pattern,
      place,
      options: optionsOf(asked),
      isWanted: wantedBy(asked.glob, place),
      found: (found) => results.add(found),
    };
    const ripgrep = ripgrepOf(context);
    const searched =
      ripgrep === undefined ? await searchWithout(search, context) : await searchWithRipgrep(ripgrep, search, context);
    if (!searched.ok) return failed(`Not searched: ${searched.reason}`, "bad-input");
    const notes = [
      ...(searched.isCut ? ["[the search was ended before it was through; narrow it]"] : []),
      ...(ripgrep === undefined ? [context.files.sayOnce(WITHOUT_RIPGREP)] : []),
    ].filter((note) => note !== "");
    return { content: [results.text(), ...notes].join("\n") };
  },
});

const modeOf = ({ output_mode = "files_with_matches" }: Asked): SearchMode => output_mode;

const optionsOf = (asked: Asked): Search["options"] => {
  const { glob, type, "-i": ignoreCase = false, multiline = false, "-C": both = 0 } = asked;
  return {
    mode: modeOf(asked),
    ignoreCase,
    multiline,
    before: asked["-B"] ?? both,
    after: asked["-A"] ?? both,
    ...(glob === undefined ? {} : { glob }),
    ...(type === undefined ? {} : { type }),
  };
};

/** What is shown, and how much is not. */
class Results {
  readonly #asked: Asked;
  readonly #context: ToolContext;
  readonly #mayRead: (path: string) => boolean;
  readonly #shown: string[] = [];
  #room = MOST_CHARACTERS;
  #left: number;
  #notShown = 0;
  #last: Found | undefined;

  /** `from`: the place that is searched. */
  constructor(asked: Asked, context: ToolContext, from: string) {
    this.#asked = asked;
    this.#mayRead = context.files.mayRead(from);
    this.#context = context;
    this.#left = asked.head_limit ?? DEFAULT_LIMIT;
  }

  add(found: Found): boolean {
    if (!this.#mayRead(found.path)) return true;
    const lines = this.#linesOf(found);
    const size = lines.reduce((sum, line) => sum + line.length + 1, 0);
    if (this.#left === 0 || size > this.#room) {
      this.#left = 0; // what comes later is not shown before what comes first
      if (found.line?.fits ?? true) this.#notShown++;
      return this.#notShown < MOST_COUNTED;
    }
    this.#left--;
    this.#room -= size;
    this.#last = found;
    this.#shown.push(...lines);
    return true;
  }

  text(): string {
    if (this.#shown.length === 0 && this.#notShown === 0) return "Nothing found (what git ignores was not searched).";
    if (this.#notShown === 0) return this.#shown.join("\n");
    const what = modeOf(this.#asked) === "content" ? "matching lines" : "files";
    return [...this.#shown, `[${this.#notShown} more ${what}; narrow the search or raise head_limit]`].join("\n");
  }

  /** Lines of one file stand under its name; a gap between them is shown where lines around were asked for. */
  #linesOf({ path, line, count }: Found): readonly string[] {
    const name = shownPath(path, this.#context.cwd);
    if (count !== undefined) return [`${name}: ${count}`];
    if (line === undefined) return [name];
    const { "-n": numbers = true, "-A": after, "-B": before, "-C": both } = this.#asked;
    const text = line.isCut
      ? `${line.text.slice(0, MOST_LINE_LENGTH).toWellFormed()}… [a long line]`
      : shortened(line.text, MOST_LINE_LENGTH);
    const shown = numbers ? `${line.number}${line.fits ? ":" : "-"}${text}` : text;
    const last = this.#last;
    if (last?.path !== path) return [...(last === undefined ? [] : [""]), name, shown];
    const isGap = [after, before, both].some((lines = 0) => lines > 0) && line.number !== (last.line?.number ?? 0) + 1;
    return isGap ? ["--", shown] : [shown];
  }
}
