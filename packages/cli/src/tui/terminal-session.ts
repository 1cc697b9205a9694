/** What the terminal needs of a session, however that session is reached.
 *  Invariant: only plain data crosses it; a terminal that is attached to another process lacks the optional parts, and its
 *  commands say so.
 *  Elsewhere: a session of this process (local-session.ts), one of another process (attached-session.ts), SessionControl
 *  (@prefork/runtime). */

import type { Mode } from "@prefork/guard";
import type { RuntimeEvent, Session, SessionControl } from "@prefork/runtime";
import type { EarlierConversation } from "./earlier-blocks.ts";
import type { OpenedHere } from "./first-run.ts";

export type TerminalSession = {
  readonly control: SessionControl;
  /** The session itself, if it runs in this process. */
  readonly own?: Session;
  readonly setMode?: (mode: Mode) => void;
  readonly close: () => Promise<void>;
};

/** A session, and what is shown of it first. */
export type OpenedSession = TerminalSession & {
  readonly notices: readonly string[];
  /** What was said before its first event. */
  readonly earlier?: EarlierConversation;
  readonly window?: number;
  /** What a greeting depends on, if the session is new. */
  readonly welcome?: OpenedHere;
  /** If it runs in another process. */
  readonly attachment?: Attachment;
};

export type Attachment = {
  readonly session: string;
  readonly cwd: string;
  readonly model: string;
  readonly pid: number;
  readonly isReadOnly: boolean;
  /** The task whose page is shown first. */
  readonly task?: string;
  readonly events: AsyncIterable<RuntimeEvent>;
  /** The session ended, or its process did: the exit code, and what to tell the person. Never settles if we leave first. */
  readonly over: Promise<{ readonly code: number; readonly text: string }>;
};
