/** What every process that a test starts needs of our own environment, however clean the rest is: where sources stand
 *  compiled, and that it does without bubblewrap. Without the first each start of the command line compiles all of them
 *  again, which takes most of its time. */

import { hidingBwrap } from "./optional.ts";

const { NODE_COMPILE_CACHE: folder } = process.env;

export const compiled: Readonly<Record<string, string>> = {
  ...hidingBwrap,
  ...(folder === undefined ? {} : { NODE_COMPILE_CACHE: folder }),
};
