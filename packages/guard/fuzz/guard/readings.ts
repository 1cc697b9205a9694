/** Does bash read an allowed text as we do? Every program is replaced by one that notes its words; they must be ours.
 *  Invariant: inside the walls, where no real program is found; only texts without folders and files of their own are
 *  compared, because those would depend on what is there.
 *  Elsewhere: the walls (sandbox.ts), what happens inside them (inside-bash.ts). */

import { WRAPPER } from "../../src/bash/classify.ts";
import { programs } from "../../src/bash/programs/index.ts";
import { readSteps, type SimpleCommand, type Step } from "../../src/bash/syntax.ts";
import { insideWalls, type SampleReport } from "./sandbox.ts";

const isComparable = ({ words, redirects }: SimpleCommand): boolean =>
  !["cd", "type", "command", ":"].includes(words[0]?.text ?? "") &&
  !words.some(({ status, pattern, text }) => status || (pattern && text.startsWith("/"))) &&
  !/\//.test(words[0]?.text ?? "") &&
  redirects.every(({ kind }) => kind !== "input");

/** What runs when every program succeeds. */
const executed = (steps: readonly Step[]): readonly SimpleCommand[] | undefined => {
  const ran: SimpleCommand[] = [];
  let succeeded = true;
  for (const { after, negated, commands, group } of steps) {
    if (group) return undefined;
    if (!commands.every(isComparable)) return undefined;
    if (after !== "always" && (after === "success") !== succeeded) continue;
    ran.push(...commands);
    succeeded = !negated;
  }
  return ran;
};

/** The words as a program gets them where no file matches any pattern. */
const wordsOf = ({ words }: SimpleCommand): string =>
  words
    .map(({ text, pattern, home }) => {
      const plain = pattern ? text.replace(/\\(.)/gsu, "$1") : text;
      return home ? `/tmp/place${plain.slice(1)}` : plain;
    })
    .join("\u0001");

export const differentReadings = async (texts: readonly string[]): Promise<SampleReport> => {
  const expected = new Map<string, readonly string[]>();
  for (const text of texts) {
    const ran = text.includes("[[") ? undefined : executed(readSteps(text)); // no program runs for `[[ ]]`
    if (ran) expected.set(text, ran.map(wordsOf).sort());
  }
  const input = JSON.stringify({ names: [...programs.keys(), WRAPPER], texts: [...expected.keys()] });
  const noted = JSON.parse(
    await insideWalls({ script: "inside-bash.ts", input, sockets: "free" }),
  ) as readonly (readonly string[])[];
  const findings = [...expected].flatMap(([text, ours], index) => {
    const theirs = [...(noted[index] ?? [])].sort();
    return JSON.stringify(ours) === JSON.stringify(theirs)
      ? []
      : [
          `bash reads it otherwise: ${JSON.stringify(text)}: we ${JSON.stringify(ours)}, bash ${JSON.stringify(theirs)}`,
        ];
  });
  return { findings, summary: `${expected.size} allowed texts read by bash too, ${findings.length} of them otherwise` };
};
