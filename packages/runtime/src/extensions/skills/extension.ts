/** How does the model learn about skills, and what does it get when it calls for one?
 *  Invariant: the conversation only contains names and descriptions, bounded. A body is returned when it is requested.
 *  A skill that runs as a fork is refused where forks are not possible, and never silently run another way.
 *  Elsewhere: reading skills (read-skills.ts), the tool (../../tools), starting a fork (../../children, through the port). */

import type { ToolUseBlock } from "@prefork/wire";
import type { Section } from "../../context/index.ts";
import type { Delegated, DelegatedCall } from "../../ports.ts";
import type { Extension, ServingExtension } from "../extension.ts";
import type { Skill } from "./read-skills.ts";

const ABOUT = "Instructions for kinds of work. Where one fits, call Skill with its name before you begin:";
const ALL_BYTES = 16_000;

/** Skills as an extension of a session. A fork has the same skills, except those that would start a fork. */
export const skills = (list: readonly Skill[]): Extension => ({
  name: "skills",
  sections: skillsSection(list),
  open: async (): Promise<ServingExtension> => ({
    delegation: (fork) => ({ skill: skillCall(list, fork) }),
    startsFork: startsFork(list),
  }),
});

/** Empty if there are none. */
export const skillsSection = (skills: readonly Skill[]): readonly Section[] => {
  if (skills.length === 0) return [];
  const lines: string[] = [ABOUT];
  let room = ALL_BYTES;
  for (const { name, description, context } of skills) {
    const line = `- ${name}${context === "fork" ? " (runs as a fork, and reports)" : ""}: ${description}`;
    room -= Buffer.byteLength(line);
    lines.push(room >= 0 ? line : `- ${name}`);
  }
  return [{ name: "skills", text: lines.join("\n") }];
};

/** Handles calls of the Skill tool. `fork` starts a fork with a skill's instructions; absent if forks are not
 *  possible. */
const skillCall =
  (skills: readonly Skill[], fork: DelegatedCall | undefined): DelegatedCall =>
  async ({ name, args }, caller) => {
    const skill = skills.find((one) => one.name === name);
    if (!skill) return refused(`There is no skill ${JSON.stringify(name)}. ${namesOf(skills)}`);
    const text = skillText(skill, typeof args === "string" ? args : "");
    if (skill.context !== "fork") return { text };
    if (!fork)
      return refused(`Skill ${skill.name} runs as a fork, and a fork starts none: do this part of the work yourself.`);
    return fork({ description: `skill ${skill.name}`, prompt: text, subagent_type: "fork" }, caller);
  };

/** Does this call of the Skill tool start a fork? */
const startsFork =
  (skills: readonly Skill[]) =>
  ({ name, input }: Pick<ToolUseBlock, "name" | "input">): boolean => {
    if (name !== "Skill") return false;
    try {
      const { name: skillName } = JSON.parse(input) as { readonly name?: unknown };
      return skills.some((skill) => skill.name === skillName && skill.context === "fork");
    } catch {
      return false; // such a call does not run at all
    }
  };

const refused = (text: string): Delegated => ({ text, isError: true });

const namesOf = (skills: readonly Skill[]): string =>
  skills.length === 0 ? "There are none here." : `There are ${skills.map(({ name }) => name).join(", ")}.`;

const PLACE = "$ARGUMENTS";

const skillText = ({ name, folder, body }: Skill, args: string): string => {
  const filled = body.replaceAll(PLACE, () => args);
  const rest = args === "" || body.includes(PLACE) ? "" : `\n\nArguments: ${args}`;
  return `Skill ${name}; files that it names are in ${folder}.\n\n${filled}${rest}`;
};
