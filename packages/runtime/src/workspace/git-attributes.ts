/** Files that may hold keys, as attributes that keep git from showing what is in them: a change to one of them is told as
 *  a change to a binary file, in every command that compares, logs or searches.
 *  Invariant: a file of its own for each run, which nobody can find by name.
 *  Elsewhere: a repository's own attributes (attribute-files.ts), options that would show them all the same
 *  (../guard/bash). */

import { randomBytes } from "node:crypto";
import { closeSync, openSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { secretPatterns } from "../paths/index.ts";
import { askGit } from "./ask-git.ts";
import { type ShownLine, shownLines } from "./attribute-files.ts";
import { type Checkout, plainCheckout } from "./plain-checkout.ts";
import { reached } from "./reached.ts";
import { anyCase } from "./walk-limits.ts";

const quoted = (pattern: string): string => `"${pattern}"`;

/** Later lines count over earlier ones. */
const ATTRIBUTES = [
  ...secretPatterns.filesUnlessSource.map((name) => `${quoted(anyCase(name))} -diff`),
  ...secretPatterns.placesUnlessSource.map((name) => `${quoted(anyCase(`**/${name}`))} -diff`),
  ...secretPatterns.sources.map((name) => `${quoted(anyCase(name))} !diff`),
  ...secretPatterns.filesAlways.map((name) => `${quoted(anyCase(name))} -diff`),
  ...secretPatterns.templates.map((name) => `${quoted(anyCase(name))} !diff`),
  ...secretPatterns.noTemplates.map((name) => `${quoted(anyCase(name))} -diff`),
  ...secretPatterns.folders.flatMap((name) =>
    // A file of a single name is hit above; patterns of paths take git long.
    [...(name.includes("/") ? [`**/${name}`] : []), `**/${name}/**`].map((path) => `${quoted(anyCase(path))} -diff`),
  ),
  ...secretPatterns.places.map((name) => `${quoted(`**/${anyCase(name)}`)} -diff`),
  `${quoted(anyCase("*.pub"))} !diff`,
  "",
].join("\n");

/** A descriptor of a file without a name: nothing is left of it, however the run ends. The caller closes it. */
export const openAttributes = (withheld: readonly string[] = []): number => {
  const { path, descriptor } = openSomewhere([tmpdir(), "/tmp", "/var/tmp", "/dev/shm"]);
  try {
    unlinkSync(path);
    writeSync(
      descriptor,
      [ATTRIBUTES, ...withheld.map((pattern) => `${quoted(anyCase(pattern.toLowerCase()))} -diff\n`)].join(""),
      0,
    );
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
};

/** TMPDIR may name a folder that is not there; git must be able to read all the same. */
const openSomewhere = ([folder = "", ...others]: readonly string[]): { path: string; descriptor: number } => {
  const path = join(folder, `prefork-${randomBytes(12).toString("base64url")}`);
  try {
    return { path, descriptor: openSync(path, "wx+", 0o600) };
  } catch (error) {
    if (others.length === 0) throw error;
    return openSomewhere(others);
  }
};

/** Lines of a repository's own attributes, which count over ours, that have git show files. */
export const shownByAttributes = (folder: string): readonly ShownLine[] => {
  const plain = plainCheckout(folder);
  const checkout = plain ?? askForCheckout(folder);
  if (checkout.git === "") return []; // no repository: git says so itself
  return shownLines(checkout, plain !== undefined);
};

/** Empty names where there is no repository; no `top` where there are no files. */
const askForCheckout = (folder: string): Checkout => {
  const asked = askGit({ folder, words: ["rev-parse", "--git-common-dir", "--show-toplevel"] });
  const [git = "", top = ""] = asked?.text.split("\n") ?? [];
  return { top, git: git === "" ? "" : reached(folder, git) };
};
