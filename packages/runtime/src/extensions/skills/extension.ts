/** Skills as an extension of a session. A fork has the same, but for those that would start one. */

import type { Extension, ServingExtension } from "../extension.ts";
import type { Skill } from "./read-skills.ts";
import { skillCall, skillsSection, startsFork } from "./words.ts";

export const skills = (list: readonly Skill[]): Extension => ({
  name: "skills",
  sections: skillsSection(list),
  open: async (): Promise<ServingExtension> => ({
    delegation: (fork) => ({ skill: skillCall(list, fork) }),
    startsFork: startsFork(list),
  }),
});
