/** Laws of rules: nothing that is added turns a denial into something weaker. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { anyCharacter } from "@prefork/testing/any-character";
import { contextOf, decideBash, layerOf, place, ROOT } from "@prefork/testing/policies";
import fc from "fast-check";
import { GROWING } from "../../fuzz/guard/inputs.ts";
import { classify } from "../../src/bash/index.ts";
import type { Decision, ToolCall } from "../../src/rules/call.ts";
import { decide } from "../../src/rules/decide.ts";
import { type Layer, type Mode, mergeLayers } from "../../src/rules/policy.ts";
import { parseSettings } from "../../src/rules/settings.ts";
import {
  EVALUATING,
  EVERYDAY_CHANGES,
  PUSHING_LATER,
  READ_AS_PROGRAMS,
  REMOVING_LATER,
  SETTING,
  USING,
} from "./evaluated-texts.ts";

const RANKS: Readonly<Record<Decision["kind"], number>> = { allow: 0, ask: 1, deny: 2 };
const rank = ({ kind }: Decision): number => RANKS[kind];

const anyMode = fc.constantFrom<Mode>("default", "accept-edits", "plan", "bubble", "bypass");

// --- ways to hide a command --------------------------------------------------------------------------------------------

const single = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
const double = (text: string): string => `"${text.replace(/["\\$`]/g, "\\$&")}"`;

const WRAPPERS =
  "command |env |env -i |env -u ls |env A=1 |sudo |sudo -u bob |doas |timeout 5 |timeout -s KILL 5 |nice -n 5 |nohup |" +
  "time |exec |setsid |xargs |xargs -0 -n 1 |busybox |stdbuf -oL |watch -n 1 |flock x.lock |chroot . |strace -f |" +
  "A=1 |! |ionice -c 3 |unknown-tool |unknown-tool --flag value ";

/** Each takes a command to another text that still runs it. */
const hiding = fc.oneof(
  fc.constantFrom(...WRAPPERS.split("|")).map((start) => (text: string) => `${start}${text}`),
  fc
    .constantFrom("ls && ", "true; ", "cat x | ", "echo a\n", "ls & ", "false || ")
    .map((start) => (text: string) => start + text),
  fc
    .constantFrom(" && ls", "; true", " | cat", " &", "\nls", " > out.txt", " 2>&1")
    .map((end) => (text: string) => text + end),
  fc.constant((text: string) => `sh -c ${single(text)}`),
  fc.constant((text: string) => `bash -lc ${double(text)}`),
  fc.constant((text: string) => `eval ${single(text)}`),
  fc.constant((text: string) => `( ${text}\n)`),
  fc.constant((text: string) => `{ ${text}\n}`),
  fc.constant((text: string) => `if true; then ${text}\nfi`),
  fc.constant((text: string) => `for x in a b; do ${text}\ndone`),
  fc.constant((text: string) => `f() { ${text}\n}; f`),
  fc.constant((text: string) => `echo "$(${text}\n)"`),
  fc.constant((text: string) => `cat <(${text}\n)`),
  fc.constant((text: string) => `echo \${x:-$(${text}\n)}`),
  fc.constant((text: string) => `bash <<'END'\n${text}\nEND`),
  fc.constant((text: string) => `find . -exec sh -c ${single(text)} \\;`),
);

/** The first word in another writing, letter by letter. */
const writing = fc.array(fc.constantFrom("plain", "single", "double", "backslash", "empty", "ansi"), {
  minLength: 8,
  maxLength: 8,
});
const rewrite = (word: string, ways: readonly string[]): string =>
  [...word]
    .map((letter, at) => {
      switch (ways[at % ways.length]) {
        case "single":
          return `'${letter}'`;
        case "double":
          return `"${letter}"`;
        case "backslash":
          return `\\${letter}`;
        case "empty":
          return `""${letter}`;
        case "ansi":
          return `$'\\x${letter.charCodeAt(0).toString(16)}'`;
        default:
          return letter;
      }
    })
    .join("");

