/** The terminal's state: what it holds, and how events and keys change it. Nothing here acts. */

export { alikeQuestions } from "./alike.ts";
export { callText, describeCall } from "./call-line.ts";
export type { InputFacts, KeyPress } from "./child-keys.ts";
export { shownItems } from "./page-keys.ts";
export { type Action, reduce } from "./reduce.ts";
export { safeLine, safeText } from "./safe-text.ts";
export {
  type Block,
  type CallBlock,
  type Child,
  type Conversation,
  type Effect,
  emptyConversation,
  type FamilyBlock,
  initialState,
  type ListItem,
  type OpenQuestion,
  type Page,
  type State,
  type TrustChoice,
  type TrustQuestion,
  type TrustSection,
} from "./state.ts";
export { isMergeable, type StripRow, stripRows } from "./strip-rows.ts";
export { trustOptions } from "./trust-keys.ts";
