/** Which rules apply to a model, after all overrides?
 *  Invariant: a model without figures and without a stand-in gets the default model's rules and no prices: an
 *  unpublished price is not invented.
 *  Elsewhere: the rules of each provider (the other files of this folder). */

import { type ModelFacts, modelFacts } from "@prefork/wire";
import { ownEntry } from "../body.ts";
import { groupDefaults, type ModelRules, type ProviderRules, type RuleTable } from "./rules.ts";

/** Providers and gateways add dates, makers and stages to ids: `openai/gpt-6-sol`, `gpt-5.5-2026-04-23`, `…-preview`. */
const bareModel = (model: string): string =>
  model
    .replace(/^[a-z][\w-]*\//, "")
    .replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, "")
    .replace(/-preview(?:-[\d-]+)?$/, "");

/** A group after each change in turn. */
const mergeGroup = <G extends object>(
  initial: G | "none",
  changes: readonly (Partial<G> | "none" | undefined)[],
  defaults: G,
): G | "none" =>
  changes.reduce<G | "none">((group, change) => {
    if (change === undefined || change === "none") return change ?? group;
    return { ...(group === "none" ? defaults : group), ...change };
  }, initial);

export const resolveRules = (provider: ProviderRules, model: string, table: RuleTable = {}): ModelRules => {
  const figures = (id: string): ModelFacts | undefined => modelFacts(id, table.models);
  const standIn = table.unknownAs === undefined ? undefined : figures(table.unknownAs);
  const facts = figures(model) ?? standIn;
  const base = facts ?? modelFacts(provider.defaultModel);
  const { models } = provider;
  const row = provider.rowOf(
    models !== "any" && models.test(bareModel(model)) ? bareModel(model) : (base?.id ?? model),
  );
  const all = table.overrides ?? {};
  const single = ownEntry(table.byModel ?? {}, model) ?? {};
  const changes = [row.cache, all.cache, single.cache];
  const { endings, automatic, slots, routing } = provider.cache;
  return {
    model,
    cache: {
      ...provider.cache,
      minimumPrefix: base?.minimumPrefix ?? 0,
      earlierThinking: base?.earlierThinking ?? "keep-all",
      ...row.cache,
      ...all.cache,
      ...single.cache,
      endings: mergeGroup(
        endings,
        changes.map((change) => change?.endings),
        groupDefaults.endings,
      ),
      automatic: mergeGroup(
        automatic,
        changes.map((change) => change?.automatic),
        groupDefaults.automatic,
      ),
      slots: mergeGroup(
        slots,
        changes.map((change) => change?.slots),
        groupDefaults.slots,
      ),
      routing: mergeGroup(
        routing,
        changes.map((change) => change?.routing),
        groupDefaults.routing,
      ),
      invalidation: {
        ...provider.cache.invalidation,
        ...row.cache?.invalidation,
        ...all.cache?.invalidation,
        ...single.cache?.invalidation,
      },
    },
    accepts: { ...provider.accepts, ...row.accepts, ...all.accepts, ...single.accepts },
    reports: { ...provider.reports, ...row.reports, ...all.reports, ...single.reports },
    ...(facts === undefined ? {} : { facts }),
    ...(provider.free ? { free: true } : {}),
  };
};