const DENIED = ["Bash(rm:*)", "Bash(git push:*)", "Bash(curl -o:*)", "Bash(npm publish)"];

const deniedCommand = fc
  .tuple(
    fc.constantFrom(
      ["rm", "x.txt"],
      ["rm", "-rf", "build"],
      ["git", "push"],
      ["git", "push", "origin"],
      ["curl", "example.com", "-o", "f"],
      ["npm", "publish", "--tag", "x"],
    ),
    fc.constantFrom("", "/bin/", "/usr/bin/", "./"),
    writing,
  )
  .map(([[program = "", ...rest], folder, ways]) =>
    [folder + rewrite(program, ways), ...rest.map((word) => rewrite(word, ways.toReversed()))].join(" "),
  );

test("a denied command stays denied however it is quoted, wrapped, nested or joined, and whatever is allowed", () => {
  const context = contextOf({ deny: DENIED, allow: ["Bash", "Bash(ls:*)", "Bash(rm:*)", "Bash(git:*)"] });
  fc.assert(
    fc.property(deniedCommand, fc.array(hiding, { maxLength: 4 }), anyMode, (command, hidings, mode) => {
      const text = hidings.reduce((inner, hide) => hide(inner), command);
      const decision = decideBash(text, { ...context, mode });
      assert.equal(decision.kind, "deny", `${text}\n${decision.reason}`);
    }),
    { numRuns: 3_000 },
  );
});

test("a denied command is found when another program is told to run it", () => {
  const context = contextOf({ deny: ["Bash(rm:*)", "Bash(git push:*)"], allow: ["Bash"] }, { mode: "bypass" });
  const texts = [
    "x=rm; $x -rf /",
    "echo rm | xargs -I{} {} -rf",
    "echo push | xargs git",
    "git $X",
    "git -c alias.p=push p",
    "git config alias.p push; git p",
    "GIT_CONFIG_COUNT=1 git p",
    "tar --checkpoint-action=exec=rm f",
    "sort --compress-program=rm f",
    "git submodule foreach 'rm x'",
    "git rebase -x 'rm x' main",
    "ssh host 'cd y; rm x'",
    "perl -e 'system(\"rm x\")'",
    "echo x | sudo -u bob bash -s",
    "bash < script.sh",
    "cat jobs | parallel",
    "cat jobs | parallel -i",
    "source <(echo x)",
    "alias ll=rm",
    "shopt -s expand_aliases\nalias g=git\ng push",
    "hash -p /usr/bin/git g; g push",
    "builtin hash -p /usr/bin/git g; g push",
    "parallel git ::: push",
    "env -S'git push'",
    "env -vS'git push'",
    "su -c'git push' bob",
    "/bin/r?",
    "GIT_EDITOR='git push' git commit",
    "PAGER='git push;:' git log",
    "GIT_SSH_COMMAND='rm x' git fetch",
    "env GIT_EDITOR=rm git commit",
    "export EDITOR='git push'; git commit",
    "EDITOR=rm; crontab -e",
    "FETCH='git push' ./run",
    "printf -v 'a[$(git push)]' x",
    "[ -v 'a[$(rm x)]' ]",
    "{rm,x}",
    "$'\\162m' x",
    "git >x push",
    "git --no-pager -C x push",
    "ls #it's\nrm x",
    "r\\\nm x",
  ];
  for (const text of texts) assert.equal(decideBash(text, context).kind, "deny", text);
});

// --- texts that bash evaluates -----------------------------------------------------------------------------------------

test("a denied command is found in texts that bash evaluates as numbers or names", () => {
  const context = contextOf({ deny: ["Bash(git push:*)"], allow: ["Bash"] }, { mode: "bypass" });
  const pairs = [
    ...SETTING.flatMap((set) => USING.slice(0, 4).map((use) => `${set}\n${use}`)),
    ...USING.flatMap((use) => SETTING.slice(-4).map((set) => `${set}\n${use}`)),
    `${SETTING[0]}\n${USING.at(-1)}`,
  ];
  const texts = [...EVALUATING, ...pairs];
  assert.deepEqual(
    texts.filter((text) => decideBash(text, context).kind !== "deny"),
    [],
  );
  assert.deepEqual(
    texts.filter((text) => classify(text).verdict === "read-only"),
    [],
  );
  assert.equal(
    decideBash(EVALUATING[0] ?? "", context).reason,
    "denied by Bash(git push:*) (the command line): the command cannot be checked against it, bash would evaluate a " +
      "text in it that could run any command; write numbers and names out",
  );
});

