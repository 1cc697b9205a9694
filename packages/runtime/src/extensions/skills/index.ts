/** Skills: folders with a SKILL.md, named to the model and read when it asks. */

export { type FoundSkills, readSkills, type Skill, type SkillPlaces } from "./read-skills.ts";
export { skills, skillsSection } from "./words.ts";
