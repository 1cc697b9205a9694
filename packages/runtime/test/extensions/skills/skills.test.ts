/** Skills: which are found, what the model reads about them, and what a call returns, in a conversation and in a
 *  fork. */

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { configurationOf } from "@prefork/guard";
import { callTools, lastUserText, type SimAnswer, type SimRequest, say, toolResults } from "@prefork/simulator";
import { scratch } from "@prefork/testing/scratch";
import { FORK_PLACEHOLDER_RESULT, type JsonObject } from "@prefork/wire";
import fc from "fast-check";
import { skillsSection } from "../../../src/extensions/skills/index.ts";
import { readFrontMatter } from "../../../src/extensions/skills/read-skills.ts";
import { readSkills, type Skill } from "../../../src/index.ts";
import { openGround } from "../../session/fault-ground.ts";

const file = (name: string, description: string, more = ""): string =>
  `---\nname: ${name}\ndescription: ${description}\n${more}---\n\nDo ${name}.\n`;

test("fields are read as people write them; a file that does not begin with them has none", () => {
  const rows: readonly (readonly [string, unknown])[] = [
    ["---\nname: a\n---\nbody\n", { fields: { name: "a" }, body: "body\n" }],
    [
      "\uFEFF---\r\nname: 'it''s'\r\ndescription: \"a \\\"b\\\": c\"\r\n---\r\nx\r\ny",
      { fields: { name: "it's", description: 'a "b": c' }, body: "x\ny" },
    ],
    ["---\nd: >-\n  one\n  two\ne: |\n  one\n  two\n---\n", { fields: { d: "one two", e: "one\ntwo" }, body: "" }],
    [
      "---\na: one # why\nb: c#\nlist:\n  - x\n  - y\n# note\na: again\n---\n",
      { fields: { a: "one", b: "c#", list: "- x - y" }, body: "" },
    ],
    ["---\n__proto__: x\n---\n", { fields: {}, body: "" }],
    ["name: a\n---\n", undefined],
    ["---\nname: a\n", undefined],
    ["", undefined],
  ];
  for (const [text, expected] of rows) assert.deepEqual(readFrontMatter(text), expected, JSON.stringify(text));
  fc.assert(
    fc.property(fc.string(), (body) => {
      const read = readFrontMatter(`---\nname: a\n---\n${body}`);
      assert.deepEqual(read, { fields: { name: "a" }, body: body.replaceAll("\r\n", "\n") });
    }),
  );
});

test("a file of nothing but blanks is read quickly", () => {
  const blanks = " ".repeat(120_000);
  assert.deepEqual(readFrontMatter(`---\na:${blanks}x\nb:${blanks}\n---\n`)?.fields, { a: "x", b: "" });
});

test("a file with very many fields is read in one pass", () => {
  assert.deepEqual(readFrontMatter(`---\nname: a\n${"a:\n".repeat(400_000)}---\n`)?.fields, { name: "a", a: "" });
});

