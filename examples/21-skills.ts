/** Skills: folders with a SKILL.md. The conversation starts with their names; a body is loaded when it is called, and a
 *  skill with `context: fork` runs as a fork that reports. */

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, createSession, readSkills } from "@prefork/runtime";
import { callTools, lastUserText, type SimRequest, say, startSimulator, toolResults } from "@prefork/simulator";

const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
const put = async (name: string, more: string, body: string): Promise<void> => {
  const path = join(folder, "home/.prefork/skills", name);
  await mkdir(path, { recursive: true });
  await writeFile(join(path, "SKILL.md"), `---\nname: ${name}\ndescription: How to ${name}.\n${more}---\n${body}\n`);
};
await put("release", "", "Write the notes of $ARGUMENTS, then the tag.");
await put("review", "context: fork\n", "Read what has changed, and report.");

// The scripted model calls for both skills; the fork tries to start another one, and then does the work itself.
const call = (name: string, args?: string) => callTools([{ name: "Skill", input: args ? { name, args } : { name } }]);
const script = (request: SimRequest) => {
  const [result] = toolResults(request);
  const words = lastUserText(request);
  const isFork = JSON.stringify(request.body.messages).includes("fork-directive");
  if (isFork) return result?.isError ? say(`Scope: review\nResult: ${result.text}`) : call("review");
  if (words.includes("<task-notification>")) return say(`${/Result: ([^<]*)/.exec(words)?.[1]}`);
  if (words.includes("make a release")) return call("release", "1.2");
  if (words.includes("look at it")) return call("review");
  return say(result?.text ?? "");
};

await using simulator = await startSimulator({ script, keepBodies: true });
{
  // #region skills
  const home = join(folder, "home");
  const { skills, notices } = await readSkills({ home, project: folder, trusted: false }); // the user's own alone
  await using session = await createSession({
    engine: anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } }),
    cwd: folder,
    state: join(folder, "state"),
    skills,
    permissions: { mode: "default" }, // stated, so forks may run with nobody to ask
  });
  // #endregion
  assert.deepEqual([skills.map(({ name }) => name), notices], [["release", "review"], []]);

  const released = await session.prompt("make a release").result();
  console.log(released.text);
  assert.match(released.text, /Write the notes of 1\.2, then the tag\.$/);
  const [before, after] = simulator.requests().map(({ body }) => body.toString().includes("Write the notes"));
  assert.deepEqual([before, after], [false, true], "the body came with the call's result");

  const reviewed = await session.prompt("look at it").result();
  console.log(reviewed.text);
  assert.match(
    reviewed.text,
    /^Skill review runs as a fork, and a fork starts none: do this part of the work yourself\.$/,
  );
  assert.deepEqual(
    session.tasks.map(({ label, state }) => [label, state.kind === "ended" && state.end]),
    [["skill review", "reported"]],
  );
}
await rm(folder, { recursive: true });