test("a denied command is found when it is attached to an option, assigned, or written to a place where a program could run it", () => {
  const passed = (rule: string, texts: readonly string[]): readonly string[] => {
    const context = contextOf({ deny: [rule], allow: ["Bash"] }, { mode: "bypass" });
    return texts.filter((text) => decideBash(text, context).kind !== "deny");
  };
  assert.deepEqual(passed("Bash(git push:*)", PUSHING_LATER), []);
  assert.deepEqual(passed("Bash(rm:*)", REMOVING_LATER), []);
  assert.deepEqual(passed("Bash(rm:*)", READ_AS_PROGRAMS), []);
});

test("everyday changes run despite rules that deny other commands", () => {
  const forms = ["git push --force:*", "rm -rf:*", "rm:*", "git commit --no-verify:*", "git reset --hard:*", "sudo:*"];
  const context = contextOf({ deny: forms.map((form) => `Bash(${form})`), allow: ["Bash"] });
  for (const text of EVERYDAY_CHANGES) {
    const decision = decideBash(text, context);
    assert.equal(decision.kind, "allow", `${text}: ${decision.reason}`);
  }
});

test("no allow rule for a builtin lets it evaluate a text, and a denied file in that text is asked about", () => {
  const context = contextOf({ allow: ["Bash(printf:*)", "Bash(test:*)", "Bash(read:*)", "Bash(ls:*)"] });
  for (const text of ["printf -v 'a[$(rm x)]' x", "test -v 'a[$(rm x)]'", "ls && read 'a[$(rm x)]'"])
    assert.equal(decideBash(text, context).kind, "ask", text);
  assert.equal(decideBash("printf -v name x", context).kind, "allow");
  const reading = contextOf({ deny: ["Read(./secret.txt)"], allow: ["Bash"] });
  assert.equal(decideBash("[[ 'a[$(cat secret.txt)]' -eq 1 ]]", reading).kind, "ask");
});

test("everyday counting runs despite a rule that denies another command", () => {
  const context = contextOf({ deny: ["Bash(git push:*)"], allow: ["Bash"] });
  const texts = [
    "for i in 1 2 3; do echo $((i+1)); done",
    "for i in {1..5}; do sleep $((i*2)); done",
    "for i in $(seq 1 5); do echo $((i%2)); done",
    `for ((i=0; i<\${#a[@]}; i++)); do echo \${a[$i]}; done`,
    "for f in *.txt; do ((n++)); done; echo $n",
    "i=0; while [ $i -lt 5 ]; do i=$((i+1)); done",
    "n=$(ls | wc -l); echo $((n * 2))",
    "n=$(grep -c foo bar.txt); if [[ $n -gt 3 ]]; then echo many; fi",
    "start=$(date +%s); make; end=$(date +%s); echo $((end - start))",
    `echo $(( $(wc -l < f) + 1 )) $(( \${#x} + $# )) $(( 16#ff )) $((RANDOM % 10))`,
    `x=hello; echo \${x:0:3} \${x: -2}`,
    `a=(x y z); echo \${a[0]} \${a[-1]} \${a[@]:1:2}; unset 'a[0]'`,
    `declare -A m=([a]=1 [b]=2); echo \${m[a]} \${!m[@]}`,
    "declare -i n=5; n+=3; let n++; echo $n",
    'if [ "$(git status --porcelain)" = "" ] && [ -n "$z" ]; then echo clean; fi',
    "while IFS= read -r line; do echo $line; done < f",
    "printf '%s\\n' \"$x\" $(ls)",
    "printf -v padded '%03d' 7; echo $padded",
    "trap 'rm -f \"$tmp\"' EXIT; tmp=$(mktemp); wc -l > $tmp",
    'export PATH="$HOME/bin:$PATH"; ls',
    `name=PATH; echo \${!name}`,
    "bash -c 'n=3; echo $((n+1))'",
    "npm test & wait $!",
  ];
  for (const text of texts) {
    const decision = decideBash(text, context);
    assert.equal(decision.kind, "allow", `${text}: ${decision.reason}`);
  }
});

