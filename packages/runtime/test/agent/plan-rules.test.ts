/** Rules about reading apply to every file that a command opens when it runs, whatever name it is reached by. */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, realpathSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import {
  classify,
  decide,
  mergeLayers,
  type PermissionFlags,
  planHazard,
  runPlan,
  settingsOfFlags,
  splitCommands,
} from "@prefork/guard";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import { gitIn } from "@prefork/testing/with-keys";
import { AgentGuard } from "../../src/agent/guard.ts";
import { bench, textOf } from "../tools/tool-bench.ts";

const realName = (path: string): readonly string[] => {
  try {
    const real = realpathSync.native(path);
    return real === path ? [] : [real];
  } catch {
    return [];
  }
};

type Ground = { readonly cwd: string; readonly home: string };

/** What a command prints where it runs unasked; undefined where it does not. */
const printed = async (command: string, { cwd, home }: Ground, flags: PermissionFlags): Promise<string | undefined> => {
  const settings = settingsOfFlags(flags, { base: cwd, home });
  assert.ok(typeof settings !== "string", JSON.stringify(settings));
  const policy = mergeLayers([settings]);
  const place = { roots: [cwd], cwd, home, partsOf: splitCommands, asks: "person", otherNames: realName } as const;
  const decision = decide({ tool: "Bash", args: { command } }, { ...place, mode: "default", policy, classify });
  if (decision.kind !== "allow" || !decision.plan) return undefined;
  const plan = JSON.parse(JSON.stringify(decision.plan)); // a plan is data
  if (planHazard(plan, { cwd, home }) !== undefined) return undefined;
  const { stdout, stderr } = await runPlan(plan, { cwd, home });
  return stdout + stderr;
};

const commitAll = (folder: string): void => {
  gitIn(folder, "add", "-f", ".");
  gitIn(folder, "commit", "-q", "-m", "All");
};

const withLinks = (place: Scratch): Ground => {
  for (const name of ["secrets/key", "secrets/deep/key"]) place.put(`work/${name}`, "the secret \n");
  for (const name of ["src/a", "src/sub/b", "plain"]) place.put(`work/${name}`, "plain\n");
  const cwd = place.at("work");
  gitIn(cwd, "init", "-q", "-b", "main");
  commitAll(cwd);
  place.put("work/secrets/key", "the secret, changed \n");
  place.put("work/plain", "plain, changed\n");
  const links = { here: ".", me: "../work", e: "src/sub", lk: "secrets/key", ls: "secrets", "src/top": ".." };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, place.at("work", name));
  return { cwd, home: place.at("home") };
};

const LED_THERE: readonly string[] = [
  ...["cat here/s*/key", "cat m?/secrets/key", "cat me/{secrets,src}/key", "cat src/*/secrets/key", "cat l?", "cat *k"],
  ...["cat e/../../secrets/key", "cat < e/../../secrets/key", "cd e && cat ../../secrets/key", "head -n1 h*/s*/d*/key"],
  ...["grep -rh secret src/top", "grep -rh secret here/", "grep -rh secret ls/", "diff -r src src/top/secrets"],
  ...["find src/top/ -name key -exec cat {} +", "find here/sec*/key -exec cat {} +", "find -H ls -exec cat {} +"],
  ...["git diff --no-index here/s*/key src/a", "git blame --ignore-revs-file=e/../../secrets/key src/a"],
  ...["ls -d here/s*/key | xargs cat", "find here/ -name key | xargs cat", "cd me && git grep -h secret"],
  ...["git -C here grep -h secret", "cd here && git diff", "git -C src/top diff", "git -C src/top show HEAD"],
  ...["git diff --check", "git show --check", "git log --check", "git diff --check HEAD"],
  ...["git show :0:secrets/key", "git cat-file -p :0:secrets/key", "git diff :0:secrets/key :0:src/a"],
  ...["git -C src show HEAD:secrets/key", "git -C here/src show HEAD:../secrets/key", "git diff HEAD:src HEAD:secrets"],
  ...["git -C src/sub log -p", "cd e && git log -p -1", "git -C e blame ../../secrets/key", "sort -o /dev/null l?"],
];

test("a file that a rule names is not read through any link, pattern, search or commit", async () => {
  using place = scratch();
  const ground = withLinks(place);
  for (const list of ["deny", "ask"])
    for (const rule of ["Read(./secrets)", "Read(./secrets/**)"])
      for (const command of list === "deny" ? LED_THERE : LED_THERE.slice(0, 12)) {
        const shown = await printed(command, ground, { [list]: [rule] });
        assert.doesNotMatch(shown ?? "", /the secret/, `${list} ${rule}: ${command}`);
      }
});

