/** Inside the walls: runs each allowed command as the agent would, and looks at the tree after each.
 *  Invariant: shows first that it would notice a write, a socket and a leak of keys. */

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CommandPlan, classify, type PlanCommand, type PlanStep } from "../../src/rules/index.ts";
import { planHazard, runPlan } from "../../src/run/index.ts";

const PLACE = "/tmp/place/project";
const WATCHED = "/tmp";
const KILLED_BY_FILTER = 128 + 31;

/** Stands in a file of keys and in the environment of another program, and must not come out anywhere. */
const CANARY = "canary-6f1d9";

/** Names that would act if somebody took them for a program, an option or two names. A mark would be a new file. */
const HOSTILE_NAMES: readonly string[] = [
  ...["-i", "-oout", "--pre=touch", "--output=mark", "-exec", "-f", "-e", "--files0-from=.env", "@list", "+1f", "FS=x"],
  ...["1e touch mark", "w mark", "s", "1w mark", "p;e touch mark", "touch mark", "x e touch mark", "e"],
  ...['{system("touch mark")}', 'x";system("touch mark");"', '" | "touch mark"', 'BEGIN{print > "mark"}'],
  ...[
    "a' 'b.c",
    'a" "b',
    "back\\slash",
    " blank ",
    "tab\tname",
    "two\nlines",
    "$(touch mark)",
    "`touch mark`",
    "; touch mark",
  ],
  ...[
    "env",
    "$ENV",
    "{}",
    "%",
    "@",
    "%n",
    "%s%n",
    "(.env)",
    "input",
    "é",
    "*",
    "?",
    "[a]",
    "~",
    "#x",
    "&",
    "|",
    ">mark",
  ],
];

const git = (...words: readonly string[]): void => {
  const set = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
  spawnSync("git", [...set, ...words], { cwd: PLACE });
};

const furnish = (): void => {
  rmSync(PLACE, { recursive: true, force: true });
  mkdirSync(join(PLACE, "sub"), { recursive: true });
  mkdirSync(join(PLACE, "src"));
  for (const name of [
    "a.txt",
    "b.txt",
    "sub/c.txt",
    "src/main.ts",
    "README.md",
    "package.json",
    "list",
    "x",
    "f",
    "out",
  ])
    writeFileSync(join(PLACE, name), `text of ${name}\n{"a":[1,2]}\n`);
  git("init", "-q");
  git("add", ".");
  git("commit", "-q", "-m", "one");
  git("tag", "v1");
  mkdirSync(join(PLACE, "names"));
  for (const name of HOSTILE_NAMES) {
    writeFileSync(join(PLACE, "names", name), "x\n");
    // At the top they come without a folder before them.
    if (!["@list", "{}", "%", "@"].includes(name)) writeFileSync(join(PLACE, name), "x\n");
  }
  writeFileSync(join(PLACE, ".env"), `KEY=${CANARY}\n`);
  writeFileSync(join(PLACE, "list"), "-i\na.txt\n.env\n");
  writeFileSync(join(PLACE, "a.json"), '{"a":[1,2]}\n');
  for (const [program, name] of [
    ["xz", "f.xz"],
    ["gzip", "f.gz"],
    ["bzip2", "f.bz2"],
  ] as const)
    writeFileSync(join(PLACE, name), spawnSync(program, ["-c"], { input: "packed\n" }).stdout ?? "");
  spawnSync("tar", ["-cf", "a.tar", "x"], { cwd: PLACE });
  spawnSync("ar", ["q", "a.a", "x"], { cwd: PLACE });
  writeFileSync(join(PLACE, "a.txt"), "changed\n");
};

const describe = (path: string): string => {
  const stats = lstatSync(path);
  const what = stats.isSymbolicLink()
    ? readlinkSync(path)
    : stats.isFile()
      ? readFileSync(path).toString("base64")
      : "";
  return `${path}\0${stats.mode}\0${stats.isDirectory() ? "" : stats.mtimeMs}\0${what}`;
};

const picture = (): string => {
  const hash = createHash("sha256");
  for (const name of readdirSync(WATCHED, { recursive: true, encoding: "utf8" }).sort())
    hash.update(describe(join(WATCHED, name)));
  return hash.digest("hex");
};

const onlyCommand = (command: PlanCommand): CommandPlan => ({
  steps: [{ after: "always", negated: false, run: { kind: "pipe", commands: [command] } }],
  gitFolders: [],
});

const commandsOf = (steps: readonly PlanStep[]): readonly PlanCommand[] =>
  steps.flatMap(({ run }) => (run.kind === "group" ? commandsOf(run.steps) : run.kind === "pipe" ? run.commands : []));

const run = (plan: CommandPlan) => runPlan(plan, { cwd: PLACE, home: "/tmp/place", timeoutMs: 1_500 });

const known = (program: string, ...args: readonly string[]): CommandPlan =>
  onlyCommand({ program, args: args.map((text) => ({ text })), redirects: [] });

/** A net without holes: a write, a socket and a leak are noticed. */
const provesItself = async (): Promise<readonly string[]> => {
  const before = picture();
  await run(known("touch", "new"));
  const writes = picture() === before ? ["a write is not noticed"] : [];
  rmSync(join(PLACE, "new"), { force: true });
  const script = "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM)";
  const { exitCode } = await run(known("python3", "-c", script));
  // Past the runner, which would refuse the first: both are there to be shown.
  const shown = [["cat", ".env"] as const, ["ps", "axeww"] as const].map(
    ([program, word]) => spawnSync(program, [word], { cwd: PLACE, encoding: "utf8" }).stdout ?? "",
  );
  const leaks = shown.some((text) => !text.includes(CANARY)) ? ["a leak is not noticed"] : [];
  return [
    ...writes,
    ...leaks,
    ...(exitCode === KILLED_BY_FILTER || exitCode === 127 ? [] : [`a socket is not noticed: ${exitCode}`]),
  ];
};

const main = async (): Promise<void> => {
  const commands = JSON.parse(readFileSync(0, "utf8")) as readonly string[];
  furnish();
  const neighbour = spawn("sleep", ["1000"], { env: { SECRET: CANARY }, stdio: "ignore" });
  const findings: string[] = [...(await provesItself())];
  let ran = 0;
  let before = picture();
  for (const text of commands) {
    const judged = classify(text);
    if (judged.verdict !== "read-only" || planHazard(judged.plan, { cwd: PLACE })) continue;
    ran += 1;
    const { stdout, stderr } = await run(judged.plan);
    if ((stdout + stderr).includes(CANARY)) findings.push(`showed keys: ${JSON.stringify(text)}`);
    // In a pipe the end of one program hides the end of another: each also runs alone.
    for (const command of commandsOf(judged.plan.steps)) {
      const { exitCode } = await run(onlyCommand(command));
      if (exitCode === KILLED_BY_FILTER) findings.push(`opened a socket: ${JSON.stringify(text)}`);
    }
    const after = picture();
    if (after !== before) findings.push(`changed a file: ${JSON.stringify(text)}`);
    before = after;
  }
  neighbour.kill();
  process.stdout.write(JSON.stringify({ ran, findings }));
};

await main();
