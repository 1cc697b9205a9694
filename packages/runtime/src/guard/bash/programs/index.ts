/** The table of programs that can be read-only, by exact name. */

import { awkPrograms } from "./awk.ts";
import { binaryPrograms } from "./binaries.ts";
import { filePrograms } from "./files.ts";
import { findPrograms } from "./find.ts";
import { gitPrograms } from "./git.ts";
import { hintedPrograms } from "./hints.ts";
import { jqPrograms } from "./jq.ts";
import { packagePrograms } from "./packages.ts";
import type { Program } from "./program.ts";
import { sedPrograms } from "./sed.ts";
import { systemPrograms } from "./system.ts";
import { textPrograms } from "./text.ts";
import { versionPrograms } from "./versions.ts";
import { wrapperPrograms } from "./wrappers.ts";

export const programs: ReadonlyMap<string, Program> = new Map(
  Object.entries({
    ...hintedPrograms,
    ...versionPrograms,
    ...packagePrograms,
    ...binaryPrograms,
    ...systemPrograms,
    ...textPrograms,
    ...filePrograms,
    ...findPrograms,
    ...sedPrograms,
    ...awkPrograms,
    ...jqPrograms,
    ...gitPrograms,
    ...wrapperPrograms,
  }),
);

export { gitFolders } from "./git.ts";
export type { InnerCommand, Program } from "./program.ts";
export { STANDS_FOR } from "./wrappers.ts";
