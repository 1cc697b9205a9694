/** Which requests were sent in parallel, and whose cache entry could each of them read? Pure.
 *  Invariant: of two requests of one agent, the earlier comes first. Of two agents, the one that was answered before
 *  the other's request was sent. The first requests of a family are sent together: only the leader's entry can be read,
 *  and only if the others waited for it by the economics.
 *  Elsewhere: that decision (economics of @prefork/wire), the entries (entries.ts). */

import { decideLaunch, entryLifetimeMs } from "@prefork/wire";
import { type CacheEntries, cachedTokens, factsOf } from "./entries.ts";
import { isParentsNext, type SentRequest } from "./requests.ts";

export type FamilyRole = {
  /** The chain hash of the prefix that all members share. */
  readonly family: string;
  readonly role: "leader" | "follower" | "at-once";
};

export type Families = {
  /** For the first requests of a family, including its parent's next one; undefined for all others. */
  readonly roleOf: (request: SentRequest) => FamilyRole | undefined;
  readonly canRead: (reader: SentRequest, writer: SentRequest) => boolean;
};

export const familiesOf = (requests: readonly SentRequest[], entries: CacheEntries): Families => {
  const members = Map.groupBy(
    requests.filter((request) => familyOf(request) !== undefined),
    (request) => familyOf(request) ?? "",
  );
  const roles = new Map<SentRequest, FamilyRole>();
  for (const [family, all] of members) {
    // A member that was never answered wrote nothing and passed its role on. The parent continues after its children.
    const answered = all.filter(({ answer }) => answer);
    const leader = answered.find((request) => !isParentsNext(request)) ?? answered[0];
    const waits = leader !== undefined && isLeaderFirst(all, { leader, entries });
    for (const request of all) {
      const role = waits ? (request === leader ? "leader" : "follower") : "at-once";
      roles.set(request, { family, role });
    }
  }
  return {
    roleOf: (request) => roles.get(request),
    canRead: (reader, writer) => {
      const { answer } = writer;
      if (!answer) return false;
      if (reader.session === writer.session) return answer.seq < reader.seq;
      const [ours, theirs] = [roles.get(reader), roles.get(writer)];
      if (!ours || ours.family !== theirs?.family) return answer.at <= reader.askedAt;
      return answer.at < reader.askedAt || (ours.role === "follower" && theirs.role === "leader");
    },
  };
};

/** The end of what siblings share. A parent's own next request carries the same marker. */
const familyOf = (request: SentRequest): string | undefined => {
  const { markers = [], point, forkedFrom } = request;
  if (forkedFrom === undefined && !isParentsNext(request)) return undefined;
  const shared = markers.find(({ role }) => role === "shared");
  return (shared && point.prefix?.segmentAt(shared.segment)?.hash) ?? forkedFrom;
};

type LedFamily = { readonly leader: SentRequest; readonly entries: CacheEntries };

/** A request that read more than the parent had written must have waited. If none did, the economics say whether
 *  they should have. */
const isLeaderFirst = (all: readonly SentRequest[], { leader, entries }: LedFamily): boolean => {
  const answered = all.filter(({ answer }) => answer);
  if (answered.length < 2) return false;
  const before = leader.previous;
  const written = before?.answer ? cachedTokens(before.answer.usage) : 0;
  if (answered.some(({ answer }) => (answer?.usage.read ?? 0) > written)) return true;
  const shared = sharedTokens(leader, entries);
  const promptOf = ({ answer }: SentRequest): number => (answer ? cachedTokens(answer.usage) + answer.usage.plain : 0);
  const forks = answered.filter(({ forkedFrom }) => forkedFrom !== undefined);
  const parent = answered.find(({ forkedFrom }) => forkedFrom === undefined);
  const own = forks.reduce((sum, fork) => sum + Math.max(0, promptOf(fork) - shared), 0);
  const usedAt = before?.askedAt ?? Number.NEGATIVE_INFINITY;
  const parentTtl = before?.markers?.at(-1)?.ttl ?? "5m";
  const { launch } = decideLaunch({
    prefix: written,
    tail: Math.max(0, shared - written),
    directive: own / Math.max(1, forks.length),
    forks: Math.max(1, forks.length),
    warm: leader.askedAt - usedAt < entryLifetimeMs(parentTtl, factsOf(leader)),
    parentNext: parent ? { trailing: Math.max(0, promptOf(parent) - shared) } : "none",
    parentTtl,
    facts: factsOf(leader),
  });
  return launch === "leader-first";
};

/** Tokens up to the end of what a request shares with its siblings: everything it inherits. */
export const sharedTokens = (request: SentRequest, entries: CacheEntries): number => {
  const { prefix } = request.point;
  const shared = request.markers?.find(({ role }) => role === "shared");
  const inherited = shared ?? request.markers?.find(({ role }) => role === "inherited");
  const segment = inherited && prefix?.segmentAt(inherited.segment);
  return prefix && segment ? entries.lengthAt(prefix, segment).tokens : 0;
};
