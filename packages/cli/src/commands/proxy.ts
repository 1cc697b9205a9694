/** `prefork proxy`: a proxy on loopback between any agent and its provider, until it is interrupted.
 *  Invariant: it listens on loopback only; nothing is written without --record; text and JSON state the same figures.
 *  Elsewhere: forwarding and analysis (@prefork/xray/proxy), the layout of the summary (proxy-report.ts). */

import { once } from "node:events";
import type { LoopbackHost, ProxyEvent } from "@prefork/xray/proxy";
import { type Command, InvalidArgumentError } from "commander";
import { type Io, newCommand } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { parseCount } from "../numbers.ts";
import { priceTable } from "../price-file.ts";
import { progressLine } from "../progress.ts";
import { familyText, missText, reportAsText, statusText } from "./proxy-report.ts";

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

const parseNumberUpTo =
  (most: number, what: string) =>
  (text: string): number => {
    const value = parseCount(text);
    if (value === undefined || value > most) throw new InvalidArgumentError(`Expected ${what} up to ${most}.`);
    return value;
  };

const MEGABYTE = 1024 * 1024;

export const proxyCommand = (io: Io): Command =>
  newCommand("proxy", io)
    .description("sit between any agent and its provider, pass everything through, and report cache hits and misses")
    .option("--upstream <url>", "provider to forward to (default: Anthropic, OpenAI or Gemini, by path)")
    .option("--port <n>", "port; 0 picks a free one", parseNumberUpTo(65_535, "a port"), 0)
    .option("--host <name>", "127.0.0.1, ::1 or localhost", "127.0.0.1")
    .option("--record <folder>", "record requests and answers there, readable only by you (default: record nothing)")
    .option(
      "--body-limit <megabytes>",
      "pass longer bodies through without analysis",
      parseNumberUpTo(512, "megabytes"),
      32,
    )
    .option("--model <id>", "model whose rules and prices apply to unknown models")
    .option("--prices <file>", "JSON file with your own prices")
    .option("--singly", "count every call and result as its own block, as some platforms may")
    .option("--json", "print one JSON object per line: the address, each event, and the report at the end")
    .action(async (options: ProxyCommandOptions) => {
      const models = await priceTable(options.prices);
      const { startProxy } = await import("@prefork/xray/proxy");
      const live = options.json ? asJson(io) : asText(io);
      await using proxy = await startProxy({
        port: options.port,
        host: options.host as LoopbackHost,
        bodyLimit: options.bodyLimit * MEGABYTE,
        models,
        onEvent: live.show,
        ...(options.upstream === undefined ? {} : { upstream: options.upstream }),
        ...(options.record === undefined ? {} : { record: options.record }),
        ...(options.model === undefined ? {} : { model: options.model }),
        ...(options.singly ? { reading: "singly" as const } : {}),
      });
      const { url, recordedTo } = proxy;
      if (options.json) io.out(jsonLine({ type: "listening", url, ...(recordedTo ? { recordedTo } : {}) }));
      else io.out(`ANTHROPIC_BASE_URL=${url}\nOPENAI_BASE_URL=${url}/v1\nGOOGLE_GEMINI_BASE_URL=${url}\n`);
      io.err(
        `prefork: forwarding to ${options.upstream ?? "Anthropic, OpenAI and Gemini, by path"}; stop with Ctrl-C\n`,
      );
      if (!io.signal.aborted) await once(io.signal, "abort");
      const report = await proxy.close();
      live.clear();
      io.out(options.json ? jsonLine({ type: "report", ...report }) : `\n${reportAsText(report, io.colour)}`);
    });

type ProxyOutput = { readonly show: (event: ProxyEvent) => void; readonly clear: () => void };

const asJson = (io: Io): ProxyOutput => ({ show: (event) => io.out(jsonLine(event)), clear: () => undefined });

/** Prints misses and families as they happen; on a terminal, a status line follows below. */
const asText = (io: Io): ProxyOutput => {
  const progress = progressLine(io);
  const say = (text: string): void => {
    progress.clear();
    io.err(text);
  };
  return {
    show: (event) => {
      if (event.type === "request_missed") say(missText(event));
      else if (event.type === "request_ended") progress.show(statusText(event.all, event.lineages));
      else if (event.members.length === 2) say(`family: ${familyText(event)}\n`);
    },
    clear: progress.clear,
  };
};
