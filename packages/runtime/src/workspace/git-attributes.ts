/** Files that may hold keys, as attributes that keep git from showing what is in them: a change to one of them is told as
 *  a change to a binary file, in every command that compares, logs or searches.
 *  Invariant: a file of its own for each run, which nobody can find by name.
 *  Elsewhere: options that would show them all the same (../guard/bash). */

import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, openSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isSecret, secretPatterns, secretSamples } from "../paths/index.ts";
import { askGit } from "./ask-git.ts";
import { cleanEnvironment } from "./environment.ts";
import { type Checkout, indexMayKeep, plainCheckout } from "./plain-checkout.ts";
import { type PlainFile, readPlainFile } from "./plain-file.ts";
import { findProgram } from "./programs.ts";
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
      [ATTRIBUTES, ...withheld.map((pattern) => `${quoted(anyCase(pattern))} -diff\n`)].join(""),
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

/** Names that a pattern of a repository may mean, also where no such file is kept now. */
const SAMPLES: readonly string[] = [
  ...[".env", ".env.local", ".env.production", "id_rsa", "server.pem", "server.key", "credentials.json", ".npmrc"],
  ...secretSamples,
];

const MOST_FOLDERS = 50;

/** A line by which files are shown, or a name for such lines. */
const SHOWS = /(?:^|\s)!?diff(?=[=\s]|$)|^[ \t\r\v\f]*\[attr\]/m;

/** Do the repository's attributes speak of showing at all? Few do, and asking for every name takes long. */
export const mayShow = (folder: string): boolean => {
  const plain = plainCheckout(folder);
  const { top, git } = plain ?? askForCheckout(folder);
  if (git === "") return false; // no repository: git says so itself
  if (shows(textOf(readAttributes(join(git, "info/attributes"))))) return true;
  if (top === "") return false;
  if (shows(textOf(readAttributes(join(top, ".gitattributes"))))) return true;
  if (plain !== undefined && !indexMayKeep(plain, ".gitattributes")) return false;
  const kept = askGit({ folder: top, words: ["ls-files", "-z", "--", ":(glob)**/.gitattributes"] });
  const files = new Set(kept?.text.split("\0").filter((name) => name !== ""));
  if (kept?.failed !== false || files.size > MOST_FOLDERS) return true;
  return [...files].some((name) => shows(keptText(top, name)));
};

/** Empty names where there is no repository; no `top` where there are no files. */
const askForCheckout = (folder: string): Checkout => {
  const asked = askGit({ folder, words: ["rev-parse", "--git-common-dir", "--show-toplevel"] });
  const [git = "", top = ""] = asked?.text.split("\n") ?? [];
  return { top, git: git === "" ? "" : reached(folder, git) };
};

/** More than anybody writes by hand: git is asked what it makes of it. */
const MOST_BYTES = 1_000_000;

const shows = (text: string | undefined): boolean => text === undefined || SHOWS.test(text);

/** Undefined for what cannot be read whole. */
const textOf = (file: PlainFile): string | undefined => {
  if (file === "unreadable") return undefined;
  return file === "missing" ? "" : file.toString();
};

const readAttributes = (path: string): PlainFile => readPlainFile(path, MOST_BYTES);

/** As git finds a file that it keeps: where it is not there, in the index. */
const keptText = (top: string, name: string): string | undefined => {
  const file = readAttributes(join(top, name));
  if (file !== "missing") return textOf(file);
  const asked = askGit({ folder: top, words: ["cat-file", "blob", `:${name}`] });
  return asked?.failed === false ? asked.text : undefined;
};

/** A file that may hold keys and that a repository's own attributes, which count over ours, have git show. */
export const shownByAttributes = (folder: string): string | undefined => {
  const git = findProgram("git");
  if (git === undefined || !mayShow(folder)) return undefined;
  const limits = { cwd: folder, encoding: "utf8", timeout: 5_000, maxBuffer: 16_000_000 } as const;
  const kept = spawnSync(git, ["ls-files", "-z", "--", ":(top)"], { ...limits, env: cleanEnvironment() });
  if (kept.error !== undefined) return ".env"; // too many files to be looked through
  if (kept.status !== 0) return undefined; // no repository: git says so itself
  const found = kept.stdout.split("\0").filter((name) => name !== "");
  // Attributes count from the folder that they stand in.
  const own = found
    .filter((name) => name.endsWith(".gitattributes"))
    .map((name) => name.slice(0, -".gitattributes".length));
  const folders = [...new Set(["", "config/", ...own])].slice(0, MOST_FOLDERS);
  const samples = folders.flatMap((before) => SAMPLES.map((name) => before + name));
  const names = [...samples, ...found.filter((name) => isSecret(name))];
  let attributes: number;
  try {
    attributes = openAttributes();
  } catch {
    return undefined; // the command itself needs it too, and is not started
  }
  try {
    const asked = spawnSync(git, ["check-attr", "-z", "--stdin", "diff"], {
      ...{ ...limits, input: `${names.join("\0")}\0`, stdio: ["pipe", "pipe", "pipe", attributes] },
      env: cleanEnvironment(undefined, "/dev/fd/3"),
    });
    if (asked.status !== 0) return names[0];
    const fields = asked.stdout.split("\0");
    return names.find((_, at) => fields[at * 3 + 2] !== "unset");
  } finally {
    closeSync(attributes);
  }
};
