import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { test } from "node:test";
import { change, checkAndRun, git, type Place, place, repository } from "./place.ts";

const QUESTIONS: readonly string[] = [
  ...[
    "ls",
    "cat a.txt",
    "git status -s",
    "git log --oneline",
    "git diff",
    "rg -n --sort path text",
    "grep -rn text .",
    "find . -name '*.txt'",
  ],
  ...[
    "head -1 a.txt | sort | uniq -c",
    "awk '{print $1}' a.txt",
    "sed -n 1p a.txt",
    "jq -n 1",
    "date -u -d @0",
    "test -f a.txt",
  ],
  ...[
    "xargs -n1 echo < a.txt",
    "find . -name a.txt -exec cat {} +",
    "timeout 5 cat a.txt",
    "cd . && pwd",
    "command -v ls",
  ],
  ...[
    "tar -tf none.tar",
    "echo one two",
    "file a.txt",
    "wc -l a.txt",
    "du -s .",
    "ps -ef",
    "python3 --version",
    "node --version",
  ],
];

/** Programs with well-known names that leave a trace when they run. */
const shadow = (at: Place, folder: string): void => {
  const names = [
    "ls",
    "cat",
    "git",
    "rg",
    "grep",
    "find",
    "sort",
    "uniq",
    "awk",
    "sed",
    "jq",
    "date",
    "xargs",
    "echo",
    "test",
  ];
  at.put(`${folder}/.keep`);
  for (const name of [...names, "bash", "sh", "false", "true", "gzip", "timeout", "which", "head", "python3", "node"])
    symlinkSync(at.trap, at.at(folder, name));
};

const environments = (at: Place, repo: string): Readonly<Record<string, Readonly<Record<string, string>>>> => ({
  "programs of the folder first": { PATH: `.:${repo}:/usr/bin:/bin` },
  "programs of another folder first": { PATH: `${at.at("bin")}:/usr/bin:/bin` },
  "an empty way to programs": { PATH: "" },
  "start-up files of shells": {
    BASH_ENV: at.trap,
    ENV: at.trap,
    PROMPT_COMMAND: at.trap,
    PS4: `$(${at.trap})`,
    SHELLOPTS: "xtrace",
  },
  "exported functions": {
    "BASH_FUNC_ls%%": `() { ${at.trap}; }`,
    "BASH_FUNC_cat%%": `() { ${at.trap}; }`,
    "BASH_FUNC_git%%": `() { ${at.trap}; }`,
    "BASH_FUNC_exec%%": `() { ${at.trap}; }`,
    "BASH_FUNC_command%%": `() { ${at.trap}; }`,
  },
  "a library before all others": {
    LD_PRELOAD: at.at("none.so"),
    LD_LIBRARY_PATH: at.at("bin"),
    LD_AUDIT: at.at("none.so"),
  },
  "git's own variables": {
    ...{
      GIT_PAGER: at.trap,
      GIT_EXTERNAL_DIFF: at.trap,
      GIT_SSH_COMMAND: at.trap,
      GIT_ASKPASS: at.trap,
      GIT_EDITOR: at.trap,
    },
    ...{ GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "core.fsmonitor", GIT_CONFIG_VALUE_0: at.trap },
    ...{
      GIT_CONFIG_PARAMETERS: `'core.fsmonitor=${at.trap}'`,
      GIT_CONFIG_GLOBAL: at.at("global.cfg"),
      GIT_EXEC_PATH: at.at("bin"),
    },
    ...{ GIT_DIR: at.at("other/.git"), GIT_WORK_TREE: "/", GIT_INDEX_FILE: at.at("none"), GIT_TRACE: at.at("trace") },
    ...{
      GIT_TRACE2_EVENT: at.at("trace"),
      GIT_TEMPLATE_DIR: at.at("bin"),
      GIT_NAMESPACE: "x",
      GIT_PROXY_COMMAND: at.trap,
    },
  },
  "settings of tools": {
    ...{ RIPGREP_CONFIG_PATH: at.at("rg.cfg"), TAR_OPTIONS: `--to-command=${at.trap}`, GREP_OPTIONS: "-f/etc/passwd" },
    ...{
      LESSOPEN: `|${at.trap} %s`,
      PAGER: at.trap,
      MANPAGER: at.trap,
      EDITOR: at.trap,
      AWKPATH: at.at("bin"),
      GZIP: "-f",
    },
    ...{
      PYTHONSTARTUP: at.trap,
      PYTHONPATH: at.at("bin"),
      PERL5OPT: "-Mnone",
      RUBYOPT: "-rnone",
      JQ_COLORS: "x",
      FIND_OPTIONS: "x",
    },
  },
  "odd rules for words": {
    POSIXLY_CORRECT: "1",
    IFS: "/ae",
    CDPATH: at.at("bin"),
    GLOBIGNORE: "*",
    BASHOPTS: "failglob",
    TMPDIR: at.at("none"),
  },
  "odd languages and zones": {
    LC_ALL: "../../x",
    LANG: "tr_TR.UTF-8",
    LOCPATH: at.path,
    TZ: at.at("rg.cfg"),
    TZDIR: at.path,
    NLSPATH: at.at("%N"),
  },
});

