/** Skills: folders with a SKILL.md, announced to the model and read on request. */

export { skills, skillsSection } from "./extension.ts";
export { type FoundSkills, readSkills, type Skill, type SkillSources } from "./read-skills.ts";
