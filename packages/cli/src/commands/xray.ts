/** `prefork xray`: why did this request not read what that one wrote?
 *  Invariant: nothing is sent and nothing is written; text and JSON state the same figures; the exit code says whether
 *  anything was lost.
 *  Elsewhere: finding it (@prefork/wire), its layout (xray-report.ts, xray-place.ts). */

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
import { inLine } from "./xray-place.ts";
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
  EACCES: "may not be read",
  ERR_FS_FILE_TOO_LARGE: "is too large to be read",
};

const bytesOf = async (path: string): Promise<Buffer> => {
  try {
    return await readFile(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "cannot be read";
    throw new UsageError(`${path}: ${READ_FAILURES[code] ?? code}`, { cause: error });
  }
};

/** Errors of the library speak of the first and the second request; here these have names. */
const nameIn = (message: string, names: readonly string[]): string =>
  message
    .replaceAll(/the (first|second) request/g, (_, which) => names[which === "first" ? 0 : 1] ?? "")
    .replaceAll(/\brequest (\d+)\b/g, (whole, number) => names[Number(number) - 1] ?? whole);

type Found = { readonly requests: readonly RecordedBody[]; readonly unreadable: readonly string[] };

/** What the files say, with what `--usage` states over it. */
const requestsIn = async (files: readonly string[], usage: string | undefined): Promise<Found> => {
  const found: RecordedBody[] = [];
  const unreadable: string[] = [];
  for (const file of files) found.push(...readRequests(await bytesOf(file), file, (line) => unreadable.push(line)));
  const stated: readonly SentFacts[] = usage === undefined ? [] : readStated(await bytesOf(usage), usage);
  if (found.length < 2 && unreadable[0] !== undefined) throw new UsageError(unreadable[0]);
  if (found.length < 2) throw new UsageError("two requests are needed: two files, or one with a request on each line");
  if (stated.length > found.length)
    throw new UsageError(`${usage} has ${stated.length} entries for ${found.length} requests`);
  return { requests: found.map((request, index) => ({ ...request, ...stated[index] })), unreadable };
};

/** Two requests; undefined where they are of one recording and cannot be compared. */
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
    .description("why a recorded request did not read what an earlier one wrote, down to the letter")
    .argument("<files...>", "recorded bodies in the order they were sent: JSON, or one JSON object a line")
    .option("--usage <file>", "what the provider counted of each request, in their order: JSON list, or one a line")
    .option("--model <id>", "whose rules and prices, where the recorded model is in no table")
    .option("--prices <file>", "JSON file with your own prices")
    .option("--singly", "count every call and result as a block of its own, as some platforms may")
    .option("--json", "as one JSON object")
    .addHelpText(
      "after",
      "\nExit codes: 0 all was read (or the loss is negligible), 1 something was lost, 2 called wrongly.",
    )
    .action(async (files: readonly string[], options: XrayCommandOptions) => {
      const { requests, unreadable } = await requestsIn(files, options.usage);
      const settings: XrayOptions = {
        models: await priceTable(options.prices),
        ...(options.model === undefined ? {} : { model: options.model }),
        ...(options.singly ? { reading: "singly" as const } : {}),
      };
      const names = requests.map(({ name }) => name);
      for (const line of unreadable) io.err(`prefork: ${inLine(line)}: left out\n`);
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
      for (const { why } of chain.skipped) io.err(`prefork: ${inLine(nameIn(why, names))}: left out\n`);
      if (chain.steps.length < 2) throw new UsageError("fewer than two requests are left to compare");
      io.out(options.json ? jsonLine({ requests: names, ...chain }) : chainAsText(chain, names, io.colour));
      io.exitWith(chain.steps.some(({ xray }) => xray && !isNegligibleLoss(xray.lost)) ? 1 : 0);
    });
