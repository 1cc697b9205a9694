/** The same bytes, too late or too early. */

import { a, b, HEAD, KEPT, marked, marked1h, prose, type Request } from "./conversation.ts";
import { nothing, type Pair } from "./pair.ts";

const MINUTE = 60_000;
const none = { cause: nothing, read: KEPT, lost: 0 } as const;
const longHead = (request: Request): Request => ({ ...request, system: [prose(1_000, 1), prose(500, 2, marked1h)] });

export const times: readonly Pair[] = [
  {
    name: "five minutes later",
    b,
    waitMs: 5 * MINUTE,
    cause: { kind: "expired", ttl: "5m", unusedMs: 5 * MINUTE },
    read: 0,
    lost: KEPT,
  },
  { name: "near miss: a second less than five minutes later", b, waitMs: 5 * MINUTE - 1_000, ...none },
  {
    name: "ten minutes later, with an hour for the system text",
    a: longHead(a),
    b: longHead(b),
    waitMs: 10 * MINUTE,
    cause: { kind: "expired", ttl: "5m", unusedMs: 10 * MINUTE },
    read: HEAD,
    lost: KEPT - HEAD,
  },
  {
    name: "an hour later, with an hour for the system text",
    a: longHead(a),
    b: longHead(b),
    waitMs: 60 * MINUTE,
    cause: { kind: "expired", ttl: "5m", unusedMs: 60 * MINUTE },
    read: 0,
    lost: KEPT,
  },
  {
    name: "too late, and the system text has changed besides",
    b: { ...b, system: [prose(1_000, 1), prose(510, 2, marked)] },
    waitMs: 6 * MINUTE,
    cause: { kind: "system", change: "edited" },
    path: "system[1].text",
    read: 0,
    lost: KEPT,
  },
  {
    name: "both at once",
    b,
    together: true,
    cause: { kind: "raced", afterMs: 0 },
    read: 0,
    lost: KEPT,
  },
];
