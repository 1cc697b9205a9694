/** Adding a tool server to a file of settings, and taking it out again. Pure.
 *  Elsewhere: editing the text (@prefork/guard), what an entry may say (entry.ts). */

import { type Edited, editableSettings } from "@prefork/guard";
import type { WrittenServers } from "@prefork/guard/internal";

const SECTION = "mcpServers";

/** `entry` undefined: take it out. `text` undefined: there is no file yet. */
export const editServers = (
  text: string | undefined,
  name: string,
  entry: WrittenServers[string] | undefined,
): Edited => {
  const file = editableSettings(text);
  if (!file) return { ok: false, reason: "the file is not valid JSON" };
  const isThere = file.valueAt([SECTION, name]) !== undefined;
  if (entry !== undefined && isThere)
    return { ok: false, reason: `there is a server ${name} already; remove it first` };
  if (entry === undefined && !isThere) return { ok: false, reason: `there is no server ${name}` };
  return { ok: true, text: file.withValue([SECTION, name], entry) };
};