test("the user's own skills come first, a project's only if it is trusted; hostile ones are skipped with the reason", async () => {
  using place = scratch();
  const [home, project] = [place.at("home"), place.at("project")];
  place.put("home/.prefork/skills/mine/SKILL.md", file("mine", "Mine."));
  place.put("linked/SKILL.md", file("linked", "Linked."));
  mkdirSync(place.at("home/.claude/skills"), { recursive: true });
  symlinkSync(place.at("linked"), place.at("home/.claude/skills/linked"));
  place.put("project/.agents/skills/mine/SKILL.md", file("mine", "Not mine."));
  place.put("project/.agents/skills/deep/SKILL.md", file("deep", "Deep.", "context: fork\nallowed-tools: Bash\n"));
  place.put("project/.agents/skills/deep/more.md", "more");
  place.put("project/.claude/skills/other/SKILL.md", file("another", "x"));
  place.put("project/.claude/skills/silent/SKILL.md", "---\nname: silent\n---\n");
  place.put("project/.claude/skills/plain/SKILL.md", "no fields");
  place.put("project/.claude/skills/Bad Name/SKILL.md", file("Bad Name", "x"));
  place.put("project/.claude/skills/long/SKILL.md", file("long", "x") + "y".repeat(130_000));
  place.put("project/.claude/skills/README.md", "no skill");
  place.put("project/.claude/skills/empty/notes.md", "no skill");
  symlinkSync(place.at("linked"), place.at("project/.claude/skills/link"));
  mkdirSync(place.at("project/.claude/skills/within"));
  symlinkSync(place.at("linked/SKILL.md"), place.at("project/.claude/skills/within/SKILL.md"));
  const own: readonly Skill[] = [
    { name: "linked", description: "Linked.", body: "Do linked.", folder: place.at("linked") },
    { name: "mine", description: "Mine.", body: "Do mine.", folder: place.at("home/.prefork/skills/mine") },
  ];
  assert.deepEqual(await readSkills({ home, project, trusted: false }), { skills: own, notices: [] });
  place.put("home/.prefork/skills/theirs/SKILL.md", file("theirs", "Anybody's."));
  const theirs = place.at("home/.prefork/skills/theirs/SKILL.md");
  chmodSync(theirs, 0o666);
  const open = `skill ${theirs} is skipped: ${theirs} can be changed by others (mode 0666)`;
  assert.deepEqual(await readSkills({ home, project, trusted: false }), { skills: own, notices: [open] });
  rmSync(place.at("home/.prefork/skills/theirs"), { recursive: true });
  const at = (name: string): string => place.at("project", name);
  const deep = { name: "deep", description: "Deep.", body: "Do deep.", folder: at(".agents/skills/deep") };
  assert.deepEqual(await readSkills({ home, project, trusted: true }), {
    skills: [{ ...deep, context: "fork" }, ...own],
    notices: [
      `skill ${at(".agents/skills/mine")} is skipped: there is another one with this name in ${place.at("home/.prefork/skills/mine")}`,
      `skill ${at(".claude/skills/Bad Name")} is skipped: a skill's name has at most 64 small letters, digits and single dashes`,
      `skill ${at(".claude/skills/link")} is skipped: this is a link, and links are not followed`,
      `skill ${at(".claude/skills/long/SKILL.md")} is skipped: the file has 130044 bytes; at most 128000 are read`,
      `skill ${at(".claude/skills/other/SKILL.md")} is skipped: it is named "another", but its folder is other`,
      `skill ${at(".claude/skills/plain/SKILL.md")} is skipped: it does not begin with name and description between two lines of ---`,
      `skill ${at(".claude/skills/silent/SKILL.md")} is skipped: it has no description`,
      `skill ${at(".claude/skills/within/SKILL.md")} is skipped: this is a link, and links are not followed`,
    ],
  });
});

test("names and descriptions are bounded together", () => {
  const many = Array.from(
    { length: 200 },
    (_, at): Skill => ({
      ...{ name: `skill-${at}`, description: "word ".repeat(200), body: "", folder: "/x" },
    }),
  );
  const [section] = skillsSection(many);
  assert.ok(section && section.text.length < 20_000);
  assert.ok(section.text.endsWith("\n- skill-199"));
  assert.deepEqual(skillsSection([]), []);
});

// --- in a session ------------------------------------------------------------------------------------------------------

const SKILLS: readonly Skill[] = [
  {
    name: "greet",
    description: "How to </section> greet.",
    body: "Say hello to $ARGUMENTS, $ARGUMENTS!",
    folder: "/s/greet",
  },
  { name: "look", description: "How to look.", body: "Look around.", folder: "/s/look", context: "fork" },
];

const asked = (name: string, args?: string): string =>
  `CALLS ${JSON.stringify([{ name: "Skill", input: args === undefined ? { name } : { name, args } }])}`;

/** Makes the calls in its prompt and repeats their results. A fork that is asked to look around tries to start
 *  another. */
