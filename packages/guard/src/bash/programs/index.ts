/** The table of programs that can be read-only, by exact name. */

import { awkPrograms } from "./awk.ts";
import { binaryPrograms } from "./binaries.ts";
import { filePrograms } from "./files.ts";
import { findPrograms } from "./find.ts";
import { gitPrograms } from "./git.ts";
import { hintedPrograms, versionPrograms } from "./hints.ts";
import { jqPrograms } from "./jq.ts";
import { lookupPrograms } from "./lookups.ts";
import { packagePrograms } from "./packages.ts";
import type { Program } from "./program.ts";
import { psPrograms } from "./ps.ts";
import { sedPrograms } from "./sed.ts";
import { systemPrograms } from "./system.ts";
import { textPrograms } from "./text.ts";
import { xargsPrograms } from "./xargs.ts";

export const programs: ReadonlyMap<string, Program> = new Map(
  Object.entries({
    ...hintedPrograms,
    ...versionPrograms,
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

export { gitFolders } from "./git.ts";
export { type GitAsked, readGitAsked } from "./git-asked.ts";
export { STANDS_FOR } from "./lookups.ts";
export type { LateNames, Program } from "./program.ts";
export { repeatsProblem } from "./program.ts";
