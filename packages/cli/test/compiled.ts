/** What every process that a test starts needs of our own environment, however clean the rest is: where sources stand
 *  compiled. Without it each start of the command line compiles all of them again, which takes most of its time. */

const { NODE_COMPILE_CACHE: folder } = process.env;

export const compiled: Readonly<Record<string, string>> = folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