test("files that no rule names are read as before, next to and below files that a rule names", async () => {
  using place = scratch();
  const ground = withLinks(place);
  const shows: readonly (readonly [string, RegExp])[] = [
    ["cat pl*", /^plain, changed$/m],
    ["cat here/src/a", /^plain$/m],
    ["grep -rh plain src", /^plain$/m],
    ["git diff", /\+plain, changed\n(?:.*\n)*Binary files a\/secrets\/key/],
    ["git diff --check", /^$/],
    ["git show HEAD:src/a", /^plain$/m],
    ["git -C src log -p -1 -- a", /\+plain/],
  ];
  for (const [command, expected] of shows)
    assert.match((await printed(command, ground, { deny: ["Read(./secrets)"] })) ?? "asked", expected, command);
});

const SEARCHES: readonly (readonly [command: string, finds: readonly string[]])[] = [
  ["grep -rl plain", ["Docs/b", "a", "src/secrets/b"]],
  ["grep -rl plain .", ["./Docs/b", "./a", "./src/secrets/b"]],
  ["grep -rl plain ./ src", ["./Docs/b", "./a", "./src/secrets/b", "src/secrets/b"]],
  ["grep -rl -e plain -- .", ["./Docs/b", "./a", "./src/secrets/b"]],
  ["grep -rl --include='b*' plain .", ["./Docs/b", "./src/secrets/b"]],
  ["grep -rl plain Docs src", ["Docs/b", "src/secrets/b"]],
  ["grep -rl . here/", ["here/Docs/b", "here/a", "here/src/secrets/b"]],
  ["cd src && grep -rl plain ..", ["../Docs/b", "../a", "../src/secrets/b"]],
  ["rg -l plain", ["Docs/b", "a", "src/secrets/b"]],
  ["rg -l plain ./", ["./Docs/b", "./a", "./src/secrets/b"]],
  ["rg -l plain .//.", [".//./Docs/b", ".//./a"]],
  ["cd src && rg -l plain ..", ["../Docs/b", "../a", "../src/secrets/b"]],
  ["rg -l plain here/", ["here/Docs/b", "here/a", "here/src/secrets/b"]],
  ["find . -type f -name 'b*' -exec grep -l plain {} +", ["./Docs/b", "./src/secrets/b"]],
  ["find . -name key -exec cat {} +", []],
  ["git grep -l plain", ["Docs/b", "a", "src/secrets/b"]],
  ["git grep -ha secret", []],
  ["git grep -h --cached secret", []],
  ["git grep -h secret HEAD", []],
  ["git grep -h --untracked secret", []],
  ["git ls-files | xargs grep -l plain", ["Docs/b", "a", "src/secrets/b"]],
  ["find . -type f -name 'k*' -o -name a | xargs cat", ["plain"]],
  ["ls Docs | xargs -I{} cat Docs/{}", ["plain"]],
  ["git diff --stat -- . | tail -1", [" 1 file changed, 0 insertions(+), 0 deletions(-)"]],
];

test("a search near a rule runs without a question and skips only the path that the rule names", async () => {
  using place = scratch();
  for (const name of ["secrets/key", "secrets/deep/key", "docs/private/key", "Docs/Private/key"])
    place.put(`work/${name}`, "the secret, plain\n");
  for (const name of ["a", "Docs/b", "src/secrets/b"]) place.put(`work/${name}`, "plain\n");
  const ground = { cwd: place.at("work"), home: place.at("home") };
  gitIn(ground.cwd, "init", "-q", "-b", "main");
  commitAll(ground.cwd);
  place.put("work/secrets/key", "the secret, plain, changed\n");
  symlinkSync(".", place.at("work/here"));
  const deny = ["Read(./secrets/**)", "Read(./docs/private)"];
  const outcome = async (): Promise<unknown> =>
    Object.fromEntries(
      await Promise.all(
        SEARCHES.map(async ([command]) => {
          const lines = (await printed(command, ground, { deny }))?.split("\n").filter(Boolean);
          return [
            command,
            lines
              ?.map((line) => line.replace(/^\.git\/.*/, ""))
              .filter(Boolean)
              .sort(),
          ];
        }),
      ),
    );
  assert.deepEqual(await outcome(), Object.fromEntries(SEARCHES));
});