test("a denied option is found in every spelling, and others are not", () => {
  const context = contextOf({ deny: ["Bash(rm -rf:*)"], allow: ["Bash"] }, { mode: "bypass" });
  const denied = ["-rf x", "-fr x", "-r -f x", "x -f -r", "-Rf x", "-f -R x", "--recursive --force x", "--rec -f x"];
  for (const words of denied) assert.equal(decideBash(`rm ${words}`, context).kind, "deny", words);
  for (const words of ["x", "-f x", "-R x", "--force x"])
    assert.equal(decideBash(`rm ${words}`, context).kind, "allow", words);
});

test("a long option that is denied is found cut short, as a letter, and in what has its effect", () => {
  const rows: readonly (readonly [rule: string, denied: readonly string[], allowed: readonly string[]])[] = [
    [
      "git push --force:*",
      ["git push -f", "git push -fq", "git push --forc", "git push -q --fo", "git push origin +main"],
      ["git push", "git push --force-with-lease", "git push -u origin main", "git push --follow-tags"],
    ],
    [
      "git commit --no-verify:*",
      ["git commit -n", "git commit -nm x", "git commit -anm x", "git commit --no-veri -m x"],
      ["git commit -m x", 'git commit -m"none"', "git commit --no-edit --amend", "git commit -am x"],
    ],
    ["git commit -n:*", ["git commit --no-verify", "git commit -anm x"], ["git commit -a"]],
    ["rm --recursive:*", ["rm -r x", "rm -Rf x", "rm --recurs x"], ["rm x", "rm -f x"]],
    ["git reset --hard:*", ["git reset --har", "git reset HEAD~1 --hard"], ["git reset --soft HEAD~1"]],
    ["npm install --global:*", ["npm install -g x", "npm install x --glob"], ["npm install x"]],
    ["docker run --privileged:*", ["docker run --privileged x"], ["docker run -p 80:80 x"]],
  ];
  for (const [rule, denied, allowed] of rows) {
    const context = contextOf({ deny: [`Bash(${rule})`], allow: ["Bash"] }, { mode: "bypass" });
    for (const text of denied) assert.equal(decideBash(text, context).kind, "deny", `${rule}: ${text}`);
    for (const text of allowed) assert.equal(decideBash(text, context).kind, "allow", `${rule}: ${text}`);
  }
});

test("hitting a limit denies", () => {
  const context = contextOf({ deny: ["Bash(rm:*)"], allow: ["Bash"] }, { mode: "bypass" });
  const long = `echo ${"a".repeat(11_000)}`;
  const many = Array.from({ length: 300 }, () => "ls").join("; ");
  const words = `x ${"a ".repeat(2_000)}`;
  const deep = Array.from({ length: 12 })
    .reduce<string>((text) => `sh -c ${single(text)}`, "ls x")
    .slice(0, 9_000);
  for (const text of [long, many, words, deep, "echo 'a", "ls \u0007", "ls \0", "((", "echo $("]) {
    assert.equal(decideBash(text, context).kind, "deny", JSON.stringify(text.slice(0, 40)));
  }
});

test("a text with too many paths to look at is asked about, and no rule about paths is passed by", () => {
  const context = contextOf({ deny: ["Read(./secrets/**)"], allow: ["Bash"] });
  const reason = "the command might reach a file that Read(./secrets/**) (the command line) denies";
  for (const name of ["words after long folders", "words of many names after long folders"])
    assert.equal(decideBash(GROWING[name]?.(9_600) ?? "", context).reason, reason, name);
  assert.equal(decideBash(`git add${" src/a.ts".repeat(1_000)}`, context).kind, "allow");
});

