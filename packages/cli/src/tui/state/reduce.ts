/** The terminal's state after anything that can happen to it.
 *  Invariant: pure: the same state and action give the same step, so a screen can be replayed from its actions.
 *  Elsewhere: events (events.ts), keys (keys.ts), carrying out effects (../effects.ts). */

import type { RuntimeEvent } from "@prefork/runtime";
import type { KeyPress } from "./child-keys.ts";
import { addBlock, clearConversation, explainFamily } from "./conversation.ts";
import { explainMissOnce, reduceEvent } from "./events.ts";
import { reduceKey, reduceSubmit } from "./keys.ts";
import { openPageAbove } from "./page-stack.ts";
import {
  type Block,
  type Child,
  type Effect,
  type Page,
  type State,
  type Step,
  stay,
  type TrustQuestion,
  withoutSession,
} from "./state.ts";

export type Action =
  | { readonly type: "event"; readonly event: RuntimeEvent }
  | ({ readonly type: "key" } & KeyPress)
  | { readonly type: "submitted"; readonly text: string; readonly at: number }
  | { readonly type: "resized"; readonly columns: number; readonly rows: number }
  | { readonly type: "ticked"; readonly at: number }
  /** A command answers in the conversation, on a page, or with a hint. */
  | { readonly type: "printed"; readonly block: Block }
  | { readonly type: "pageOpened"; readonly page: Page }
  /** A page was scrolled beyond its end. */
  | { readonly type: "scrollLimited"; readonly limit: number }
  | { readonly type: "hinted"; readonly text: string }
  /** The rule of an "always" answer cannot be read. It is still on the input line. */
  | { readonly type: "ruleRejected"; readonly questionId: string; readonly problem: string }
  | { readonly type: "trustAsked"; readonly question: TrustQuestion }
  | { readonly type: "suggested"; readonly prompts: readonly string[] }
  /** Another session begins on this screen. */
  | { readonly type: "cleared" }
  /** A resumed session's earlier conversation. */
  | {
      readonly type: "restored";
      readonly blocks: readonly Block[];
      readonly usd: number;
      readonly children?: readonly Child[];
    }
  /** The conversation went back, or to another branch: this was said up to there. */
  | { readonly type: "conversationChanged"; readonly blocks: readonly Block[] }
  /** A command that may take long begins, or is over. */
  | { readonly type: "workChanged"; readonly label?: string; readonly at: number }
  /** A command merged a worktree, or undid that. */
  | { readonly type: "worktreeChanged"; readonly task: string; readonly state: string }
  | { readonly type: "missExplained"; readonly agent: string; readonly cause: string }
  | { readonly type: "familyExplained"; readonly family: string; readonly freshUsd?: number }
  /** Facts that no event carries. */
  | {
      readonly type: "learned";
      readonly facts: Partial<
        Pick<
          State,
          "todayUsd" | "window" | "statusText" | "usd" | "model" | "session" | "cwd" | "isOpening" | "attached"
        >
      >;
    };

/** How long a hint stays, unless a key removes it earlier. */
const HINT_MS = 8_000;

export const reduce = (state: State, action: Action): Step => {
  const step = change(state, action);
  const { hint } = step.state;
  if (hint === undefined || hint === state.hint) return step;
  return { ...step, state: { ...step.state, hintAt: step.state.now } };
};

const withoutOldHint = (state: State, now: number): State => {
  if (state.hint === undefined || now - state.hintAt < HINT_MS) return state;
  const { hint: _hint, ...rest } = state;
  return rest;
};

const change = (state: State, action: Action): Step => {
  switch (action.type) {
    case "event": {
      const step = reduceEvent(state, action.event);
      return {
        ...step,
        state: { ...step.state, now: Math.max(state.now, action.event.at) },
        effects: [...step.effects, ...refreshAfter(action.event)],
      };
    }
    case "key":
      return reduceKey(state, action);
    case "submitted":
      return reduceSubmit(
        { ...state, now: action.at, lastKeyAt: action.at, pagesBelow: state.page ? state.pagesBelow : [] },
        action.text,
      );
    case "resized":
      return stay({ ...state, columns: action.columns, rows: action.rows });
    case "ticked":
      return stay(withoutOldHint({ ...state, now: Math.max(state.now, action.at) }, action.at));
    case "printed":
      return stay({ ...state, main: addBlock(state.main, action.block) });
    case "pageOpened":
      return stay(openPageAbove(state, action.page));
    case "scrollLimited":
      return stay(limitScroll(state, action.limit));
    case "ruleRejected":
      if (!state.questions.some(({ id }) => id === action.questionId)) return stay(state);
      return stay({ ...state, composing: { kind: "rule", questionId: action.questionId }, hint: action.problem });
    case "hinted":
      return stay({ ...state, hint: action.text });
    case "trustAsked":
      return stay({ ...state, trust: action.question });
    case "suggested":
      return stay({ ...state, suggestions: action.prompts });
    case "cleared":
      return stay({ ...withoutSession(state), main: clearConversation(state.main) });
    case "restored":
      return stay({
        ...state,
        main: action.blocks.reduce(addBlock, state.main),
        usd: state.usd + action.usd,
        children: new Map([...state.children, ...(action.children ?? []).map((child) => [child.id, child] as const)]),
      });
    case "conversationChanged":
      return stay({ ...state, main: action.blocks.reduce(addBlock, clearConversation(state.main)), todos: [] });
    case "workChanged": {
      const { work: _work, ...rest } = state;
      const now = Math.max(state.now, action.at);
      return stay(
        action.label === undefined
          ? { ...rest, now }
          : { ...rest, now, work: { label: action.label, since: action.at } },
      );
    }
    case "worktreeChanged": {
      const child = state.children.get(action.task);
      if (!child?.worktree) return stay(state);
      const changed = { ...child, worktree: { ...child.worktree, state: action.state } };
      return stay({ ...state, children: new Map(state.children).set(child.id, changed) });
    }
    case "missExplained":
      return explainMissOnce(state, action.agent, action.cause);
    case "familyExplained":
      return stay({ ...state, main: explainFamily(state.main, action.family, action.freshUsd) });
    case "learned":
      return stay({ ...state, ...action.facts });
  }
};

/** The events after which the rest of the status line may have changed: the money of today, the user's own line. */
const refreshAfter = ({ type, agent }: RuntimeEvent): readonly Effect[] => {
  if (agent !== "main") return [];
  if (type === "session_opened" || type === "exchange_ended") return [{ kind: "refresh", isMoneyToo: true }];
  return type === "turn_ended" || type === "mode_changed" ? [{ kind: "refresh", isMoneyToo: false }] : [];
};

const limitScroll = (state: State, limit: number): State =>
  state.page && "scroll" in state.page && state.page.scroll > limit
    ? { ...state, page: { ...state.page, scroll: limit } }
    : state;