test("a rule that names a link also protects the link's target", async () => {
  using place = scratch();
  place.put("far/data/key", "the secret\n");
  place.put("far/plain", "plain\n");
  place.put("work/plain", "plain\n");
  const links = { data: "../far/data", here: ".", over: "here/data", home: "../far" };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, place.at("work", name));
  const ground = { cwd: place.at("work"), home: place.at("work/home") };
  const commands = [
    "cat d*/key",
    "cat here/d*/key",
    "cat ../far/data/key",
    "cat ov*/key",
    `cat ${place.at("far")}/d*/key`,
  ];
  const searches = ["grep -rh secret ../far", "grep -rh secret data/", "find ../far -type f -exec cat {} +"];
  for (const rule of ["Read(./data)", "Read(./data/**)", "Read(~/data/k*)"])
    for (const command of [...commands, ...searches])
      assert.doesNotMatch(
        (await printed(command, ground, { deny: [rule] })) ?? "",
        /the secret/,
        `${rule}: ${command}`,
      );
  assert.match((await printed("cat ../far/pl*", ground, { deny: ["Read(./data)"] })) ?? "asked", /^plain$/m);
  const settings = settingsOfFlags({ deny: ["Read(./data)"], allow: ["Read", "Bash"] }, { base: ground.cwd });
  assert.ok(typeof settings !== "string");
  const guarding = new AgentGuard({
    ...{ policy: mergeLayers([settings]), mode: "default", roots: [ground.cwd], ...ground },
    ...{ outputs: "/out", readingTools: [], tools: [], asks: "person" },
  });
  const answers = ["data/key", "here/data/key", "over/key", "../far/data/key", "../far/plain", "plain"].map((name) => [
    decide({ tool: "Read", args: { file_path: place.at("work", name) } }, guarding.context()).kind,
    decide({ tool: "Bash", args: { command: `node run.js ${name}` } }, guarding.context()).kind,
    guarding.mayShow()(place.at("work", name)),
  ]);
  const [denied, allowed] = [
    ["deny", "deny", false],
    ["allow", "allow", true],
  ];
  assert.deepEqual(answers, [denied, denied, denied, denied, allowed, allowed]);
});

test("git shows nothing that a rule names if the workspace is below the top of its repository", async () => {
  using place = scratch();
  for (const name of ["app/secrets/key", "app/src/a"]) place.put(`mono/${name}`, "the secret\n");
  place.put("mono/app/plain", "plain\n");
  gitIn(place.at("mono"), "init", "-q", "-b", "main");
  commitAll(place.at("mono"));
  for (const name of ["secrets/key", "plain"]) place.put(`mono/app/${name}`, "the secret, changed\nplain\n");
  const ground = { cwd: place.at("mono/app"), home: place.at("home") };
  const commands = [
    ...[
      "git diff -- secrets plain",
      "git diff",
      "git show HEAD",
      "git log -p",
      "git diff HEAD",
      "git -C src diff HEAD",
    ],
    ...["cd src && git diff HEAD", "git show HEAD:app/secrets/key", "git cat-file -p HEAD:app/secrets/key"],
    ...["git show :app/secrets/key", "git show :0:app/secrets/key", "git show HEAD:./secrets/key"],
    ...["git diff HEAD:app HEAD~0:app/src", "git grep -h secret -- secrets", "git grep -h secret HEAD -- secrets"],
  ];
  for (const rule of ["Read(./secrets)", "Read(secrets/**)", `Read(/${place.at("mono/app/secrets")})`])
    for (const command of commands) {
      const shown = await printed(command, ground, { deny: [rule, "Read(./src)", "Read(./plain)"] });
      assert.doesNotMatch(shown ?? "", /the secret/, `${rule}: ${command}`);
    }
  assert.match((await printed("git diff", ground, { deny: ["Read(./secrets)"] })) ?? "asked", /\+the secret/);
  const inCapitals = { deny: ["Read(./SECRETS/**)", "Read(./Src)", "Read(./PLAIN)"] };
  for (const command of ["git diff HEAD", "git show HEAD", "git log -p -1"])
    assert.doesNotMatch((await printed(command, ground, inCapitals)) ?? "", /the secret/, command);
});