test("texts made to overwhelm a reader get an answer from rules of every kind", () => {
  const context = contextOf({
    deny: ["Bash(rm -rf:*)", "Read(./secrets/**)", "Edit(**/x/**/y)"],
    ask: ["Bash(npm:*)"],
  });
  for (const [name, grow] of Object.entries(GROWING)) {
    const { kind, reason } = decideBash(grow(9_600), context);
    assert.ok(kind in RANKS && !/could not be judged/.test(reason), `${name}: ${reason}`);
  }
});

test("what only prints or searches the name of a denied command runs", () => {
  const context = contextOf({ deny: DENIED });
  for (const text of ["echo rm", "grep -n rm notes.md", "rg 'git push' .", "ls rm", "cat rm/x", "git log --grep=rm"]) {
    assert.equal(decideBash(text, context).kind, "allow", text);
  }
});

// --- adding rules and layers --------------------------------------------------------------------------------------------

const ruleTexts =
  "Bash|Bash(git:*)|Bash(git push:*)|Bash(ls)|Bash(npm test *)|Bash(cat:*)|Bash(rm -rf:*)|Read|Edit|Write|Read(./src/**)|" +
  "Read(.env)|Read(/etc/**)|Edit(./src/*.ts)|Write(//work/project/src/**)|Edit(~/x)|mcp__a__*|mcp__a__b|WebFetch|" +
  "WebFetch(domain:example.com)|Agent|Grep|Read(//)|Read(**)";
const anyRules = fc.subarray(ruleTexts.split("|"));

const anyCall: fc.Arbitrary<ToolCall> = fc.oneof(
  fc
    .constantFrom(
      "ls",
      "git push",
      "git status",
      "npm test",
      "cat src/a.ts",
      "cat .env",
      "rm -rf /",
      "ls; git push",
      "x",
      "cat *",
    )
    .map((command) => ({ tool: "Bash", args: { command } })),
  fc
    .tuple(
      fc.constantFrom("Read", "Edit", "Write", "FileEdit"),
      fc.constantFrom(
        `${ROOT}/src/a.ts`,
        `${ROOT}/.env`,
        "/etc/passwd",
        `${ROOT}/.git/config`,
        "/home/ann/x",
        "src/a.ts",
      ),
    )
    .map(([tool, file_path]) => ({ tool, args: { file_path } })),
  fc.constantFrom("mcp__a__b", "mcp__c__d", "Agent", "Unknown").map((tool) => ({ tool, args: {} })),
  fc.constant({ tool: "McpCall", args: { server: "a", tool: "b" } }),
  fc
    .constantFrom("https://example.com/", "http://docs.example.com")
    .map((url) => ({ tool: "WebFetch", args: { url } })),
);

const someRules = fc.record({ allow: anyRules, ask: anyRules, deny: anyRules });

test("another ask or deny rule never loosens, another allow rule never undoes a denial", () => {
  fc.assert(
    fc.property(
      fc.record({ rules: someRules, more: anyRules, call: anyCall, mode: anyMode }),
      ({ rules, more, call, mode }) => {
        const before = decide(call, contextOf(rules, { mode }));
        for (const list of ["ask", "deny"] as const) {
          const after = decide(call, contextOf({ ...rules, [list]: [...rules[list], ...more] }, { mode }));
          assert.ok(rank(after) >= rank(before), `${list}: ${before.reason} → ${after.reason}`);
        }
        const freer = decide(call, contextOf({ ...rules, allow: [...rules.allow, ...more] }, { mode }));
        if (before.kind === "deny") assert.equal(freer.kind, "deny", freer.reason);
      },
    ),
    { numRuns: 500 },
  );
});

