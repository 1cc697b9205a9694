/** A home folder in which `prefork tour` runs, whatever else is set there. */

import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Ground, openGround, type Started } from "../print/ground.ts";

export type TourGround = Ground & {
  /** The parent of temporary folders; it contains nothing else. */
  readonly temporary: string;
  readonly tour: (...flags: readonly string[]) => Started;
  readonly left: () => readonly string[];
};

/** With a key, forks switched off, and a git that signs and runs hooks: the tour ignores all of it. */
export const openTourGround = async (): Promise<TourGround> => {
  const ground = await openGround();
  const temporary = join(ground.home, "temporary");
  mkdirSync(temporary);
  ground.put("AGENTS.md", "conventions of somebody else\n");
  const gitConfig = ground.put(
    "gitconfig",
    "[commit]\n\tgpgSign = true\n[core]\n\thooksPath = /nowhere\n[user]\n\tname = U\n",
  );
  const env = { TMPDIR: temporary, PREFORK_FORK_SUBAGENT: "0", GIT_CONFIG_GLOBAL: gitConfig, GIT_DIR: "/nowhere" };
  return {
    ...ground,
    temporary,
    tour: (...flags) => ground.start(["tour", ...flags], { env }),
    left: () => readdirSync(temporary),
  };
};
