/** What is the peak memory of `prefork -p` with fifty forks at once, compared with a program that only sends the same
 *  requests?
 *  Invariant: the built command runs in its own process without special flags; the system reports both peaks; runs
 *  alternate.
 *  Elsewhere: that program (raw-process.ts), the requests (conversation.ts). */

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { anthropic } from "@prefork/wire";
import { type Extent, median } from "../measure.ts";
import { makeScratch } from "../scratch.ts";
import type { Amount, Finding } from "../table.ts";
import { lengthText, textOf } from "../wire/history.ts";
import { keptRequests, numbers } from "./clients/client.ts";
import { cutFork } from "./clients/raw.ts";
import { KEY, MODEL, startPrompt } from "./conversation.ts";
import { type Provider, startProvider } from "./processes.ts";

const FORKS = 50;
/** Below the length at which the command compacts. */
const TOKENS = 100_000;
const HALF_MORE = 1.5;
const MIB = 1_024;
const ROUNDS_PER_RUN = 8;

export const measureHeadless = async ({ rounds }: Extent): Promise<readonly Finding[]> => {
  mustBeBuilt();
  await using scratch = await makeScratch();
  const folder = scratch.path;
  const raw = await keepRequests(folder);
  await using simulator = await startProvider("simulator");
  await simulator.set({ gathers: FORKS });
  const peaks: Record<"ours" | "raw", number[]> = { ours: [], raw: [] };
  let forks = Number.POSITIVE_INFINITY;
  for (let round = 0; round < Math.ceil(rounds / ROUNDS_PER_RUN); round += 1) {
    peaks.ours.push(await runPrefork(simulator, folder));
    forks = Math.min(forks, (await simulator.family()).gathered);
    peaks.raw.push(await raw(simulator));
  }
  const group = `Headless with ${FORKS} forks, parent of ${lengthText(TOKENS)} tokens: the most memory (simulator)`;
  const mib = (taken: readonly number[]): Amount => ({ value: median(taken) / MIB, unit: "MiB" });
  return [
    {
      group,
      figure: "forks open at once",
      ours: { value: forks, unit: "forks" },
      limit: { of: "ours", is: "at least", value: FORKS },
    },
    {
      group,
      figure: "prefork -p, largest resident set",
      ours: mib(peaks.ours),
      against: { name: "a program that only sends them", amount: mib(peaks.raw) },
      limit: { of: "ratio", is: "at most", value: HALF_MORE },
    },
  ];
};

const ROOT = new URL("../../", import.meta.url);
const at = (path: string): string => fileURLToPath(new URL(path, ROOT));

/** Measures the published form, built from the current sources. */
const mustBeBuilt = (): void => {
  const { status, stdout } = spawnSync(process.execPath, [at("scripts/build.mjs")], { encoding: "utf8" });
  if (status !== 0) throw new Error(`the packages do not build: ${stdout.split("\n")[0]}`);
};

/** Runs the command once and saves its requests, so that the same can be sent without it. */
const keepRequests = async (folder: string): Promise<(provider: Provider) => Promise<number>> => {
  await Promise.all([mkdir(join(folder, "workspace")), mkdir(join(folder, ".prefork"))]);
  await writeFile(join(folder, ".prefork", "settings.json"), JSON.stringify({ forks: { atOnce: FORKS } }));
  await using provider = await startProvider("canned");
  await provider.set({ keeps: folder });
  await runPrefork(provider, folder);
  const { parent, fork } = keptRequests(folder, FORKS);
  const { shared, own } = cutFork(await readFile(fork));
  const paths = { shared: join(folder, "shared"), tails: join(folder, "tails"), script: join(folder, "raw.mjs") };
  await writeFile(paths.shared, shared);
  await writeFile(paths.tails, JSON.stringify(numbers(FORKS).map((number) => own(number).toString())));
  await writeFile(paths.script, stripTypeScriptTypes(readFileSync(at("bench/fork/raw-process.ts"), "utf8")));
  const headers = JSON.stringify(anthropic.headers({ kind: "api-key", value: KEY }, []));
  return ({ url }) =>
    peakOf([paths.script, url + anthropic.path, parent, paths.shared, paths.tails, headers], { environment: {} });
};

const runPrefork = ({ url }: Provider, folder: string): Promise<number> =>
  peakOf([at("packages/cli/bin/prefork.js"), "-p", "--permission-mode", "bypass", "--cwd", join(folder, "workspace")], {
    input: `${textOf(TOKENS, 1)}\n${startPrompt(FORKS)}`,
    environment: { HOME: folder, ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY, ANTHROPIC_MODEL: MODEL },
  });

/** A small module that is loaded before the program and reports the system's figures when it exits. */
const SAYS_PEAK = `data:text/javascript,${encodeURIComponent(
  'import{writeSync}from"node:fs";process.on("exit",()=>writeSync(3,String(process.resourceUsage().maxRSS)))',
)}`;

type Program = { readonly input?: string; readonly environment: Readonly<Record<string, string>> };

/** Runs a program and returns its peak memory in KiB. */
const peakOf = async (parameters: readonly string[], { input = "", environment }: Program): Promise<number> => {
  const child = spawn(process.execPath, ["--import", SAYS_PEAK, ...parameters], {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ["pipe", "ignore", "pipe", "pipe"],
  });
  const [stdin, , stderr, peak] = child.stdio;
  if (!stdin || !isReadable(stderr) || !isReadable(peak)) throw new Error("a program was started without its pipes");
  stdin.end(input);
  const [said, errors, [code]] = await Promise.all([text(peak), text(stderr), once(child, "close")]);
  if (code !== 0) throw new Error(`${parameters[0]} ended with ${code}: ${errors.trim().split("\n").at(-1)}`);
  return Number(said);
};

const isReadable = (stream: unknown): stream is Readable => stream instanceof Readable;