test("a project's or local file only tightens, and what it may not set is reported", () => {
  const anyFile = fc.record(
    {
      allow: anyRules,
      ask: anyRules,
      deny: anyRules,
      mode: fc.constantFrom("default", "accept-edits", "plan"),
      additionalDirectories: fc.constant(["/etc"]),
      readOnlyPrograms: fc.constant([{ name: "npm" }]),
    },
    { requiredKeys: [] },
  );
  const anySandbox = fc.constantFrom("off", "auto", "required");
  const anyLayer = fc.constantFrom<Layer>("project", "local");
  const anyProject = fc.record({
    rules: someRules,
    permissions: anyFile,
    mode: anySandbox,
    layer: anyLayer,
    call: anyCall,
  });
  fc.assert(
    fc.property(anyProject, ({ rules, permissions, mode, layer, call }) => {
      const own = layerOf(rules);
      const text = JSON.stringify({ permissions, sandbox: { mode } });
      const read = parseSettings(text, { ...place, name: "settings.json", layer });
      assert.ok(read.kind === "settings");
      const before = mergeLayers([own]);
      const after = mergeLayers([read.settings, own]);
      const context = contextOf(rules);
      assert.ok(
        rank(decide(call, { ...context, policy: after })) >= rank(decide(call, { ...context, policy: before })),
      );
      assert.deepEqual(
        [after.mode, after.directories, after.readOnlyPrograms, after.allow],
        [before.mode, before.directories, before.readOnlyPrograms, before.allow],
      );
      assert.equal(after.sandbox, mode === "required" ? "required" : "auto");
      const refused = ["allow", "mode", "additionalDirectories", "readOnlyPrograms"].filter(
        (key) => key in permissions && !(key === "allow" && permissions.allow?.length === 0), // no rule, nothing refused
      );
      assert.deepEqual(
        after.notices.map((notice) => /permissions\.(\w+)/.exec(notice)?.[1]),
        refused,
      );
    }),
    { numRuns: 300 },
  );
});

test("every call gets an answer", () => {
  const context = contextOf({
    deny: ["Bash(rm:*)", "Read(./x/**)"],
    allow: ["Bash(ls:*)", "Edit(./src/**)"],
    ask: ["Read(.env)"],
  });
  const tools = fc.oneof(
    fc.constantFrom(
      "Bash",
      "Read",
      "Edit",
      "Write",
      "Grep",
      "McpCall",
      "WebFetch",
      "Agent",
      "__proto__",
      "constructor",
      "mcp__",
    ),
    fc.string(),
  );
  const keys = fc.oneof(
    fc.constantFrom("command", "file_path", "path", "url", "server", "tool", "__proto__"),
    fc.string(),
  );
  const anyArguments = fc.oneof(
    fc.dictionary(keys, fc.oneof(fc.string({ unit: anyCharacter }), fc.jsonValue())),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(tools, anyArguments, anyMode, (tool, args, mode) => {
      const decision = decide({ tool, args } as ToolCall, { ...context, mode });
      assert.ok(decision.kind in RANKS && decision.reason.length > 0);
    }),
    { numRuns: 2_000 },
  );
  for (const call of [undefined, null, 3, {}, { tool: 3, args: {} }, { tool: "Bash" }, { tool: "Bash", args: [] }]) {
    assert.equal(decide(call as unknown as ToolCall, context).kind, "deny");
  }
});

test("a guard whose parts throw denies", () => {
  const fails = (): never => {
    throw new Error("broken");
  };
  const command: ToolCall = { tool: "Bash", args: { command: "npm test" } };
  const reading: ToolCall = { tool: "Read", args: { file_path: `${ROOT}/a` } };
  const rules = { allow: ["Bash(npm test)", "Read"] };
  assert.deepEqual(
    [decide(command, contextOf(rules)).kind, decide(reading, contextOf(rules)).kind],
    ["allow", "allow"],
  );
  assert.equal(decide(command, contextOf(rules, { classify: fails })).kind, "deny");
  assert.equal(decide(command, contextOf(rules, { partsOf: fails })).kind, "deny");
  assert.equal(decide(reading, contextOf(rules, { otherNames: fails })).kind, "deny");
  assert.equal(decide(reading, contextOf(rules, { filter: fails })).kind, "deny");
});
