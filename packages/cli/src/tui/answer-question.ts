/** Gives a person's answer to a question of the session.
 *  Invariant: a rule that cannot be read answers nothing: the question stays open, and the rule on the input line.
 *  Elsewhere: which key is which answer (state: keys.ts). */

import { homedir } from "node:os";
import { parseRule } from "@prefork/guard";
import type { Answer } from "@prefork/runtime";
import type { TerminalContext } from "./context.ts";
import { type Effect, safeLine } from "./state/index.ts";

type AnswerEffect = Extract<Effect, { readonly kind: "answer" }>;

export const answerQuestion = async (effect: AnswerEffect, context: TerminalContext): Promise<void> => {
  const { dispatch, screen } = context;
  const { questionId, rule } = effect;
  const problem = rule === undefined ? undefined : ruleProblem(rule, context);
  if (rule !== undefined && problem !== undefined) {
    screen.input.setText(rule);
    dispatch({ type: "ruleRejected", questionId, problem: safeLine(problem, 500) });
    return;
  }
  const { control } = await context.session();
  const isOpen = await control.answer(questionId, answerOf(effect));
  if (!isOpen) dispatch({ type: "hinted", text: "The question was answered elsewhere, or is no longer needed." });
  else if (rule !== undefined)
    dispatch({
      type: "printed",
      block: {
        kind: "notice",
        level: "info",
        text: `Allowed from now on in this session: ${safeLine(rule)} (/permissions)`,
      },
    });
};

const ruleProblem = (rule: string, { io, state }: TerminalContext): string | undefined => {
  const home = io.env.HOME || homedir();
  const read = parseRule(rule, { base: state().cwd, home, list: "allow", origin: "your answer", tools: "any" });
  return read.kind === "wrong" ? read.reason : undefined;
};

const answerOf = ({ answer, rule }: AnswerEffect): Answer => {
  switch (answer) {
    case "once":
      return { kind: "allow" };
    case "always":
      return rule === undefined ? { kind: "allow" } : { kind: "always", rule };
    case "no":
      return { kind: "deny" };
    case "stop":
      return { kind: "deny", stop: true };
  }
};
