/** The table of programs that can be read-only, by exact name. */

import { awkPrograms } from "./awk.ts";
import { filePrograms } from "./files.ts";
import { findPrograms } from "./find.ts";
import { gitPrograms } from "./git.ts";
import type { Program } from "./program.ts";
import { sedPrograms } from "./sed.ts";
import { systemPrograms } from "./system.ts";
import { textPrograms } from "./text.ts";
import { wrapperPrograms } from "./wrappers.ts";

export const programs: ReadonlyMap<string, Program> = new Map(
  Object.entries({
    ...systemPrograms,
    ...textPrograms,
    ...filePrograms,
    ...findPrograms,
    ...sedPrograms,
    ...awkPrograms,
    ...gitPrograms,
    ...wrapperPrograms,
  }),
);

export { gitFolders } from "./git.ts";
export type { InnerCommand, Program } from "./program.ts";
export { STANDS_FOR } from "./wrappers.ts";
