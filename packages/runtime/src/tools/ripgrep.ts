/** How are file contents searched with ripgrep?
 *  Invariant: nothing that a model wrote can become an option: the pattern follows `-e`, the path follows `--`,
 *  everything else is attached to its option. Results are ordered by name, the same on every run.
 *  Elsewhere: searching without ripgrep (search-text.ts), showing results (grep.ts). */

import { isUtf8 } from "node:buffer";
import { findBlockingFile, type Refused } from "@prefork/guard/internal";
import { runProgram } from "./run-program.ts";
import { fileNameHint } from "./search-root.ts";
import { type GrepMatch, MAX_FILE_BYTES, MAX_LINE_BYTES, type Search } from "./search-text.ts";
import type { ToolContext } from "./tool.ts";

const BASE_OPTIONS = [
  ...["--no-config", "--color=never", "--no-heading", "--with-filename", "--null", "--line-number", "--hidden"],
  ...["--no-messages", "--crlf", "--sort=path", `--max-columns=${MAX_LINE_BYTES}`, "--max-columns-preview"],
  `--max-filesize=${MAX_FILE_BYTES}`, // as without ripgrep; a file that is named as path may be larger
];

const buildArguments = ({ pattern, root, options }: Search): readonly string[] => {
  const { glob, type, ignoreCase, multiline, before = 0, after = 0, mode } = options;
  return [
    ...BASE_OPTIONS,
    ...(ignoreCase ? ["--ignore-case"] : []),
    ...(multiline ? ["--multiline", "--multiline-dotall"] : []),
    ...(mode === "content" ? [`--before-context=${before}`, `--after-context=${after}`] : []),
    ...(mode === "files_with_matches" ? ["--files-with-matches"] : []),
    ...(mode === "count" ? ["--count"] : []),
    ...(type === undefined ? [] : [`--type=${type}`]),
    ...typeHints(glob, type),
    // Records end with a newline here, so a file name that contains one could pass for a record of another file.
    ...(mode === "files_with_matches" ? [] : ["--glob=!*\n*"]),
    ...["--glob=!.git", "-e", pattern, "--", root.path],
  ];
};

/** Ripgrep joins types by "or", so a hint in addition to a type would widen the search. */
const typeHints = (glob: string | undefined, type: string | undefined): readonly string[] => {
  const hint = glob === undefined || type !== undefined ? undefined : fileNameHint(glob);
  return hint === undefined ? [] : [`--type-add=wanted:${hint}`, "--type=wanted"];
};

export const searchWithRipgrep = async (
  program: string,
  search: Search,
  context: ToolContext,
): Promise<{ readonly ok: true; readonly isCut: boolean } | Refused> => {
  const waiting = findBlockingFile(search.root.folder);
  if (waiting !== undefined)
    return { ok: false, reason: `${waiting} is not a regular file, and a search would wait for it` };
  const { mode } = search.options;
  const separator = mode === "files_with_matches" ? 0 : 10;
  let rest: Buffer = Buffer.alloc(0);
  let judged = { path: "", isWanted: false };
  const take = (record: Buffer): boolean => {
    const match = parseRecord(decodeRecord(record), mode);
    if (match === undefined) return true;
    const { path } = match;
    if (path !== judged.path) judged = { path, isWanted: search.isWanted(path) };
    return !judged.isWanted || search.onMatch(match);
  };
  const { exitCode, errors, ended } = await runProgram(
    {
      argv: [program, ...buildArguments(search)],
      cwd: search.root.folder,
      output: (chunk) => {
        const all = Buffer.concat([rest, chunk]);
        let from = 0;
        for (let end = all.indexOf(separator); end !== -1; end = all.indexOf(separator, from)) {
          const continues = take(all.subarray(from, end));
          from = end + 1;
          if (!continues) return false;
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
  // 2: some files could not be read. Anything above: it was killed, and found nothing because it did not search.
  if (ended === "finished" && exitCode > 2) return { ok: false, reason: `ripgrep failed with exit code ${exitCode}` };
  return { ok: true, isCut: ended !== "finished" };
};

/** How ripgrep ends a line that it truncates. */
const TRUNCATION_NOTE = / \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]$/;

/** `path NUL number : text` for a match, `-` instead of `:` for a context line, `--` between groups; or `path NUL
 *  count`. */
const parseRecord = (record: string, mode: Search["options"]["mode"]): GrepMatch | undefined => {
  if (mode === "files_with_matches") return record === "" ? undefined : { path: record };
  const [, path, number, sign, text = ""] = /^([^\0]+)\0(\d+)(?:([:-])(.*))?$/s.exec(record.replace(/\r$/, "")) ?? []; // with --crlf ripgrep ends its own lines like this
  if (path === undefined) return undefined;
  if (mode === "count") return { path, count: Number(number) };
  const cut = TRUNCATION_NOTE.exec(text);
  const isCut = cut !== null && Buffer.byteLength(text) > MAX_LINE_BYTES;
  const line = { number: Number(number), isMatch: sign === ":", text: isCut ? text.slice(0, cut.index) : text };
  return { path, line: isCut ? { ...line, isCut } : line };
};

/** Lines in an older encoding are decoded as the other tools decode them. */
const decodeRecord = (record: Buffer): string => {
  if (isUtf8(record)) return record.toString("utf8");
  const end = record.indexOf(0) + 1;
  return record.toString("utf8", 0, end) + record.toString("latin1", end);
};

const firstLines = (errors: string): string => errors.trim().split("\n").slice(0, 6).join("\n");
