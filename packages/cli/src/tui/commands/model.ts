/** /model: continues the conversation with another model.
 *  Invariant: before anything changes the person sees what the switch costs: another model cannot read this one's cache, so
 *  the whole conversation is written again.
 *  Elsewhere: prices (@prefork/wire), the new epoch (@prefork/runtime: session/open.ts). */

import { knownModels, modelFacts } from "@prefork/wire";
import { formatMoney, formatTokens } from "../../numbers.ts";
import type { TerminalContext } from "../context.ts";
import { type ListItem, type State, safeLine } from "../state/index.ts";
import { notice, openList, ownSession, requireIdle, type SlashCommand } from "./command.ts";
import { nextRequestCost } from "./cost.ts";

/** Models of the same maker: a session stays with its provider. */
const modelsLike = (model: string): readonly string[] => {
  const current = modelFacts(model)?.id ?? model;
  const maker = /^[a-z]+/i.exec(current)?.[0] ?? "";
  return [...knownModels.keys()].filter((id) => id.startsWith(maker));
};

const priceText = (model: string): string => {
  const prices = modelFacts(model)?.prices;
  return prices
    ? `$${prices.input} in · $${prices.output} out · $${prices.read} read, per million tokens`
    : "its price is unknown";
};

/** What the next request costs with this model, compared with the present one. */
export const switchCost = (to: string, { model, cache }: Pick<State, "model" | "cache">): string => {
  const prompt = cache?.prompt ?? 0;
  if (prompt === 0) return "Nothing was sent yet, so the switch costs nothing.";
  const [next, present] = [nextRequestCost(to, prompt), nextRequestCost(model, prompt)];
  const written = `The ${formatTokens(prompt)} tokens of this conversation are written to the cache again`;
  if (!next) return `${written}. The price of ${safeLine(to, 80)} is unknown.`;
  const instead = present ? `, instead of ${formatMoney(present.warm)} if you stay with ${model}` : "";
  return `${written}: about ${formatMoney(next.cold)} for the input of the next request${instead}. After that, about ${formatMoney(next.warm)} per request.`;
};

const modelItem = (id: string, state: State): ListItem => ({
  id,
  label: id,
  detail: id === state.model ? "in use" : priceText(id),
  preview: id === state.model ? `In use. ${priceText(id)}` : `${priceText(id)}\n${switchCost(id, state)}`,
});

const confirmSwitch = async (model: string, context: TerminalContext): Promise<void> => {
  const state = context.state();
  if (model === state.model) return notice(context, `${model} is in use already.`);
  requireIdle(context);
  if ((state.cache?.prompt ?? 0) === 0) return switchModel(model, context);
  const preview = switchCost(model, state);
  openList(context, {
    title: `Switch to ${model}?`,
    command: "model",
    hint: "does it",
    items: [
      { id: `switch ${model}`, label: `Switch to ${model}`, preview },
      { id: "stay", label: `Stay with ${state.model}`, preview },
    ],
  });
};

const switchModel = async (model: string, context: TerminalContext): Promise<void> => {
  requireIdle(context);
  const { session, engine } = context.state();
  if (session === undefined) throw new Error("The session is not open yet.");
  await context.switchSession({ id: session, model });
  notice(
    context,
    engine === "rehearsal"
      ? `The rehearsal engine still answers, because no key is set. Figures are those of ${model} from now on.`
      : `From now on ${model} answers.`,
  );
};

const model: SlashCommand = {
  name: "model",
  args: "[name]",
  summary: "continue with another model; shows first what the switch costs",
  group: "Session",
  complete: ({ state }) => modelsLike(state().model).map((id) => ({ value: id, about: priceText(id) })),
  run: async (args, context) => {
    await ownSession(context);
    const state = context.state();
    const wanted = safeLine(args, 100);
    if (/\s/.test(wanted)) throw new Error("A model's name has no spaces. /model lists the ones that are known.");
    if (wanted !== "") return confirmSwitch(wanted, context);
    const ids = [...new Set([...(state.model === "" ? [] : [state.model]), ...modelsLike(state.model)])];
    openList(context, {
      title: "Model",
      command: "model",
      hint: "shows what the switch costs",
      items: ids.map((id) => modelItem(id, state)),
    });
  },
  chosen: (id, context) => {
    if (id === "stay") return undefined;
    return id.startsWith("switch ") ? switchModel(id.slice("switch ".length), context) : confirmSwitch(id, context);
  },
};

export const modelCommands: readonly SlashCommand[] = [model];
