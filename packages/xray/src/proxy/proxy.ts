/** How does a program start, query and stop the proxy?
 *  Invariant: it listens on loopback only; nothing is stored unless a folder is given; closing ends every connection,
 *  and the last report includes them.
 *  Elsewhere: HTTP (server.ts), the report (report.ts), the command that runs it (the command line). */

import type { AddressInfo } from "node:net";
import { InputError, knownModels, noUsage } from "@prefork/wire";
import type { XrayOptions } from "../compare/index.ts";
import type { ThreadReport } from "./messages.ts";
import { LOOPBACK_HOSTS, type LoopbackHost } from "./reach.ts";
import { createRecord, privateFolder } from "./record.ts";
import type { ProxyEvent, ProxyReport, ProxySpend } from "./report.ts";
import { upstreamOf } from "./route.ts";
import { ProxyServer } from "./server.ts";
import { startThread } from "./server-thread.ts";

export type ProxyOptions = XrayOptions & {
  /** Where everything goes. Default: to Anthropic, OpenAI or Google, by path and headers. */
  readonly upstream?: string;
  readonly port?: number; // default: 0, any free one
  readonly host?: LoopbackHost; // default: 127.0.0.1
  /** A private folder in which requests and answers are stored. Default: nothing is stored. */
  readonly record?: string;
  /** Longer bodies are forwarded without being analysed. */
  readonly bodyLimit?: number; // default: 32 MiB
  /** How many earlier requests are remembered. */
  readonly remembers?: number; // default: 200 per provider and account
  readonly bodyBytes?: number; // default: 32 MiB
  readonly onEvent?: (event: ProxyEvent) => void;
  readonly now?: () => number; // default: the system's clock
};

export interface RunningProxy extends AsyncDisposable {
  /** Base URL without a path, for a client's API address. */
  readonly url: string;
  /** The file that requests are recorded in. */
  readonly recordedTo: string | undefined;
  report(): Promise<ProxyReport>;
  /** Ends every connection and returns the last report. Later calls return the same. */
  close(): Promise<ProxyReport>;
}

const BODY_LIMIT = 32 * 1024 * 1024;
const BODY_BYTES = 32 * 1024 * 1024;

export const startProxy = async (options: ProxyOptions = {}): Promise<RunningProxy> => {
  const { record, onEvent, now = Date.now, bodyLimit = BODY_LIMIT, host = "127.0.0.1" } = options;
  const upstream = options.upstream === undefined ? undefined : upstreamOf(options.upstream);
  if (!LOOPBACK_HOSTS.includes(host)) throw new InputError(`host ${host}: the proxy listens on loopback only`);
  const startedAt = now();
  if (record !== undefined) privateFolder(record, process.getuid?.());
  const recordTo = record === undefined ? undefined : createRecord(record, startedAt);
  const thread = startThread(
    {
      models: [...(options.models ?? knownModels)],
      bodyLimit,
      recordTo,
      bodyBytes: options.bodyBytes ?? BODY_BYTES,
      ...(options.model === undefined ? {} : { model: options.model }),
      ...(options.reading === undefined ? {} : { reading: options.reading }),
      ...(options.remembers === undefined ? {} : { remembers: options.remembers }),
    },
    onEvent,
  );
  const whole = ({ heapUsed, ...found }: ThreadReport = EMPTY_REPORT): ProxyReport => ({
    startedAt,
    at: now(),
    passed: server.passed,
    ...found,
    analysis: thread.state(),
    heap: { server: process.memoryUsage().heapUsed, analysis: heapUsed },
  });
  const server = new ProxyServer({
    upstream,
    thread,
    now,
    bodyLimit,
    isRecording: recordTo !== undefined,
    report: async () => whole(await thread.report("report")),
  });
  try {
    const url = await listen(server, host, options.port ?? 0);
    const { port } = server.http.address() as AddressInfo;
    if (upstream && !upstream.isSecure && upstream.port === port && isLoopback(upstream.hostname))
      throw new InputError(`upstream ${options.upstream}: that is the proxy itself`);
    let last: Promise<ProxyReport> | undefined;
    const close = (): Promise<ProxyReport> => {
      last ??= (async () => {
        await server.close();
        const report = whole(await thread.report("finish"));
        await thread.close();
        return report;
      })();
      return last;
    };
    return {
      url,
      recordedTo: recordTo,
      report: async () => last ?? whole(await thread.report("report")),
      close,
      [Symbol.asyncDispose]: async () => void (await close()),
    };
  } catch (error) {
    await server.close();
    await thread.close();
    throw error;
  }
};

const isLoopback = (hostname: string): boolean => /^(?:localhost|127(?:\.\d+){3}|::1)$/i.test(hostname);

const noSpend: ProxySpend = {
  requests: 0,
  usage: noUsage,
  readShare: null,
  rewriteFactor: null,
  units: 0,
  unpriced: 0,
  lost: { tokens: 0, units: 0 },
};

const EMPTY_REPORT: ThreadReport = {
  heapUsed: 0,
  answered: 0,
  open: 0,
  failed: [],
  aborted: 0,
  cut: 0,
  unanswered: 0,
  unstated: 0,
  all: noSpend,
  brokenOff: noSpend,
  lineages: [],
  older: { ...noSpend, lineages: 0 },
  families: [],
  causes: [],
  misses: [],
  notLookedAt: [],
  errors: [],
};

const listen = (server: ProxyServer, host: string, port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException): void =>
      reject(
        new InputError(
          cause.code === "EADDRINUSE"
            ? `port ${port} is already in use on ${host}`
            : `cannot listen on ${host}:${port}: ${cause.message}`,
          { cause },
        ),
      );
    server.http.once("error", fail);
    try {
      server.http.listen({ port, host, backlog: 4_096 }, () => {
        server.http.off("error", fail);
        const bound = (server.http.address() as AddressInfo).port;
        resolve(`http://${host === "::1" ? "[::1]" : host}:${bound}`);
      });
    } catch (cause) {
      fail(cause as NodeJS.ErrnoException);
    }
  });
