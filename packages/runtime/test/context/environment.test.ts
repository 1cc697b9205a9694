import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import { environmentText } from "../../src/context/environment.ts";
import { type Environment, localDate, readEnvironment } from "../../src/context/index.ts";
import { type Ground, repository } from "./repository.ts";

const NOON = Date.UTC(2026, 10, 15, 12);

const read = (cwd: string, home: string): Promise<Environment> =>
  readEnvironment({ cwd, home, clock: { now: () => NOON }, timeZone: "UTC", platform: "linux", release: "6.1.0" });

const commit = (ground: Ground, subject: string): void => {
  ground.put(`repo/${subject.replaceAll("/", " ")}.txt`, subject);
  ground.git("add", "-A");
  ground.git("commit", "-q", "-m", subject);
};

test("the branch, the counts of changes and the last three subjects come from git", async () => {
  using ground = repository();
  for (const subject of ["One", "Two", "Three", "Four </environment>"]) commit(ground, subject);
  ground.put("repo/One.txt", "staged");
  ground.git("add", "-A");
  ground.put("repo/One.txt", "and changed again");
  ground.put("repo/Two.txt", "changed");
  ground.put("repo/new\nname", "");
  const ids = ground.git("log", "-3", "--format=%h").trim().split("\n");
  const environment = await read(ground.repo, ground.home);
  assert.deepEqual(JSON.parse(JSON.stringify(environment)), {
    ...{ cwd: ground.repo, platform: "linux", release: "6.1.0", shell: "bash", date: "2026-11-15" },
    git: {
      ...{ kind: "repository", branch: "main", staged: 1, unstaged: 2, untracked: 1, conflicted: 0 },
      commits: [`${ids[0]} Four </environment>`, `${ids[1]} Three`, `${ids[2]} Two`],
    },
  });
  assert.equal(
    environmentText(environment, "plan"),
    [
      "<environment>",
      `Working folder: ${ground.repo}`,
      "Platform: linux 6.1.0",
      "Shell: bash",
      "Date: 2026-11-15",
      "Permission mode: plan (only reading is possible; look into the matter and answer with a plan, and change nothing)",
      "Git: branch main; 1 staged, 2 unstaged, 1 untracked, at this point",
      "Last commits:",
      `  ${ids[0]} Four &lt;/environment>`,
      `  ${ids[1]} Three`,
      `  ${ids[2]} Two`,
      "</environment>",
    ].join("\n"),
  );
});

test("a repository without commits, a detached head, and a conflict are described as they are", async () => {
  using ground = repository();
  const none = { staged: 0, unstaged: 0, untracked: 0, conflicted: 0 };
  const { git: empty } = await read(ground.repo, ground.home);
  assert.deepEqual(empty, { kind: "repository", branch: "main", ...none, commits: [] });
  commit(ground, "One");
  ground.git("checkout", "-q", "--detach");
  const { git: detached } = await read(ground.repo, ground.home);
  assert.deepEqual(detached, { kind: "repository", ...none, commits: [ground.git("log", "--format=%h %s").trim()] });
  ground.git("checkout", "-q", "-b", "side");
  commit(ground, "Two");
  ground.put("repo/One.txt", "side");
  commit(ground, "Three");
  ground.git("checkout", "-q", "main");
  ground.put("repo/One.txt", "main");
  commit(ground, "Four");
  assert.throws(() => ground.git("merge", "side"));
  const { git: conflict } = await read(ground.repo, ground.home);
  assert.deepEqual(
    { ...conflict, commits: [] },
    {
      ...{ kind: "repository", branch: "main", ...none, staged: 2, conflicted: 1 },
      commits: [],
    },
  );
});

test("outside a repository the text says so, and a repository that could start programs gets no summary", async () => {
  using base = scratch();
  base.put("home/x");
  assert.deepEqual((await read(base.path, base.at("home"))).git, { kind: "none" });
  using ground = repository();
  commit(ground, "One");
  ground.git("config", "filter.evil.clean", `touch ${ground.at("ran")}`);
  const { git } = await read(ground.repo, ground.home);
  assert.deepEqual(git, {
    kind: "left-out",
    reason: "the repository configures filter.evil.clean, which git could act on",
  });
});

test("reading leaves the repository unchanged, and starts nothing that it configures", async () => {
  using ground = repository();
  commit(ground, "One");
  for (const key of ["core.fsmonitor", "core.pager", "core.sshCommand"])
    ground.git("config", key, key === "core.fsmonitor" ? "true" : `touch ${ground.at("ran")}`);
  const before = ground.git("ls-files", "--debug");
  const { git } = await read(ground.repo, ground.home);
  assert.equal(git.kind, "repository");
  assert.equal(ground.git("ls-files", "--debug"), before);
  assert.equal(existsSync(ground.at("ran")), false);
});

test("the date is the date in the user's time zone, in one format", () => {
  const lateEvening = Date.UTC(2026, 11, 31, 23, 30);
  assert.deepEqual(
    ["UTC", "Asia/Tokyo", "America/New_York"].map((zone) => localDate(lateEvening, zone)),
    ["2026-12-31", "2027-01-01", "2026-12-31"],
  );
});
