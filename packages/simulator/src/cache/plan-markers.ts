/** Where may a request with markers write entries, and from where does it look back for them?
 *  Invariant: breakpoints are in prompt order; longer lifetimes come before shorter ones.
 *  Elsewhere: which blocks may carry a marker at all (../wires), what is found and written (entries.ts). */

import type { Ttl } from "@prefork/wire";
import { dotted } from "../body.ts";
import type { Rendered, RenderedBlock } from "../prompt/index.ts";
import type { CacheRules } from "../rules/index.ts";
import type { CachePlan, CachePlanResult, CachingSettings, PlannedLookup } from "./plan.ts";

type Breakpoint = {
  /** Index into the rendered blocks. */
  readonly index: number;
  readonly ttl: Ttl;
  readonly end: number;
};

/** Can this block carry the automatic marker? */
const cacheable = (block: RenderedBlock): boolean =>
  block.kind !== "settings" &&
  block.kind !== "thinking" &&
  block.kind !== "redacted_thinking" &&
  !(block.kind === "text" && block.tokens === 0);

const isServerResult = (block: RenderedBlock): boolean =>
  block.kind !== "tool_result" && block.kind.endsWith("_tool_result");

export const planMarkers = (rendered: Rendered, requested: CachingSettings, rules: CacheRules): CachePlanResult => {
  const explicit = markersIn(rendered);
  const automatic = lastBreakpoint(rendered, requested.last);
  const taken = automatic === undefined ? undefined : explicit.find(({ index }) => index === automatic.index);
  if (automatic !== undefined && taken !== undefined && taken.ttl !== automatic.ttl)
    return refused(
      `cache_control: the last cacheable block already carries a marker with ttl ${taken.ttl}, which differs from ${automatic.ttl}`,
    );
  const added = automatic === undefined || taken !== undefined ? [] : [automatic];
  const found = requested.markers + added.length;
  if (rules.markers === "strict" && found > rules.maxMarkers)
    return refused(`A maximum of ${rules.maxMarkers} blocks with cache_control may be provided. Found ${found}.`);
  const marked = [...explicit, ...added].sort((a, b) => a.index - b.index).slice(-rules.maxMarkers);
  const misplaced = marked.find(
    ({ ttl }, at) => at > 0 && lifetime(ttl, rules) > lifetime(marked[at - 1]?.ttl ?? ttl, rules),
  );
  if (misplaced !== undefined)
    return refused(
      `${placeOf(rendered, misplaced)}.cache_control.ttl: a ttl='${misplaced.ttl}' cache_control block must not come after a ttl='5m' cache_control block. Blocks are processed in the order tools, system, messages.`,
    );
  return { ok: true, plan: planOf(rendered, [...marked, ...serverResultBreakpoint(rendered, marked, rules)], rules) };
};

const planOf = ({ blocks, tokens }: Rendered, breakpoints: readonly Breakpoint[], rules: CacheRules): CachePlan => {
  const { minimumPrefix, lookbackPositions } = rules;
  const last = breakpoints.at(-1);
  const writes = breakpoints
    .filter(({ end }) => end >= minimumPrefix && end > 0)
    .map(({ index, end, ttl }) => ({ at: index, end, ttl, lifetimeMs: lifetime(ttl, rules) }));
  return {
    places: blocks,
    looks: looksFrom(breakpoints, blocks, rules),
    writes,
    reach: tokens,
    ...(last !== undefined && writes.length === 0
      ? {
          below: {
            cause: "below minimum",
            words: `the longest marked prefix has ${last.end} tokens; this model caches from ${minimumPrefix}`,
          },
        }
      : {}),
    unseen: (at) =>
      breakpoints.some(({ index }) => index >= at)
        ? { cause: "look-back exceeded", words: `lies more than ${lookbackPositions} positions before the next marker` }
        : { cause: "no marker there", words: "has no marker at or after it in this request" },
  };
};

/** Every marked block, with the lifetime it asks for. */
export const markersIn = ({ blocks }: Rendered): readonly Breakpoint[] =>
  blocks.flatMap((block, index) => (block.marker === undefined ? [] : [{ index, ttl: block.marker, end: block.end }]));

const refused = (message: string): CachePlanResult => ({ ok: false, message });

const placeOf = (rendered: Rendered, { index }: Breakpoint): string => dotted(rendered.blocks[index]?.path ?? "");

export const lifetime = (ttl: Ttl, rules: CacheRules): number => rules.ttls[ttl] ?? 0;

const lastBreakpoint = (rendered: Rendered, ttl: Ttl | undefined): Breakpoint | undefined => {
  const index = rendered.blocks.findLastIndex(cacheable);
  const block = rendered.blocks[index];
  return ttl === undefined || block === undefined ? undefined : { index, ttl, end: block.end };
};

/** The provider marks server-tool results by itself, but only after the client's own markers. */
const serverResultBreakpoint = (
  rendered: Rendered,
  marked: readonly Breakpoint[],
  rules: CacheRules,
): readonly Breakpoint[] => {
  const last = marked.at(-1);
  if (rules.serverResultMarker === "none" || last === undefined) return [];
  const index = rendered.blocks.findLastIndex(isServerResult);
  const block = rendered.blocks[index];
  return block === undefined || index <= last.index ? [] : [{ index, ttl: rules.serverResultMarker, end: block.end }];
};

/** Starts with the last marker; each is followed by the blocks it looks back at. */
function* looksFrom(
  breakpoints: readonly Breakpoint[],
  blocks: readonly RenderedBlock[],
  rules: CacheRules,
): Generator<PlannedLookup> {
  for (const { index, ttl } of breakpoints.toReversed())
    for (const at of lookbackFrom(index, blocks, rules)) yield { at, lifetimeMs: lifetime(ttl, rules) };
}

const collapses = (kind: string): boolean => kind === "tool_use" || kind === "tool_result";

/** The blocks that a breakpoint looks at, nearest first. The breakpoint itself is the first position. */
function* lookbackFrom(start: number, blocks: readonly RenderedBlock[], rules: CacheRules): Generator<number> {
  let left = rules.lookbackPositions;
  let previous = "";
  for (let index = start; index >= 0; index -= 1) {
    const block = blocks[index];
    if (block === undefined || block.kind === "settings") continue;
    const counts = block.level === "messages" || rules.headCountsAsPositions;
    const sameRun = rules.lookback === "runs" && collapses(block.kind) && block.kind === previous;
    if (counts && !sameRun) {
      if (left === 0) return;
      left -= 1;
    }
    previous = block.kind;
    yield index;
  }
}
