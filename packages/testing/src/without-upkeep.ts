/** Environment variables for a git that builds a test repository. Without them every commit starts two more processes,
 *  which check whether the repository should be packed and may still be running when the test has ended. */

export const NO_GIT_MAINTENANCE = {
  GIT_CONFIG_COUNT: "2",
  GIT_CONFIG_KEY_0: "gc.auto",
  GIT_CONFIG_VALUE_0: "0",
  GIT_CONFIG_KEY_1: "maintenance.auto",
  GIT_CONFIG_VALUE_1: "false",
};
