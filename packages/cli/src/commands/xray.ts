/** `prefork xray`: why did this request miss the cache that an earlier one wrote?
 *  Invariant: nothing is sent and nothing is written; text and JSON state the same figures; the exit code says whether
 *  anything was lost.
 *  Elsewhere: the comparison (@prefork/xray), its layout (xray-report.ts, xray-excerpt.ts). */

import { readFile } from "node:fs/promises";
import { InputError } from "@prefork/wire";
import {
  diffRequests,
  isNegligibleLoss,
  type RecordedBody,
  readRequests,
  readStated,
  type SentFacts,
  type Xray,
  type XrayOptions,
  xrayChain,
} from "@prefork/xray";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { priceTable } from "../price-file.ts";
import { escapeLine } from "./xray-excerpt.ts";
import { chainAsText, pairAsText } from "./xray-report.ts";

type XrayCommandOptions = {
  readonly usage?: string;
  readonly model?: string;
  readonly prices?: string;
  readonly singly?: true;
  readonly json?: true;
};

const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EISDIR: "is a directory",
  EACCES: "permission denied",
  ERR_FS_FILE_TOO_LARGE: "is too large",
};

const bytesOf = async (path: string): Promise<Buffer> => {
  try {
    return await readFile(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "cannot be read";
    throw new UsageError(`${path}: ${READ_FAILURES[code] ?? code}`, { cause: error });
  }
};

/** The library's errors say "the first request"; here requests have names. */
const nameIn = (message: string, names: readonly string[]): string =>
  message
    .replaceAll(/the (first|second) request/g, (_, which) => names[which === "first" ? 0 : 1] ?? "")
    .replaceAll(/\brequest (\d+)\b/g, (whole, number) => names[Number(number) - 1] ?? whole);

type RecordedRequests = { readonly requests: readonly RecordedBody[]; readonly unreadable: readonly string[] };

/** The requests in the files, with the usage from `--usage`. */
const requestsIn = async (files: readonly string[], usage: string | undefined): Promise<RecordedRequests> => {
  const requests: RecordedBody[] = [];
  const unreadable: string[] = [];
  for (const file of files) requests.push(...readRequests(await bytesOf(file), file, (line) => unreadable.push(line)));
  const stated: readonly SentFacts[] = usage === undefined ? [] : readStated(await bytesOf(usage), usage);
  if (requests.length < 2 && unreadable[0] !== undefined) throw new UsageError(unreadable[0]);
  if (requests.length < 2)
    throw new UsageError("xray needs two requests: give two files, or one file with one request per line");
  if (stated.length > requests.length)
    throw new UsageError(`${usage} has ${stated.length} entries for ${requests.length} requests`);
  return { requests: requests.map((request, index) => ({ ...request, ...stated[index] })), unreadable };
};

/** Compares two requests; undefined if they come from one recording and cannot be compared. */
const pairIn = (
  files: readonly string[],
  [a, b, ...more]: readonly RecordedBody[],
  settings: XrayOptions,
): Xray | undefined => {
  if (!a || !b || more.length > 0) return undefined;
  try {
    return diffRequests(a.body, b.body, { ...settings, a, b });
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    if (files.length === 1) return undefined;
    throw new UsageError(nameIn(error.message, [a.name, b.name]), { cause: error });
  }
};

export const xrayCommand = (io: Io): Command =>
  newCommand("xray", io)
    .description("show why a recorded request missed the cache of an earlier one, to the exact character")
    .argument("<files...>", "recorded request bodies in the order they were sent: JSON, or one JSON object per line")
    .option(
      "--usage <file>",
      "usage that the provider reported for each request, in order: a JSON list, or one per line",
    )
    .option("--model <id>", "model whose rules and prices apply if the recorded model is unknown")
    .option("--prices <file>", "JSON file with your own prices")
    .option("--singly", "count every call and result as its own block, as some platforms may")
    .option("--json", "print one JSON object")
    .action(async (files: readonly string[], options: XrayCommandOptions) => {
      const { requests, unreadable } = await requestsIn(files, options.usage);
      const settings: XrayOptions = {
        models: await priceTable(options.prices),
        ...(options.model === undefined ? {} : { model: options.model }),
        ...(options.singly ? { reading: "singly" as const } : {}),
      };
      const names = requests.map(({ name }) => name);
      for (const line of unreadable) io.err(`prefork: ${escapeLine(line)}: skipped\n`);
      const [first = "", second = ""] = names;
      const xray = pairIn(files, requests, settings);
      if (xray) {
        io.out(
          options.json ? jsonLine({ a: first, b: second, ...xray }) : pairAsText(xray, [first, second], io.colour),
        );
        io.exitWith(isNegligibleLoss(xray.lost) ? 0 : 1);
        return;
      }
      const chain = xrayChain(requests, settings);
      for (const { why } of chain.skipped) io.err(`prefork: ${escapeLine(nameIn(why, names))}: skipped\n`);
      if (chain.steps.length < 2) throw new UsageError("fewer than two requests are left to compare");
      io.out(options.json ? jsonLine({ requests: names, ...chain }) : chainAsText(chain, names, io.colour));
      io.exitWith(chain.steps.some(({ xray }) => xray && !isNegligibleLoss(xray.lost)) ? 1 : 0);
    });