test("settings with secrets in the home folder are protected wherever the home folder is", async () => {
  using place = scratch();
  for (const name of [".claude/settings.json", ".prefork/settings.json", ".mcp.json"])
    place.put(`far/${name}`, "the secret\n");
  place.put("far/notes/plain", "plain\n");
  place.put("work/plain", "plain\n");
  symlinkSync("../far", place.at("work/up"));
  const ground = { cwd: place.at("work"), home: place.at("far") };
  const far = place.at("far");
  const commands = [
    ...[
      "cat ../far/.claude/settings.json",
      `cat ${far}/.prefork/settings.json`,
      "cd ../far && cat .claude/settings.json",
    ],
    ...["cat up/.mcp.json", "cat up/.cl*/settings.json", "grep -rh secret ../far", `grep -rh secret ${far}`],
    ...["find ../far -type f -exec cat {} +", "grep -rh secret ../far/.claude", "ls -d ../far | xargs grep -rh secret"],
    ...["cd ../far && grep -rh secret .", "cat ../far/.claude/settings.jso?"],
  ];
  for (const command of commands)
    assert.doesNotMatch((await printed(command, ground, {})) ?? "", /the secret/, command);
  for (const command of ["cat ../far/notes/plain", "grep -rh plain ../far/notes", "grep -rh plain ."])
    assert.match((await printed(command, ground, {})) ?? "asked", /^plain$/m, command);
  const athome = { cwd: far, home: far };
  assert.match((await printed("grep -rh -e secret -e plain .", athome, {})) ?? "asked", /^plain\n$/);
});

test("a search shows no file of an ask rule, unless it searches the path that was asked about", () => {
  const settings = settingsOfFlags({ ask: ["Read(./secrets)", "Read(*.sqlite)"] }, { base: "/ws", home: "/home/ann" });
  assert.ok(typeof settings !== "string");
  const guarding = new AgentGuard({
    ...{ policy: mergeLayers([settings]), mode: "default", roots: ["/ws"], cwd: "/ws", home: "/home/ann" },
    ...{ outputs: "/ws/out", readingTools: [], tools: [], asks: "person" },
  });
  const shown = [
    guarding.mayShow("/ws")("/ws/src/a"),
    guarding.mayShow()("/ws/secrets/key"),
    guarding.mayShow("/ws")("/ws/secrets/key"),
    guarding.mayShow("/ws/secrets")("/ws/secrets/key"),
    guarding.mayShow("/ws/secrets")("/ws/secrets/x.sqlite"),
    guarding.mayShow("/ws/x.sqlite")("/ws/x.sqlite"),
  ];
  assert.deepEqual(shown, [true, false, false, true, false, true]);
  const names = ["/home/ann/.gemini/settings.json", "/ws/.gemini/settings.json", "/ws/.env"];
  assert.deepEqual(names.map(guarding.mayShow()), [false, true, false]);
  const athome = new AgentGuard({
    ...{ policy: mergeLayers([settings]), mode: "default", roots: ["/ws"], cwd: "/ws", home: "/ws" },
    ...{ outputs: "/ws/out", readingTools: [], tools: [], asks: "person" },
  });
  assert.deepEqual(names.map(athome.mayShow()), [false, false, false]);
});

test("regression: what a search skips from one starting point is not searched from another", async () => {
  using place = scratch();
  for (const name of ["src/priv/data", "src/priv/deep/data"]) place.put(`work/${name}`, "the secret\n");
  for (const name of ["src/a", "src/b", "plain"]) place.put(`work/${name}`, "plain, no secret\n");
  const ground = { cwd: place.at("work"), home: place.at("home") };
  const searches: readonly (readonly [string, RegExp])[] = [
    ["grep -r secret . src", /\.\/plain:plain.*src\/a:plain/s],
    ["grep -r secret src .", /src\/a:plain/],
    ["grep -r secret src ./src .", /src\/b:plain/],
    ["grep -r secret src plain", /src\/b:plain.*plain:plain/s],
    ["grep -rn secret . --exclude-dir src", /\.\/plain:1:plain/],
    ["grep -rn secret --exclude-dir src", /plain:1:plain/],
    ["grep -rh secret plain --exclude-dir src", /^plain, no secret\n$/],
    ["grep -rn --exclude-dir src secret src .", /\.\/plain:1:plain/],
  ];
  const check = async (): Promise<void> => {
    for (const [command, expected] of searches) {
      const shown = (await printed(command, ground, { deny: ["Read(./src/priv/**)"] })) ?? "asked";
      assert.doesNotMatch(shown, /the secret/, command);
      assert.match(shown, expected, command);
    }
  };
  await check();
  // A name that cannot be handed on: `.` is searched as it is.
  writeFileSync(Buffer.concat([Buffer.from(`${ground.cwd}/n`), Buffer.from([0xff])]), "plain\n");
  await check();
});