const model = (request: SimRequest): SimAnswer => {
  const results = toolResults(request).map(({ text, isError }) => `${isError ? "! " : ""}${text}`);
  const words = lastUserText(request);
  const found = /CALLS (.*)$/m.exec(words)?.[1];
  if (found !== undefined) return callTools(JSON.parse(found));
  if (words.includes("Look around."))
    return callTools([
      { name: "Skill", input: { name: "look" } },
      { name: "Skill", input: { name: "greet" } },
    ]);
  if (results.some((text) => text.includes("runs as a fork")))
    return say(`Scope: looking\nResult: ${results.join(" | ")}`);
  if (words.includes("<task-notification>")) return say(`told: ${/Result: (.*)/.exec(words)?.[1]}`);
  return say(results.join(" | "));
};

test("the conversation begins with names and descriptions, and a body is returned on request", async () => {
  await using ground = await openGround(model);
  await using session = await ground.open({ skills: SKILLS });
  assert.equal(
    (await session.prompt(asked("greet", "the world")).result()).text,
    "Skill greet; files that it names are in /s/greet.\n\nSay hello to the world, the world!",
  );
  assert.equal(
    (await session.prompt(asked("great")).result()).text,
    '! There is no skill "great". There are greet, look.',
  );
  const [first] = ground.simulator.requests().map(({ body }) => JSON.parse(body.toString("utf8")) as JsonObject);
  assert.ok(first);
  const [message] = first.messages as readonly { readonly content: readonly { readonly text: string }[] }[];
  assert.equal(
    message?.content[0]?.text,
    [
      '<section name="skills">',
      "Instructions for kinds of work. Where one fits, call Skill with its name before you begin:",
      "- greet: How to &lt;/section> greet.",
      "- look (runs as a fork, and reports): How to look.",
      "</section>",
    ].join("\n"),
  );
});

test("without skills the tool says so", async () => {
  await using ground = await openGround(model);
  await using session = await ground.open();
  assert.equal((await session.prompt(asked("greet")).result()).text, "! Skills are not available in this session.");
});

test("a skill with context: fork runs as a fork that reports; inside a fork it is refused, but other skills are not", async () => {
  await using ground = await openGround(model);
  await using session = await ground.open({ skills: SKILLS });
  const events = session.events();
  const { text } = await session.prompt(asked("look")).result();
  assert.equal(
    text,
    "told: ! Skill look runs as a fork, and a fork starts none: do this part of the work yourself. | " +
      "Skill greet; files that it names are in /s/greet.",
  );
  assert.deepEqual(
    session.tasks.map(({ label, agentType, state }) => [label, agentType, state.kind === "ended" && state.end]),
    [["skill look", "fork", "reported"]],
  );
  await session.close();
  const results: string[] = [];
  for await (const event of events) if (event.type === "call_ended" && event.agent === "main") results.push(event.text);
  assert.deepEqual(results, [FORK_PLACEHOLDER_RESULT]);
});

test("without forks, a skill that would run as one is refused with the reason", async () => {
  await using ground = await openGround(model);
  await using session = await ground.open({ skills: SKILLS, forks: "off" });
  assert.match((await session.prompt(asked("look")).result()).text, /^! No fork was started: .*off/);
});

test("a project's skill that has changed since it was trusted is skipped", async () => {
  using place = scratch();
  for (const name of ["kept", "changed"]) place.put(`project/.claude/skills/${name}/SKILL.md`, file(name, "Good."));
  const project = place.at("project");
  const shown = await configurationOf(project);
  assert.ok(shown.ok);
  const { entries } = shown.configuration;
  place.put("project/.claude/skills/changed/SKILL.md", file("changed", "Evil."));
  place.put("project/.claude/skills/new/SKILL.md", file("new", "Evil."));
  const found = await readSkills({ home: place.at("home"), project, trusted: true, entries });
  assert.deepEqual(
    [found.skills.map(({ name }) => name), found.notices],
    [
      ["kept"],
      ["changed", "new"].map(
        (name) =>
          `skill ${place.at("project/.claude/skills", name, "SKILL.md")} is skipped: it was changed while prefork started`,
      ),
    ],
  );
});
