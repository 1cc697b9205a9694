/** One pair of requests, told in words, with what x-ray must say of it. */

import type { XrayCause } from "@prefork/xray";
import type { Request } from "./conversation.ts";

export type Pair = {
  /** What was done to the second request. */
  readonly name: string;
  readonly a?: Request | string; // default: the conversation's request
  readonly b: Request | string;
  readonly cause: XrayCause;
  /** The first difference; absent where one request is the beginning of the other. */
  readonly path?: string;
  readonly read: number;
  readonly lost: number;
  readonly betas?: { readonly a: readonly string[]; readonly b: readonly string[] };
  /** Time between the two; or both are sent at once. */
  readonly waitMs?: number;
  readonly together?: true;
  /** Blocks of a run are counted one by one. */
  readonly singly?: true;
};

export const nothing: XrayCause = { kind: "none" };
