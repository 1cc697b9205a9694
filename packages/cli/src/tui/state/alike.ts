/** Which open questions are like the first one, so that one key may answer them together?
 *  Invariant: the same tool for the same reason; the screen names each of them before the key can be pressed.
 *  Elsewhere: the key (keys.ts), the panel (../views: question.ts). */

import type { OpenQuestion, State } from "./state.ts";

/** The first question and those like it; the first one alone if there are none. */
export const alikeQuestions = ({ questions: [first, ...others] }: Pick<State, "questions">): readonly OpenQuestion[] =>
  first ? [first, ...others.filter(({ tool, reason }) => tool === first.tool && reason === first.reason)] : [];
