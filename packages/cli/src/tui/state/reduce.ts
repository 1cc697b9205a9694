/** The terminal's state after anything that can happen to it.
 *  Invariant: pure: the same state and action give the same step, so a screen can be replayed from its actions.
 *  Elsewhere: events (events.ts), keys (keys.ts), carrying out effects (../effects.ts). */

import type { RuntimeEvent } from "@prefork/runtime";
import type { KeyPress } from "./child-keys.ts";
import { addBlock, clearConversation, explainFamily } from "./conversation.ts";
import { explainMissOnce, reduceEvent } from "./events.ts";
import { reduceKey, reduceSubmit } from "./keys.ts";
import { type Block, type Page, type State, type Step, stay } from "./state.ts";

export type Action =
  | { readonly type: "event"; readonly event: RuntimeEvent }
  | ({ readonly type: "key" } & KeyPress)
  | { readonly type: "submitted"; readonly text: string; readonly at: number }
  | { readonly type: "resized"; readonly columns: number; readonly rows: number }
  | { readonly type: "ticked"; readonly at: number }
  /** A command answers in the conversation, on a page, or with a hint. */
  | { readonly type: "printed"; readonly block: Block }
  | { readonly type: "pageOpened"; readonly page: Page }
  | { readonly type: "hinted"; readonly text: string }
  | { readonly type: "cleared" }
  /** A resumed session's earlier conversation. */
  | { readonly type: "restored"; readonly blocks: readonly Block[]; readonly usd: number }
  | { readonly type: "missExplained"; readonly agent: string; readonly cause: string }
  | { readonly type: "familyExplained"; readonly family: string; readonly freshUsd?: number }
  /** Facts that no event carries. */
  | {
      readonly type: "learned";
      readonly facts: Partial<Pick<State, "todayUsd" | "window" | "statusText" | "usd" | "model">>;
    };

export const reduce = (state: State, action: Action): Step => {
  switch (action.type) {
    case "event": {
      const step = reduceEvent(state, action.event);
      return { ...step, state: { ...step.state, now: Math.max(state.now, action.event.at) } };
    }
    case "key":
      return reduceKey(state, action);
    case "submitted":
      return reduceSubmit({ ...state, now: action.at, lastKeyAt: action.at }, action.text);
    case "resized":
      return stay({ ...state, columns: action.columns, rows: action.rows });
    case "ticked":
      return stay({ ...state, now: Math.max(state.now, action.at) });
    case "printed":
      return stay({ ...state, main: addBlock(state.main, action.block) });
    case "pageOpened":
      return stay({ ...state, page: action.page });
    case "hinted":
      return stay({ ...state, hint: action.text });
    case "cleared":
      return stay({ ...state, main: clearConversation(state.main), todos: [] });
    case "restored":
      return stay({ ...state, main: action.blocks.reduce(addBlock, state.main), usd: state.usd + action.usd });
    case "missExplained":
      return explainMissOnce(state, action.agent, action.cause);
    case "familyExplained":
      return stay({ ...state, main: explainFamily(state.main, action.family, action.freshUsd) });
    case "learned":
      return stay({ ...state, ...action.facts });
  }
};
