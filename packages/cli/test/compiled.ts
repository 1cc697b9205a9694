/** The variables that every process of a test needs, however clean its environment is: the folder of compiled sources,
 *  and that bubblewrap is hidden. Without the first, each start of the command line compiles all sources again, which
 *  takes most of its time. */

import { hidingBwrap } from "./optional.ts";

const { NODE_COMPILE_CACHE: folder } = process.env;

export const compiled: Readonly<Record<string, string>> = {
  ...hidingBwrap,
  ...(folder === undefined ? {} : { NODE_COMPILE_CACHE: folder }),
};
