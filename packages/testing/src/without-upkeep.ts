/** For the environment of a git that builds a repository: without it every commit starts two more processes, which look
 *  whether the repository should be packed, and may still be there when the test has ended. */

export const WITHOUT_UPKEEP = {
  GIT_CONFIG_COUNT: "2",
  GIT_CONFIG_KEY_0: "gc.auto",
  GIT_CONFIG_VALUE_0: "0",
  GIT_CONFIG_KEY_1: "maintenance.auto",
  GIT_CONFIG_VALUE_1: "false",
};
