/** Files that may hold keys, as attributes that keep git from showing what is in them: a change to one of them is told as
 *  a change to a binary file, in every command that compares, logs or searches.
 *  Invariant: a file of its own for each run, which nobody can find by name.
 *  Elsewhere: options that would show them all the same (../guard/bash). */

import { randomBytes } from "node:crypto";
import { closeSync, openSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { secretPatterns } from "../paths/index.ts";
import { anyCase } from "./walk-limits.ts";

const quoted = (pattern: string): string => `"${pattern}"`;

/** Later lines count over earlier ones. */
const ATTRIBUTES = [
  ...secretPatterns.files.map((name) => `${quoted(anyCase(name))} -diff`),
  ...secretPatterns.folders.map((name) => `${quoted(`**/${anyCase(name)}/**`)} -diff`),
  ...secretPatterns.places.map((name) => `${quoted(`**/${anyCase(name)}`)} -diff`),
  ...secretPatterns.templates.map((name) => `${quoted(anyCase(name))} !diff`),
  "",
].join("\n");

/** A descriptor of a file without a name: nothing is left of it, however the run ends. The caller closes it. */
export const openAttributes = (): number => {
  const { path, descriptor } = openSomewhere([tmpdir(), "/tmp", "/var/tmp", "/dev/shm"]);
  try {
    unlinkSync(path);
    writeSync(descriptor, ATTRIBUTES, 0);
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
