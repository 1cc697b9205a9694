/** Searches the contents of files with ripgrep.
 *  Invariant: nothing that a model wrote can be an option: the pattern follows `-e`, the path follows `--`, all else is
 *  glued to its option. Results come in the order of names, which is the same on every run.
 *  Elsewhere: without ripgrep (search-text.ts), how results are shown (grep.ts). */

import { isUtf8 } from "node:buffer";
import { type Refused, waitingFile } from "@prefork/guard/internal";
import { runProgram } from "./run-program.ts";
import { namesHint } from "./search-place.ts";
import { type Found, MOST_LINE_BYTES, type Search } from "./search-text.ts";
import type { ToolContext } from "./tool.ts";

const PLAIN = [
  ...["--no-config", "--color=never", "--no-heading", "--with-filename", "--null", "--line-number", "--hidden"],
  ...["--no-messages", "--crlf", "--sort=path", `--max-columns=${MOST_LINE_BYTES}`, "--max-columns-preview"],
];

const argumentsOf = ({ pattern, place, options }: Search): readonly string[] => {
  const { glob, type, ignoreCase, multiline, before = 0, after = 0, mode } = options;
  return [
    ...PLAIN,
    ...(ignoreCase ? ["--ignore-case"] : []),
    ...(multiline ? ["--multiline", "--multiline-dotall"] : []),
    ...(mode === "content" ? [`--before-context=${before}`, `--after-context=${after}`] : []),
    ...(mode === "files_with_matches" ? ["--files-with-matches"] : []),
    ...(mode === "count" ? ["--count"] : []),
    ...(type === undefined ? [] : [`--type=${type}`]),
    ...hintsFor(glob, type),
    // Where lines end the records, one may be the end of a name with a line break in it, and nobody can judge whose it is.
    ...(mode === "files_with_matches" ? [] : ["--glob=!*\n*"]),
    ...["--glob=!.git", "-e", pattern, "--", place.path],
  ];
};

/** Types are joined by "or", so a hint beside a type would widen it. */
const hintsFor = (glob: string | undefined, type: string | undefined): readonly string[] => {
  const hint = glob === undefined || type !== undefined ? undefined : namesHint(glob);
  return hint === undefined ? [] : [`--type-add=wanted:${hint}`, "--type=wanted"];
};

export const searchWithRipgrep = async (
  program: string,
  search: Search,
  context: ToolContext,
): Promise<{ readonly ok: true; readonly isCut: boolean } | Refused> => {
  const waiting = waitingFile(search.place.folder);
  if (waiting !== undefined)
    return { ok: false, reason: `${waiting} is no plain file, and a search would wait for it` };
  const { mode } = search.options;
  const separator = mode === "files_with_matches" ? 0 : 10;
  let rest: Buffer = Buffer.alloc(0);
  const take = (record: Buffer): boolean => {
    const found = readRecord(textOf(record), mode);
    return found === undefined || !search.isWanted(found.path) || search.found(found);
  };
  const { exitCode, errors, ended } = await runProgram(
    {
      argv: [program, ...argumentsOf(search)],
      cwd: search.place.folder,
      output: (chunk) => {
        const all = Buffer.concat([rest, chunk]);
        let from = 0;
        for (let end = all.indexOf(separator); end !== -1; end = all.indexOf(separator, from)) {
          const goesOn = take(all.subarray(from, end));
          from = end + 1;
          if (!goesOn) return false;
        }
        rest = all.subarray(from);
        return true;
      },
    },
    context,
  );
  context.signal.throwIfAborted();
  if (ended === "finished" && rest.length > 0) take(rest);
  if (ended === "finished" && exitCode > 1 && errors.trim() !== "") return { ok: false, reason: firstLines(errors) };
  return { ok: true, isCut: ended !== "finished" };
};

/** How ripgrep ends a line of which it shows the beginning. */
const CUT = / \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]$/;

/** `path NUL number : text` for a line that fits, with `-` for one around it; `--` between groups; `path NUL count`. */
const readRecord = (record: string, mode: Search["options"]["mode"]): Found | undefined => {
  if (mode === "files_with_matches") return record === "" ? undefined : { path: record };
  const [, path, number, sign, text = ""] = /^([^\0]+)\0(\d+)(?:([:-])(.*))?$/s.exec(record.replace(/\r$/, "")) ?? []; // --crlf ends its own lines so
  if (path === undefined) return undefined;
  if (mode === "count") return { path, count: Number(number) };
  const cut = CUT.exec(text);
  const isCut = cut !== null && Buffer.byteLength(text) > MOST_LINE_BYTES;
  const line = { number: Number(number), fits: sign === ":", text: isCut ? text.slice(0, cut.index) : text };
  return { path, line: isCut ? { ...line, isCut } : line };
};

/** Lines of a file in an older encoding are shown as the other tools show them. */
const textOf = (record: Buffer): string => {
  if (isUtf8(record)) return record.toString("utf8");
  const end = record.indexOf(0) + 1;
  return record.toString("utf8", 0, end) + record.toString("latin1", end);
};

const firstLines = (errors: string): string => errors.trim().split("\n").slice(0, 6).join("\n");
