/** The messages between the server and the analysis.
 *  Invariant: plain data that crosses to another thread; bytes are handed over, never shared; nothing proves who sent a
 *  request, except while recording, in order to be redacted.
 *  Elsewhere: who sends them (tap.ts), who receives them (analysis.ts), the threads (server-thread.ts, thread.ts). */

import type { XrayProtocol } from "../compare/index.ts";
import type { Outcome, ProxyEvent, ProxyReport } from "./report.ts";

/** Why a body is forwarded without being analysed. */
export type SkipReason = "too long" | "the analysis was behind" | "not sent completely";

/** A complete request was sent. */
export type RequestMessage = {
  readonly type: "asked";
  readonly id: number;
  readonly wire: XrayProtocol;
  readonly path: string;
  readonly upstream: string;
  /** A number for each account. */
  readonly account: number;
  readonly client: string;
  readonly betas: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly encoding: string;
  readonly startedAt: number;
  readonly body: Uint8Array | SkipReason;
  readonly secrets: readonly string[];
};

/** Its answer has begun, with these bytes. */
export type AnswerMessage = {
  readonly type: "answered";
  readonly id: number;
  readonly status: number;
  readonly contentType: string;
  readonly encoding: string;
  readonly firstByteAt: number;
  readonly bytes?: Uint8Array;
};

export type EndMessage = {
  readonly type: "ended";
  readonly id: number;
  readonly outcome: Outcome;
  readonly endedAt: number;
  readonly bytes?: Uint8Array;
};

export type TapMessage =
  | RequestMessage
  | AnswerMessage
  | { readonly type: "bytes"; readonly id: number; readonly bytes: Uint8Array }
  | EndMessage;

/** `finish` waits for what is still being read. */
export type ToAnalysis =
  | TapMessage
  | { readonly type: "report"; readonly id: number }
  | { readonly type: "finish"; readonly id: number };

export type FromAnalysis =
  | { readonly type: "released"; readonly bytes: number }
  | { readonly type: "event"; readonly event: ProxyEvent }
  | { readonly type: "report"; readonly id: number; readonly report: ThreadReport };

export type ThreadReport = AnalysisReport & { readonly heapUsed: number };

/** The part of a report that the analysis knows. */
export type AnalysisReport = Omit<ProxyReport, "startedAt" | "at" | "passed" | "analysis" | "heap">;
