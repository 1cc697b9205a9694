/** `prefork proxy`: a gateway on loopback in front of any agent, until it is interrupted.
 *  Invariant: loopback only; nothing is written unless a folder is named for it; text and JSON state the same figures.
 *  Elsewhere: passing and looking (@prefork/xray/proxy), the layout of the summary (proxy-report.ts). */

import { once } from "node:events";
import type { LoopbackHost, ProxyEvent } from "@prefork/xray/proxy";
import { type Command, InvalidArgumentError } from "commander";
import { type Io, newCommand } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { parseCount } from "../numbers.ts";
import { priceTable } from "../price-file.ts";
import { progressLine } from "../progress.ts";
import { familyWords, missWords, reportAsText, statusWords } from "./proxy-report.ts";

type ProxyCommandOptions = {
  readonly upstream?: string;
  readonly port: number;
  readonly host: string;
  readonly record?: string;
  readonly bodyLimit: number;
  readonly model?: string;
  readonly prices?: string;
  readonly singly?: true;
  readonly json?: true;
};

const number =
  (most: number, what: string) =>
  (text: string): number => {
    const value = parseCount(text);
    if (value === undefined || value > most) throw new InvalidArgumentError(`Expected ${what} up to ${most}.`);
    return value;
  };

const MEGABYTE = 1024 * 1024;

export const proxyCommand = (io: Io): Command =>
  newCommand("proxy", io)
    .description(
      "stand between any agent and its provider: pass everything on as it is, tell what the cache made of it",
    )
    .option("--upstream <url>", "where everything goes (default: Anthropic, OpenAI or Gemini, by path)")
    .option("--port <n>", "port; 0 takes a free one", number(65_535, "a port"), 0)
    .option("--host <name>", "127.0.0.1, ::1 or localhost; nothing but loopback", "127.0.0.1")
    .option("--record <folder>", "keep requests and answers there, readable by you alone; without it nothing is kept")
    .option("--body-limit <megabytes>", "longer bodies are passed on and not looked at", number(512, "megabytes"), 32)
    .option("--model <id>", "whose rules and prices serve models that are in no table")
    .option("--prices <file>", "JSON file with your own prices")
    .option("--singly", "count every call and result as a block of its own, as some platforms may")
    .option("--json", "one JSON object a line: the address, what happens, and the report at the end")
    .addHelpText(
      "after",
      `
Set the printed address as the base URL of your agent and let it work; Ctrl-C prints the summary.
Keys pass through and are never kept. Reports hold no letter of any body.
  GET /_proxy/report   the report so far, as JSON
More: docs/proxy.md in the repository.`,
    )
    .action(async (options: ProxyCommandOptions) => {
      const models = await priceTable(options.prices);
      const { startProxy } = await import("@prefork/xray/proxy");
      const live = options.json ? asJson(io) : asText(io);
      await using proxy = await startProxy({
        port: options.port,
        host: options.host as LoopbackHost,
        bodyLimit: options.bodyLimit * MEGABYTE,
        models,
        told: live.heard,
        ...(options.upstream === undefined ? {} : { upstream: options.upstream }),
        ...(options.record === undefined ? {} : { record: options.record }),
        ...(options.model === undefined ? {} : { model: options.model }),
        ...(options.singly ? { reading: "singly" as const } : {}),
      });
      const { url, recordedTo } = proxy;
      if (options.json) io.out(jsonLine({ type: "listening", url, ...(recordedTo ? { recordedTo } : {}) }));
      else io.out(`ANTHROPIC_BASE_URL=${url}\nOPENAI_BASE_URL=${url}/v1\nGOOGLE_GEMINI_BASE_URL=${url}\n`);
      io.err(`prefork: proxy to ${options.upstream ?? "Anthropic, OpenAI and Gemini, by path"}; Ctrl-C ends it\n`);
      if (!io.signal.aborted) await once(io.signal, "abort");
      const report = await proxy.close();
      live.clear();
      io.out(options.json ? jsonLine({ type: "report", ...report }) : `\n${reportAsText(report, io.colour)}`);
    });

type Live = { readonly heard: (event: ProxyEvent) => void; readonly clear: () => void };

const asJson = (io: Io): Live => ({ heard: (event) => io.out(jsonLine(event)), clear: () => undefined });

/** Misses and families as they come, and on a terminal the state of things in a line below. */
const asText = (io: Io): Live => {
  const progress = progressLine(io);
  const say = (text: string): void => {
    progress.clear();
    io.err(text);
  };
  return {
    heard: (event) => {
      if (event.type === "request_missed") say(missWords(event));
      else if (event.type === "request_ended") progress.show(statusWords(event.all, event.lineages));
      else if (event.members.length === 2) say(`a family: ${familyWords(event)}\n`);
    },
    clear: progress.clear,
  };
};
