/** A session as its attached clients see it: events, prompts, answers.
 *  Nothing here is a second way to do something. Each part calls the session's own methods, so several attached
 *  clients see the same and cannot get in each other's way.
 *  Elsewhere: the port (../ports.ts), which events are kept (event-hub.ts), the queue of questions (../tasks). */

import { InputError } from "@prefork/wire";
import { escapeTags } from "../context/index.ts";
import type { Ids, PromptEnd, SessionControl } from "../ports.ts";
import type { Questions } from "../tasks/index.ts";
import type { Background } from "./background.ts";
import type { EventHub } from "./event-hub.ts";

export type RunningExchange = { readonly abort: () => void; readonly ended: Promise<unknown> };

export type ControlParts = Pick<Background, "launcher" | "inbox" | "taskTools"> & {
  readonly hub: EventHub;
  readonly questions: Questions | undefined;
  readonly options: { readonly ids: Ids };
};

/** The session's own methods. */
export type SessionActions = {
  readonly id: string;
  readonly prompt: (...given: Parameters<SessionControl["prompt"]>) => Promise<PromptEnd>;
  readonly stopTask: (taskId: string) => Promise<unknown>;
  readonly tree: SessionControl["tree"];
  readonly rewind: SessionControl["rewind"];
  /** The running exchange, if there is one. */
  readonly running: () => RunningExchange | undefined;
};

export const createControl = (session: SessionActions, parts: ControlParts): SessionControl => {
  const { hub, questions, launcher, inbox, taskTools, options } = parts;
  const { running } = session;
  hub.keepHistory();
  return {
    session: session.id,
    subscribe: (fromSeq) => hub.replay(fromSeq),
    prompt: session.prompt,
    questions: () => questions?.waiting ?? [],
    answer: (questionId, answer) => questions?.answer(questionId, answer) ?? false,
    steer: async (text, taskId) => {
      if (text.trim() === "") throw new InputError("the message is empty");
      if (taskId !== undefined) {
        const { text: reason, isError } = await taskTools.send(taskId, text, "user");
        if (isError) throw new InputError(reason);
        return;
      }
      if (!running()) throw new InputError("nothing is running that could be steered; send a prompt instead");
      const words = `${STEERED}\n${escapeTags(text)}`;
      inbox.add({ id: options.ids.next("notice"), task: "user", text: words });
    },
    stop: async (taskId) => {
      if (taskId !== undefined) {
        await session.stopTask(taskId);
        return;
      }
      const exchange = running();
      exchange?.abort();
      await exchange?.ended;
    },
    background: (taskId) => launcher.background(taskId),
    tree: session.tree,
    rewind: session.rewind,
  };
};

const STEERED = "Message of the user, sent while you work:";
