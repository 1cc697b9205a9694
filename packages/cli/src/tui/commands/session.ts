/** /compact, /resume, /clear, /quit: the conversation itself.
 *  Invariant: nothing that was said is ever deleted: an earlier conversation can be resumed; a session is left only when
 *  nothing runs in it.
 *  Elsewhere: opening sessions (../open-terminal.ts), saved sessions (@prefork/runtime/observe). */

import { listSessionPreviews, type SessionPreview } from "@prefork/runtime/observe";
import type { Io } from "../../io.ts";
import { formatMoney } from "../../numbers.ts";
import { type ListItem, safeLine, safeText } from "../state/index.ts";
import { ageText } from "./age.ts";
import {
  type ArgumentChoice,
  counted,
  hint,
  notice,
  openList,
  ownSession,
  requireIdle,
  type SlashCommand,
  storeOf,
} from "./command.ts";

const compact: SlashCommand = {
  name: "compact",
  args: "[what to keep]",
  summary: "summarize the conversation to make room",
  group: "Session",
  run: async (args, context) => {
    const own = await ownSession(context);
    if (context.state().runningSince !== undefined)
      throw new Error("The agent is working. Wait for it, or stop it with Esc first.");
    const result = await context.work("Summarizing the conversation…", (signal) =>
      own.compact(args.trim() === "" ? undefined : args.trim(), { signal }),
    );
    // What was compacted, and what failed, is announced by events.
    if (result.kind === "left") notice(context, `The conversation was left as it is: ${safeLine(result.reason)}.`);
  },
};

// --- /resume -------------------------------------------------------------------------------------------------------------

const sessionItem = (session: SessionPreview, now: number): ListItem => {
  const { id, title, usedAt, turns, forks, usdWithForks, lastAnswer, model, holder } = session;
  const open = holder ? ` · open in process ${holder.pid}` : "";
  const figures = `${counted(turns, "turn")}${forks === 0 ? "" : ` · ${counted(forks, "fork")}`} · ${formatMoney(usdWithForks)} · ${safeLine(model, 60)}${open}`;
  return {
    id,
    label: safeLine(title, 200) || "(no prompt yet)",
    detail: ageText(now - usedAt),
    preview: `${figures}\n${safeText(lastAnswer).trim()}`,
  };
};

type Here = { readonly cwd: string /** The session that is open. */; readonly session?: string };

const sessionsIn = async (io: Io, { cwd, session: current }: Here): Promise<readonly SessionPreview[]> => {
  const all = await listSessionPreviews(storeOf({ io }).state, { cwd });
  return all.flatMap((one) => (one.kind === "session" && one.id !== current && one.turns > 0 ? [one] : []));
};

const sessionsHere = ({
  io,
  state,
}: Parameters<NonNullable<SlashCommand["complete"]>>[0]): Promise<readonly SessionPreview[]> => sessionsIn(io, state());

/** The conversations of a folder, latest first, for a list. */
export const sessionItems = async (io: Io, here: Here): Promise<readonly ListItem[]> =>
  (await sessionsIn(io, here)).map((session) => sessionItem(session, Date.now()));

const resume: SlashCommand = {
  name: "resume",
  args: "[session or words of its title]",
  summary: "continue an earlier conversation in this folder",
  group: "Session",
  complete: async (context): Promise<readonly ArgumentChoice[]> =>
    (await sessionsHere(context)).slice(0, 50).map(({ id, title }) => ({ value: id, about: safeLine(title, 80) })),
  run: async (args, context) => {
    await ownSession(context);
    const words = args.trim();
    const sessions = await sessionsHere(context);
    if (sessions.length === 0) return notice(context, "There is no other conversation in this folder.");
    const named = sessions.find(({ id }) => id === words);
    if (named) return switchTo(named.id, context);
    openList(context, {
      title: "Resume a conversation",
      command: "resume",
      hint: "continues it",
      items: sessions.map((session) => sessionItem(session, Date.now())),
      filter: safeLine(words),
    });
  },
  chosen: (id, context) => switchTo(id, context),
};

const switchTo = async (id: string, context: Parameters<SlashCommand["run"]>[1]): Promise<void> => {
  requireIdle(context);
  const { session: before, main } = context.state();
  const isWorthResuming = [...main.done, ...main.open].some(({ kind }) => kind === "prompt");
  await context.switchSession({ id });
  hint(
    context,
    before !== undefined && isWorthResuming ? `Resumed. The other conversation: /resume ${before}` : "Resumed.",
  );
};

// --- /clear, /quit -------------------------------------------------------------------------------------------------------

const clear: SlashCommand = {
  name: "clear",
  summary: "start a new conversation; this one can be resumed",
  group: "Session",
  run: async (_args, context) => {
    await ownSession(context);
    requireIdle(context);
    const { session, model } = context.state();
    await context.switchSession(model === "" ? {} : { model });
    if (session !== undefined) notice(context, `New conversation. To continue the last one: /resume ${session}`);
  },
};

const quit: SlashCommand = {
  name: "quit",
  summary: "leave; the conversation is kept",
  group: "Session",
  run: (_args, context) => {
    const { children, attached } = context.state();
    const running = [...children.values()].filter(({ state }) => state !== "ended");
    if (running.length === 0 || attached) return context.quit();
    const preview = running.map(({ label, activity }) => `${label}: ${activity}`).join("\n");
    openList(context, {
      ...{ title: "Quit while forks are running?", command: "quit", hint: "does it" },
      items: [
        { id: "quit", label: `Quit, and stop ${counted(running.length, "fork")}`, preview },
        { id: "stay", label: "Stay", preview },
      ],
    });
  },
  chosen: (id, context) => (id === "quit" ? context.quit() : undefined),
};

export const sessionCommands: readonly SlashCommand[] = [compact, resume, clear, quit];
