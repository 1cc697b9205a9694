/** Where may this request write entries, and from where does it look for them?
 *  Invariant: breakpoints are in prompt order; longer lifetimes come before shorter ones.
 *  Elsewhere: which blocks may carry a marker at all (../wires/messages), what is found and written (entries.ts). */

import type { JsonObject, Ttl } from "../../request.ts";
import { dotted, isObject, listOf, objectOf, readMessages, readResultContent, readSystem } from "../body.ts";
import type { Rendered, RenderedBlock } from "../prompt/index.ts";
import type { CacheRules } from "../rules/index.ts";

export type Breakpoint = {
  /** Index into the rendered blocks. */
  readonly index: number;
  readonly ttl: Ttl;
  readonly end: number;
};

export type Breakpoints =
  | { readonly ok: true; readonly breakpoints: readonly Breakpoint[] }
  | { readonly ok: false; readonly message: string };

/** Can the automatic marker stand on this block? */
const cacheable = (block: RenderedBlock): boolean =>
  block.kind !== "settings" &&
  block.kind !== "thinking" &&
  block.kind !== "redacted_thinking" &&
  !(block.kind === "text" && block.tokens === 0);

const isServerResult = (block: RenderedBlock): boolean =>
  block.kind !== "tool_result" && block.kind.endsWith("_tool_result");

export const breakpointsOf = (rendered: Rendered, body: JsonObject, rules: CacheRules): Breakpoints => {
  const explicit = rendered.blocks.flatMap((block, index) =>
    block.marker === undefined ? [] : [{ index, ttl: block.marker, end: block.end }],
  );
  const automatic = automaticBreakpoint(rendered, body, rules);
  const taken = automatic === undefined ? undefined : explicit.find(({ index }) => index === automatic.index);
  if (automatic !== undefined && taken !== undefined && taken.ttl !== automatic.ttl)
    return refused(
      `cache_control: the last cacheable block already carries a marker with ttl ${taken.ttl}, which differs from ${automatic.ttl}`,
    );
  const added = automatic === undefined || taken !== undefined ? [] : [automatic];
  const found = markersIn(body) + added.length;
  if (found > rules.maxMarkers)
    return refused(`A maximum of ${rules.maxMarkers} blocks with cache_control may be provided. Found ${found}.`);
  const marked = [...explicit, ...added].sort((a, b) => a.index - b.index);
  const misplaced = marked.find(
    ({ ttl }, at) => at > 0 && lifetime(ttl, rules) > lifetime(marked[at - 1]?.ttl ?? ttl, rules),
  );
  if (misplaced !== undefined)
    return refused(
      `${placeOf(rendered, misplaced)}.cache_control.ttl: a ttl='${misplaced.ttl}' cache_control block must not come after a ttl='5m' cache_control block. Blocks are processed in the order tools, system, messages.`,
    );
  return { ok: true, breakpoints: [...marked, ...serverResultBreakpoint(rendered, marked, rules)] };
};

/** Every marker the client wrote, also those that take effect at one and the same block. */
const markersIn = (body: JsonObject): number => {
  const blocks = [...readSystem(body), ...readMessages(body).flatMap((message) => message.blocks)].map(
    ({ block }) => block,
  );
  const inner = blocks
    .filter((block) => block.type === "tool_result")
    .flatMap((block) => readResultContent(block).map((part) => part.block));
  const carriers = [...listOf(body.tools).map(objectOf), ...blocks, ...inner];
  return carriers.filter((carrier) => isObject(carrier.cache_control)).length;
};

const refused = (message: string): Breakpoints => ({ ok: false, message });

const placeOf = (rendered: Rendered, { index }: Breakpoint): string => dotted(rendered.blocks[index]?.path ?? "");

const lifetime = (ttl: Ttl, rules: CacheRules): number => rules.ttls[ttl] ?? 0;

const automaticBreakpoint = (rendered: Rendered, body: JsonObject, rules: CacheRules): Breakpoint | undefined => {
  const control = body.cache_control;
  if (!isObject(control)) return undefined;
  const index = rendered.blocks.findLastIndex(cacheable);
  const block = rendered.blocks[index];
  if (block === undefined) return undefined;
  return { index, ttl: (control.ttl as Ttl | undefined) ?? rules.defaultTtl, end: block.end };
};

/** The provider marks server-tool results by itself, but only behind the client's own markers. */
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