const LINES = Array.from({ length: 40 }, (_, at) => `line ${at}\n`).join("");

test("regression: a merge or a line history shows nothing of a file that a rule names or that may contain secrets", async () => {
  using place = scratch();
  const cwd = place.at("work");
  const kept = { ".env": "notes.txt", "secrets/key": "other.txt" };
  for (const name of Object.keys(kept)) place.put(`work/${name}`, `${name}\n${LINES}the secret\n`);
  gitIn(cwd, "init", "-q", "-b", "main");
  commitAll(cwd);
  gitIn(cwd, "checkout", "-q", "-b", "topic");
  place.put("work/a", "a\n");
  commitAll(cwd);
  gitIn(cwd, "checkout", "-q", "main");
  place.put("work/b", "b\n");
  commitAll(cwd);
  gitIn(cwd, "merge", "-q", "--no-ff", "--no-commit", "topic");
  for (const [from, to] of Object.entries(kept)) {
    renameSync(place.at("work", from), place.at("work", to));
    place.put(`work/${to}`, `${from}\n${LINES}public\n`);
  }
  gitIn(cwd, "add", "-A");
  gitIn(cwd, "commit", "-q", "-m", "Merge and rename");
  gitIn(cwd, "tag", "-a", "-m", "x", "v1");
  const hash = gitIn(cwd, "rev-parse", "HEAD");
  const ground = { cwd, home: place.at("home") };
  const flags = { deny: ["Read(./secrets/**)"] };
  const combined: readonly string[] = [
    ...[
      "git show",
      "git show HEAD",
      `git show ${hash.slice(0, 8)}`,
      "git show v1",
      "git show HEAD~0 HEAD~1",
      "git show -c",
    ],
    ...[
      "git show 'HEAD^!'",
      "git show HEAD~1..HEAD",
      "git show ':/Merge'",
      "git show HEAD -- notes.txt",
      "git show -p notes.txt",
    ],
    ...[
      "git log -c -p -1",
      "git log --cc -1",
      "git log --diff-merges=c -p -1",
      "git log --diff-merges=dense-combined -p",
    ],
    ...[
      "git log -m -p -1",
      "git reflog -c -p",
      "git reflog show --cc -p",
      "git diff-tree -c -p HEAD",
      "git diff-tree --cc HEAD",
    ],
    ...[
      "git diff HEAD HEAD~1 HEAD^2",
      "git diff HEAD^!",
      "git whatchanged -c -p -1",
      "git show --combined-all-paths -c",
    ],
    ...["git log -L41,42:notes.txt", "git log -L 30,42:other.txt", "git log -L40,42:other.txt -L40,42:notes.txt -p"],
    ...["git log -L:public:notes.txt", "git show -L41,42:notes.txt"],
  ];
  for (const command of combined) {
    const shown = (await printed(command, ground, flags)) ?? "asked";
    assert.doesNotMatch(shown, /the secret/, command);
    assert.match(shown, /Merge|diff --(?:cc|combined)/, command);
  }
  const verbs = [
    "show",
    "show -c",
    "log --cc -p -1",
    "diff-tree -c -p HEAD",
    "diff HEAD HEAD~1 HEAD^2",
    "log -L41,42:notes.txt",
  ];
  // Names and counts tell nothing of what is in them.
  for (const command of ["git show --stat HEAD", "git show --stat --oneline"])
    assert.match((await printed(command, ground, flags)) ?? "asked", /\.env => notes\.txt/, command);
  for (const option of ["-M", "-C -C", "--find-renames=10", "--find-copies-harder"])
    for (const verb of verbs) {
      const command = `git ${verb.replace(/^\S+/, `$& ${option}`)}`;
      assert.doesNotMatch((await printed(command, ground, flags)) ?? "", /the secret/, command);
    }
});

test("a commit that is not a merge is shown with its renames, and so is a comparison of two commits", async () => {
  using place = scratch();
  place.put("work/old", LINES);
  const cwd = place.at("work");
  gitIn(cwd, "init", "-q", "-b", "main");
  commitAll(cwd);
  gitIn(cwd, "mv", "old", "new");
  commitAll(cwd);
  const ground = { cwd, home: place.at("home") };
  for (const command of [
    "git show",
    "git show -M HEAD",
    "git show HEAD --stat",
    "git diff HEAD~1 HEAD",
    "git log -p --follow new",
  ])
    assert.match((await printed(command, ground, {})) ?? "asked", /rename (?:from old|to new)|old => new/, command);
});

