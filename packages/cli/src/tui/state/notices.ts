/** Events that the person should know about, in words.
 *  Invariant: what comes from outside is one safe line.
 *  Elsewhere: where a notice is shown (events.ts, ../views: blocks.ts). */

import type { RuntimeEvent } from "@prefork/runtime";
import { safeLine } from "./safe-text.ts";
import type { Conversation } from "./state.ts";

type Of<T extends RuntimeEvent["type"]> = Extract<RuntimeEvent, { readonly type: T }>;

export type Notice = { readonly kind: "notice"; readonly level: "info" | "warn" | "error"; readonly text: string };

export const info = (text: string): Notice => ({ kind: "notice", level: "info", text });
export const warn = (text: string): Notice => ({ kind: "notice", level: "warn", text });

/** A server that cannot start is tried again and again, and fails each time for the same reason. */
export const isShown = ({ done }: Conversation, { text }: Notice): boolean =>
  done.slice(-100).some((block) => block.kind === "notice" && block.text === text);

/** Undefined if the event needs no words. */
export const noticeOf = (event: RuntimeEvent): Notice | undefined => {
  switch (event.type) {
    case "compaction_started":
      return info("Summarizing the conversation to make room…");
    case "compaction_ended":
      return info(
        `Summarized: ${kilobytes(event.bytesBefore)} became ${kilobytes(event.bytesAfter)}. ${safeLine(event.economics)}`,
      );
    case "compaction_failed":
      return warn(`The conversation could not be summarized: ${safeLine(event.reason)}`);
    case "fork_breached":
      return warn(
        `${event.taskId} changed files outside ${safeLine(event.folder)}: ` +
          event.files.map(({ path, reverted }) => `${safeLine(path)}${reverted ? " (restored)" : ""}`).join(", "),
      );
    case "worktree_repaired":
      return info(`Worktree repaired: ${safeLine(event.what)}; ${safeLine(event.done)}`);
    case "worktree_merged":
      return info(mergedText(event));
    case "journal_troubled":
      return warn(`Journal: ${safeLine(event.problem)}`);
    case "settings_noticed":
      return warn(safeLine(event.notice));
    case "hook_failed":
      return warn(`Extension ${safeLine(event.extension)}, ${safeLine(event.hook)}: ${safeLine(event.reason)}`);
    case "extension_skipped":
      return warn(`Extension ${safeLine(event.extension)} was skipped: ${safeLine(event.reason)}`);
    case "server_lost":
      return warn(`Tool server ${safeLine(event.server)}: ${safeLine(event.reason)}`);
    default:
      return undefined;
  }
};

const kilobytes = (bytes: number): string => `${Math.max(1, Math.round(bytes / 1000)).toLocaleString("en-US")} kB`;

const mergedText = ({ taskId, outcome, files, unresolved = [] }: Of<"worktree_merged">): string => {
  if (outcome === "nothing-new") return `${taskId}: this checkout already had all of its work`;
  const conflicts =
    unresolved.length === 0 ? "" : `; conflicts in ${unresolved.map((path) => safeLine(path)).join(", ")}`;
  return `${taskId}: merged, ${files} ${files === 1 ? "file" : "files"}${conflicts} (/undo takes it back)`;
};
