/** Would a command of git print a password? People put them into the addresses of remotes.
 *  Invariant: only addresses with a password or a token in them count; a user's name is none.
 *  Elsewhere: settings that hold passwords by their names (../guard/bash), the file of settings itself (../paths). */

import { askGit } from "./ask-git.ts";
import { verbOf } from "./git-objects.ts";

/** `://name:password@`, or a token in place of the name. */
const PASSWORD = /:\/\/(?:[^/@:\s]*:[^/@\s]+|[^/@\s]{20,})@/;

/** `folder`: where git runs. */
export const remoteProblem = (words: readonly string[], folder: string): { readonly problem: string } | undefined => {
  const verb = verbOf(words);
  const sections = words.map((word) => /^\^?(\w+)\b/.exec(word)?.[1]?.toLowerCase());
  const tellsAddresses = verb === "remote" && words.some((word) => /^(?:-v|--verbose|get-url)$/.test(word));
  if (!tellsAddresses && verb !== "config") return undefined;
  const listed = askGit({ folder, words: ["config", "--list", "-z"] })?.text.split("\0") ?? [];
  const isPrinted = (key: string): boolean =>
    verb === "remote" ? /^(?:remote|url)\./.test(key) : sections.includes(key.slice(0, key.indexOf(".")));
  const found = listed.find((setting) => PASSWORD.test(setting) && isPrinted(setting));
  return found === undefined
    ? undefined
    : { problem: `${found.slice(0, found.indexOf("\n"))} may hold a password; ask for it, or list names: git remote` };
};