test("regression: git shows nothing that a rule names, in any upper or lower case and for any path length", async () => {
  using place = scratch();
  const cwd = place.at("work");
  const long = ["a", "b", "c"].map((letter) => letter.repeat(200)).join("/");
  const hidden = ["Übung/key", "ÉTÉ/key", "cafe\u0301/key", "Straße/x é/key", "日本語.txt", `long/${long}/key`];
  for (const name of hidden) place.put(`work/${name}`, "the secret\n");
  for (const name of ["plain", "übrig/plain", "long/plain"]) place.put(`work/${name}`, `plain in ${name}\n`);
  symlinkSync(`long/${long}`, place.at("work/data"));
  gitIn(cwd, "init", "-q", "-b", "main");
  commitAll(cwd);
  const names = ["Übung/**", "été", "caf\u00e9/**", "straße/x é", "日本語.txt", "data"];
  const flags = { deny: names.map((name) => `Read(./${name})`) };
  const ground = { cwd, home: place.at("home") };
  for (const command of ["git show HEAD", "git log -p", "git diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 HEAD"]) {
    const shown = (await printed(command, ground, flags)) ?? "asked";
    assert.doesNotMatch(shown, /the secret|overly long/, command);
    for (const name of ["plain", "übrig/plain"]) assert.match(shown, new RegExp(`^\\+plain in ${name}$`, "m"), command);
  }
});

test("a link that Prefork and a program could follow to different files leads to no key, denied file or foreign filter", async () => {
  await using b = await bench();
  const home = b.base.at("home");
  b.base.put("home/.ssh/id_rsa", "the secret\n");
  b.put("secrets/x", "the secret\n");
  b.put("sub/plain", "plain\n");
  mkdirSync(b.at("sub/evil"));
  gitIn(b.at("sub/evil"), "init", "-q");
  gitIn(b.at("sub/evil"), "config", "filter.x.clean", "touch PWNED; cat");
  b.put("sub/evil/.gitattributes", "* filter=x\n");
  const links = {
    key: "../../home/.ssh/id_rsa",
    home: "../../home",
    denied: "../secrets/x",
    evil2: "evil",
    ok: "plain",
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, b.at(`sub/${name}`));
  symlinkSync("sub", b.at("ld"));
  for (const name of Object.keys(links)) {
    symlinkSync(`/proc/self/cwd/${name}`, b.at(`sub/proc-${name}`));
    for (let at = 1; at < 40; at += 1) symlinkSync(at === 39 ? name : `${name}-${at + 1}`, b.at(`sub/${name}-${at}`)); // with the link itself: 40
  }
  const settings = settingsOfFlags({ deny: ["Read(./secrets/**)"] }, { base: b.work, home });
  assert.ok(typeof settings !== "string");
  const guard = new AgentGuard({
    ...{ policy: mergeLayers([settings]), mode: "default", roots: [b.work], cwd: b.work, home },
    ...{ outputs: "/out", readingTools: [], tools: [], asks: "person" },
  });
  const run = async (command: string): Promise<string> => {
    const decision = decide({ tool: "Bash", args: { command } }, guard.context());
    if (decision.kind !== "allow" || decision.plan === undefined) return decision.kind;
    return textOf(await b.call("Bash", { command }, { plan: decision.plan, environment: { HOME: home } }));
  };
  for (const way of ["proc-%", "%-1"])
    for (const folder of ["sub", "ld"]) {
      const [key, top, denied, evil] = ["key", "home", "denied", "evil2"].map((name) => way.replace("%", name));
      for (const text of [
        ...[`cat ${key}`, `head -1 < ${key}`, `find . -name ${key} | xargs cat`, `cat ${denied}`, `sort ${denied}`],
        ...[`find . -name ${denied} | xargs cat`, `grep -r secret ${top}`, `grep -r secret ${top}/.ssh`],
        ...[`git -C ${evil} diff`, `git -C ${evil} status --short`],
      ])
        assert.doesNotMatch(await run(`cd ${folder} && ${text}`), /the secret/, text);
    }
  assert.equal(existsSync(b.at("sub/evil/PWNED")), false);
  assert.equal(await run("cd ld && cat ok ok-1"), "plain\nplain\n[exit code 0]");
});
