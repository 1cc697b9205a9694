/** Would a command of git print a password? People put them into the addresses of remotes, and a repository may have git
 *  read any file as settings.
 *  Invariant: only addresses with a password or a token in them count, a user's name is none; and settings that come from
 *  a file that may hold keys, other than the repository's own.
 *  Elsewhere: settings that hold passwords by their names (../guard/bash), the file of settings itself (../paths). */

import { pathProblem } from "../guard/index.ts";
import { askGit } from "./ask-git.ts";
import { verbOf } from "./git-objects.ts";
import { canonical, reached } from "./reached.ts";

/** `://name:password@`, or a token in place of the name. */
const PASSWORD = /:\/\/(?:[^/@:\s]*:[^/@\s]+|[^/@\s]{20,})@/;

type Setting = {
  /** The file that it stands in, and whether the repository's settings begin there. */
  readonly file: string;
  readonly isOwn: boolean;
  /** Key and value. */
  readonly text: string;
};

/** In the order of their files; a file that another one includes comes after the line that includes it. */
const settingsAt = (folder: string): readonly Setting[] => {
  const asked = askGit({ folder, words: ["config", "--list", "--show-scope", "--show-origin", "-z"] });
  const fields = asked?.text.split("\0") ?? [];
  const first = new Map<string, string>();
  const found: Setting[] = [];
  for (let at = 0; at + 2 < fields.length; at += 3) {
    const [scope = "", origin = "", text = ""] = fields.slice(at, at + 3);
    if (!origin.startsWith("file:")) continue;
    const file = canonical(reached(folder, origin.slice("file:".length)));
    if (!first.has(scope)) first.set(scope, file);
    found.push({
      file,
      isOwn: first.get(scope) === file && /\.git\/(?:.*\/)?config(?:\.worktree)?$/i.test(file),
      text,
    });
  }
  return found;
};

/** `folder`: where git runs. */
export const remoteProblem = (words: readonly string[], folder: string): { readonly problem: string } | undefined => {
  const verb = verbOf(words);
  const sections = words.map((word) => /^\^?([\w-]+)/.exec(word)?.[1]?.toLowerCase());
  const tellsAddresses = verb === "remote" && words.some((word) => /^(?:-v|--verbose|get-url)$/.test(word));
  if (!tellsAddresses && verb !== "config") return undefined;
  const isPrinted = ({ text }: Setting): boolean =>
    verb === "remote" ? /^(?:remote|url)\./.test(text) : sections.includes(text.slice(0, text.indexOf(".")));
  const printed = settingsAt(folder).filter(isPrinted);
  const found = printed.find(({ text }) => PASSWORD.test(text));
  if (found !== undefined) {
    const key = found.text.slice(0, found.text.indexOf("\n"));
    return { problem: `${key} may hold a password; ask for it, or list names: git remote` };
  }
  const strange = printed.find(({ file, isOwn }) => !isOwn && pathProblem(file) !== undefined);
  return strange === undefined
    ? undefined
    : { problem: `the repository has git read settings from ${strange.file}, which may hold keys; ask for it` };
};