test("no variable of the environment reaches a program, and the answers stay the same", async () => {
  using at = place();
  const repo = repository(at.at("repo"));
  change(repo);
  repository(at.at("other"));
  shadow(at, "bin");
  shadow(at, "repo");
  at.put("global.cfg", `[core]\n\tfsmonitor = ${at.trap}\n\tpager = ${at.trap}\n`);
  at.put("rg.cfg", `--pre=${at.trap}\n`);
  at.put("repo/.jq", `include "none";`);
  at.put("repo/.gitconfig", `[core]\n\tfsmonitor = ${at.trap}\n`);
  at.put("repo/.bashrc", at.trap);
  at.put("repo/.profile", at.trap);
  git(repo, "config", "core.excludesFile", at.at("none"));
  const usual = await checkAndRun(QUESTIONS, { cwd: repo });
  assert.deepEqual(
    usual.filter(({ readOnly }) => !readOnly),
    [],
  );
  for (const [name, env] of Object.entries(environments(at, repo))) {
    const answers = await checkAndRun(QUESTIONS, { cwd: repo, env });
    assert.ok(!at.sprung(), `${name}: a foreign program was started`);
    const varies = /^ps /;
    const comparable = (list: typeof usual) =>
      list.filter(({ cmd }) => !varies.test(cmd)).map(({ cmd, stdout, exitCode }) => ({ cmd, stdout, exitCode }));
    assert.deepEqual(comparable(answers), comparable(usual), name);
  }
});

test("keys of the environment are not shown", async () => {
  using at = place();
  at.put("a.txt", "x\n");
  const env = { ANTHROPIC_API_KEY: "key-that-must-not-be-seen", AWS_SECRET_ACCESS_KEY: "key-that-must-not-be-seen" };
  const commands = [
    ...[
      "ps -ef",
      "ps aux",
      "ps -auxe",
      "ps axe",
      "ps -eo pid,args",
      "ps -eo environ",
      "jq -n env",
      "jq -n '$ENV'",
      "awk 'BEGIN{print ENVIRON[1]}'",
    ],
    ...[
      "cat /proc/self/environ",
      "cat /proc/*/environ",
      "cat /pro?/self/environ",
      "cat /p*/*/environ",
      "grep -ra key /proc",
      "printenv",
      "env",
    ],
    ...[
      "cd / && cat proc/self/environ",
      "cd / && grep -rs must-not . --include=environ",
      "cd /proc && ls",
      "cat ../../../../../../proc/self/environ",
    ],
    ...[
      "strings /proc/self/environ",
      "xargs -0 -n1 echo < /proc/self/environ",
      "find /proc -name environ -exec cat {} +",
      "echo $ANTHROPIC_API_KEY",
    ],
    ...[
      "cd / && cat p*/self/environ",
      "head -c 99 /proc/thread-self/environ",
      "cd / && rg -a must-not -g environ",
      "grep -rs must-not / --include=environ",
    ],
  ];
  const answers = await checkAndRun(commands, { cwd: at.path, env });
  assert.equal(answers.length, commands.length);
  for (const { cmd, stdout = "" } of answers) assert.ok(!stdout.includes("must-not-be-seen"), cmd);
});
