/** `prefork config edit`: a settings file in the user's editor.
 *  Invariant: the file is replaced only by text that is valid. Otherwise it stays as it was, and the edited text is kept
 *  beside it and opened again the next time.
 *  Elsewhere: starting the editor (editor.ts), reading and writing the files (config-files.ts). */

import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { editableSettings } from "@prefork/guard";
import { type Io, UsageError } from "../io.ts";
import { visible } from "../visible.ts";
import {
  editCommandFor,
  fileOf,
  problemsOf,
  readAs,
  readSettingsText,
  type Scope,
  writeSettingsText,
} from "./config-files.ts";
import { editorOf, openInEditor } from "./editor.ts";

const DRAFT_NAMES: Readonly<Record<Scope, string>> = {
  user: "settings.edited.json",
  project: "settings.edited.json",
  local: "settings.local.edited.json",
};

const EMPTY = "{\n}\n";

export const editSettings = async (scope: Scope, io: Io): Promise<void> => {
  const file = fileOf(scope, io);
  const draft = join(dirname(file), DRAFT_NAMES[scope]);
  const editor = editorOf(io.env, await configuredEditor(io));
  if (!editor)
    throw new UsageError(
      `no editor is set; set one: export EDITOR=nano, or prefork config set terminal.editor '["nano"]'`,
    );
  const before = await readSettingsText(scope, io);
  const kept = await readSettingsText(scope, io, DRAFT_NAMES[scope]);
  if (kept === undefined) await writeSettingsText(scope, before ?? EMPTY, { io, name: DRAFT_NAMES[scope] });
  else io.err(`prefork: continuing with the text that you edited last time; to start over, delete ${draft}\n`);

  const ended = await openInEditor(editor, draft, { ...io.env });
  const after = await readSettingsText(scope, io, DRAFT_NAMES[scope]);
  const isChanged = after !== undefined && after !== (before ?? EMPTY);
  const hint = isChanged ? `; your text is kept in ${draft}` : "";
  if (!isChanged) await rm(draft, { force: true });
  if (ended.kind === "failed") {
    const name = visible(editor.argv[0] ?? "");
    throw new UsageError(`${file} was not changed: the editor ${name} (from ${editor.from}) ${ended.reason}${hint}`);
  }
  if (!isChanged) return io.out(`Nothing was changed in ${file}.\n`);
  const read = readAs(scope, after, { io, name: draft });
  if (read.kind === "broken")
    throw new UsageError(
      `${file} was not changed: ${problemsOf(read)}; to edit your text again: ${editCommandFor(scope)}`,
    );
  if ((await readSettingsText(scope, io)) !== before)
    throw new UsageError(`${file} was not saved, because it was changed while you edited it${hint}; compare the two`);
  await writeSettingsText(scope, after, { io });
  await rm(draft, { force: true });
  for (const notice of read.settings.notices) io.err(`prefork: ${visible(notice.replace(draft, file))}\n`);
  io.out(`Saved ${file}.\n`);
  if (scope !== "user") io.out("It applies once you trust the folder in its present form: prefork trust\n");
};

/** Your own file may be the broken one that is to be edited; then the environment names the editor. */
const configuredEditor = async (io: Io): Promise<readonly string[] | undefined> => {
  const text = await readSettingsText("user", io);
  const value = text === undefined ? undefined : editableSettings(text)?.valueAt(["terminal", "editor"]);
  const isArgv = Array.isArray(value) && value.every((word) => typeof word === "string" && word !== "");
  return isArgv ? (value as readonly string[]) : undefined;
};
