/** The table of programs that can be read-only, by exact name. */

import { awkPrograms } from "./awk.ts";
import { binaryPrograms } from "./binaries.ts";
import { filePrograms } from "./files.ts";
import { findPrograms } from "./find.ts";
import { gitPrograms } from "./git.ts";
import { hintedPrograms, versionedPrograms } from "./hints.ts";
import { jqPrograms } from "./jq.ts";
import { packagePrograms } from "./packages.ts";
import type { Program } from "./program.ts";
import { psPrograms } from "./ps.ts";
import { sedPrograms } from "./sed.ts";
import { lookupPrograms, systemPrograms } from "./system.ts";
import { textPrograms } from "./text.ts";
import { xargsPrograms } from "./xargs.ts";

export const programs: ReadonlyMap<string, Program> = new Map(
  Object.entries({
    ...hintedPrograms,
    ...versionedPrograms,
    ...packagePrograms,
    ...binaryPrograms,
    ...systemPrograms,
    ...psPrograms,
    ...textPrograms,
    ...filePrograms,
    ...findPrograms,
    ...sedPrograms,
    ...awkPrograms,
    ...jqPrograms,
    ...gitPrograms,
    ...lookupPrograms,
    ...xargsPrograms,
  }),
);

export { type GitInvocation, gitFolders, readGitInvocation } from "./git.ts";
export type { Program, RuntimeNames } from "./program.ts";
export { repetitionProblem } from "./program.ts";
export { PROGRAM_ALIASES } from "./system.ts";
