/** /compact, /clear, /quit and other commands about the conversation itself.
 *  Elsewhere: sessions (@prefork/runtime). */

import { notice, type SlashCommand } from "./command.ts";

const compact: SlashCommand = {
  name: "compact",
  args: "[what to keep]",
  summary: "summarize the conversation to make room",
  group: "Session",
  run: async (args, context) => {
    const { own } = await context.session();
    if (!own) throw new Error("Only the terminal that runs the session can compact it.");
    await own.compact(args === "" ? undefined : args);
  },
};

const clear: SlashCommand = {
  name: "clear",
  summary: "start a new conversation; this one can be resumed",
  group: "Session",
  run: async (_args, context) => {
    const { session } = context.state();
    await context.switchSession();
    context.dispatch({ type: "cleared" });
    if (session !== undefined)
      notice(context, `New conversation. The last one: /resume, or prefork --resume ${session}`);
  },
};

const quit: SlashCommand = {
  name: "quit",
  summary: "leave; the session is kept",
  group: "Session",
  run: (_args, context) => context.quit(),
};

export const sessionCommands: readonly SlashCommand[] = [compact, clear, quit];
