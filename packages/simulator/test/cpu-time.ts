/** How much of the processor did something take? Unlike the time that passes, that does not depend on what else runs. */

/** Seconds of CPU of this process while `work` went on. */
export const cpuSecondsOf = async (work: () => Promise<void>): Promise<number> => {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
};
