/** The rehearsal: a script for the simulator that follows task lists with the session's own tools, without a model.
 *  Invariant: a pure function of the request; the same request gives the same answer.
 *  Elsewhere: each part in its own file; serving it (embedded.ts). */

import { callTools, type SimAnswer, type SimScript, say } from "@prefork/simulator";
import { type Conversation, readConversation } from "./conversation.ts";
import { type DeclaredTools, declaredTools } from "./declared.ts";
import { nextOf, openTodos } from "./replay.ts";
import { emptyText, forkReport, reportText } from "./report.ts";
import { isSummaryDirective, type Rehearsed, readBefore, summaryText } from "./summary.ts";
import { readTasks, type Task } from "./tasks.ts";

export const rehearsal = (): SimScript => (request) => {
  const conversation = readConversation(request.body);
  const declared = declaredTools(request.body);
  const isSummary = isSummaryDirective(conversation.lastText);
  // The directive to summarize is also a prompt, but it is not part of the summary.
  const exchanges = conversation.exchanges.filter(
    ({ start }) => start.kind !== "prompt" || !isSummaryDirective(start.prompt),
  );
  const rehearsed = { ...conversation, exchanges };
  const through = (index: number): Rehearsed => rehearse(index, rehearsed, declared);
  if (isSummary) return say(summaryText(exchanges.map((_, index) => through(index))));
  return exchanges.length === 0 ? say(emptyText()) : answer(through(exchanges.length - 1), rehearsed);
};

/** A fork does not fork again: the parts become its own tasks. */
const inFork = (tasks: readonly Task[]): readonly Task[] =>
  tasks.flatMap((task) => {
    const parts = task.moves.flatMap((move) => (move.kind === "fork" ? move.items : []));
    return parts.length > 0 ? parts.flatMap(readTasks) : [task];
  });

/** Replays an exchange with the results that it has. */
const rehearse = (index: number, conversation: Conversation, declared: DeclaredTools): Rehearsed => {
  const { exchanges, isFork, folder, userTexts } = conversation;
  const exchange = exchanges[index] ?? { start: { kind: "news" }, messages: [], calls: [], notifications: [] };
  const { start, messages, notifications } = exchange;
  const before = start.kind === "summary" ? readBefore(start.summary) : { prompt: "", done: [], earlier: [] };
  const prompt = start.kind === "prompt" ? start.prompt : before.prompt;
  const asked = [prompt, ...messages].flatMap(readTasks);
  const tasks = isFork ? inFork(asked) : asked;
  const carried = openTodos(exchanges.slice(0, index), userTexts);
  const next = nextOf({ tasks, skip: before.done.length, exchange, declared, folder, carried, keepsList: !isFork });
  return { next, prompt, tasks, before, notifications };
};

const answer = (last: Rehearsed, { isFork }: Conversation): SimAnswer => {
  const { next, prompt, before, notifications } = last;
  if (next.kind === "call") return callTools(next.calls);
  const account = { before: before.done, done: next.done };
  if (isFork) return say(forkReport(prompt, account));
  if (last.tasks.length === 0 && notifications.length === 0) return say(emptyText());
  return say(reportText(account, notifications));
};
