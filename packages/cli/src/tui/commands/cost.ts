/** /cost, /cache, /explain: what was paid, what was read from the cache, and why not more.
 *  Elsewhere: the figures (@prefork/runtime/observe). */

import { type SlashCommand, showCli } from "./command.ts";

const sessionOf = (context: Parameters<SlashCommand["run"]>[1]): string => context.state().session ?? "latest";

const cost: SlashCommand = {
  name: "cost",
  summary: "the bill of this session, and what alternatives would have cost",
  group: "Cost and cache",
  run: (_args, context) => showCli(context, "Cost", ["explain", sessionOf(context)]),
};

const explain: SlashCommand = {
  name: "explain",
  args: "[fork]",
  summary: "every request: what it read, wrote and cost, and why",
  group: "Cost and cache",
  run: (args, context) =>
    showCli(context, "Requests", ["explain", sessionOf(context), ...args.split(/\s+/).filter(Boolean)]),
};

export const costCommands: readonly SlashCommand[] = [cost, explain];
