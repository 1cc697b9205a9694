/** Skills: folders with a SKILL.md, named to the model and read when it asks. */

export { skills } from "./extension.ts";
export { type FoundSkills, readSkills, type Skill, type SkillPlaces } from "./read-skills.ts";
export { skillsSection } from "./words.ts";
