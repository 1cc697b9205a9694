/** Skill: instructions that somebody wrote down for a kind of work, read when they are needed.
 *  Invariant: one constant tool, declared in every session whether it has skills or not: the list of tools is then the
 *  same in every folder, and skills that come later need no other list. Which there are is said in the conversation.
 *  Elsewhere: the skills (../ports.ts: Delegation), what is said of them (../extensions/skills). */

import * as z from "zod";
import { passOn } from "./delegated.ts";
import { defineTool } from "./tool.ts";

const input = z.strictObject({
  name: z.string().min(1),
  args: z.string().optional().describe("What to apply it to, in words"),
});

export const skillTool = defineTool({
  name: "Skill",
  description:
    "Gives the instructions of a skill that the conversation lists. Call it before work that a skill is for, then do " +
    "what it says.",
  input,
  readOnly: false,
  touches: () => ({}),
  run: (args, context) => passOn({ call: context.delegation.skill, what: "Skills are" }, args, context),
});
