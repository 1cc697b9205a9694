/** Completion scripts in the real shells: bash, and zsh and fish where the machine has them.
 *  The names that `prefork __complete` prints come from a small script here, so that one process of each shell answers
 *  all questions; what the real one prints is compared with sessions in a folder. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempDisposableSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { say, startSimulator } from "@prefork/simulator";
import { run } from "../src/main.ts";
import { captured } from "./captured.ts";

const printed = async (argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> => {
  const io = captured({ env });
  assert.equal(await run(argv, io), 0, io.errors());
  assert.equal(io.errors(), "");
  return io.text();
};

const TITLE = `Don't "break" $(touch broken) \`touch broken\`; a:b \\ * ~`;

/** A folder with a `prefork` that knows two sessions, two tasks and a key, and with files that need quoting. */
const openPlace = async (shell: string) => {
  const folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-completion-"));
  const [bin, script] = [join(folder.path, "bin"), join(folder.path, "script")];
  mkdirSync(bin);
  mkdirSync(join(folder.path, "it's a folder"));
  writeFileSync(join(folder.path, "names"), `ab12\t${TITLE}\nab34\tsecond\nx9\tthird\n`);
  const names = `case $2 in session) cat '${folder.path}/names' ;; task) printf 'task-1\\tfirst\\n' ;; key) printf 'forks.enabled\\tMay agents fork?\\n' ;; value) [ "$3" = forks.enabled ] && printf 'true\\t\\nfalse\\t\\n' ;; esac`;
  writeFileSync(join(bin, "prefork"), `#!/bin/sh\n${names}\nexit 0\n`);
  chmodSync(join(bin, "prefork"), 0o755);
  writeFileSync(script, await printed(["completion", shell]));
  const ask = (program: string, args: readonly string[]): string => {
    const env = { PATH: `${bin}:${process.env.PATH}`, HOME: folder.path, TERM: "dumb" };
    const { stdout, stderr, status } = spawnSync(program, args, { cwd: folder.path, env, encoding: "utf8" });
    assert.deepEqual([status, stderr], [0, ""], stdout);
    return stdout;
  };
  return { path: folder.path, script, ask, [Symbol.dispose]: () => folder.remove() };
};

/** What is typed, and what is offered. Each shell sorts in its own way, so lists are compared sorted. */
const LINES: readonly (readonly [line: string, offered: readonly string[]])[] = [
  ["prefork sess", ["sessions"]],
  ["prefork sessions ", ["delete", "export", "list", "rename", "rewind", "search", "show", "tree"]],
  ["prefork sessions s", ["search", "show"]],
  ["prefork sessions --a", ["--all"]],
  ["prefork sessions show ", ["ab12", "ab34", "x9"]],
  ["prefork sessions show ab", ["ab12", "ab34"]],
  ["prefork sessions show ab12 ", []],
  ["prefork sessions delete --forks ab12 x", ["x9"]],
  ["prefork sessions show --js", ["--json"]],
  ["prefork tasks list --session x", ["x9"]],
  ["prefork tasks stop ", ["task-1"]],
  ["prefork worktrees merge task-1 t", ["task-1"]],
  ["prefork -p --output-format ", ["events", "json", "stream-json", "text"]],
  ["prefork -p --resume a", ["ab12", "ab34"]],
  ["prefork -p --model x --permission-mode p", ["plan"]],
  ["prefork --append", ["--append-system-prompt"]],
  ["prefork config set fo", ["forks.enabled"]],
  ["prefork config set forks.enabled ", ["false", "true"]],
  ["prefork config set --scope ", ["local", "project", "user"]],
  ["prefork completion ", ["bash", "fish", "zsh"]],
  ["prefork help wor", ["worktrees"]],
  ["prefork cache c", ["cost"]],
  ["prefork sessions show -- ab1", ["ab12"]],
  ["prefork nothing ", []],
];

const sorted = (text: string): readonly (readonly string[])[] =>
  text
    .split("\0")
    .slice(0, -1)
    .map((block) =>
      block
        .split("\n")
        .filter((line) => line !== "")
        .toSorted(),
    );

test("bash offers commands, options, choices, sessions, tasks and settings, and evaluates nothing of a title", async () => {
  using place = await openPlace("bash");
  assert.match(
    (await printed(["completion", "bash"])).split("\n").slice(0, 3).join("\n"),
    /^# .* To install it for you:\n# .*\n# {3}prefork completion bash > /,
  );
  // Splits a line as readline does, at white space and at = and :, and prints what the function offers.
  const offer = `
    set -eu; set +eu
    source '${place.script}'
    compopt() { printf 'compopt %s\\n' "$*"; }
    offer() {
      COMP_LINE=$1 COMP_POINT=\${#1} COMP_TYPE=\${2-9}
      local spaced=\${1//=/ = }; read -ra COMP_WORDS <<< "$spaced"
      case $1 in *' ') COMP_WORDS+=('') ;; esac
      COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
      _prefork; printf '%s\\n' "\${COMPREPLY[@]}"; printf '\\0'
    }
    [[ $(complete -p prefork) == 'complete -F _prefork prefork' ]] || exit 9
    COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
    while IFS= read -r line; do offer "$line"; done <<< ${quotedLines(LINES)}
    offer 'prefork -p --output-format=js'
    offer 'prefork sessions show ab' 63
    offer 'prefork sessions export ab12 -o '
    offer 'prefork --cwd '
    COMP_WORDBREAKS=$' \\t\\n'
    offer 'prefork -p --output-format=js'
  `;
  const blocks = sorted(place.ask("bash", ["--norc", "--noprofile", "-c", offer]));
  assert.deepEqual(
    LINES.map(([line], index) => [line, blocks[index]]),
    LINES,
  );
  assert.deepEqual(blocks.slice(LINES.length), [
    ["json"],
    [`ab12  ${TITLE}`, "ab34  second"],
    ["compopt -o default"],
    ["compopt -o dirnames"],
    ["--output-format=json"],
  ]);
  assert.equal(place.ask("ls", []), "bin\nit's a folder\nnames\nscript\n");
});

const quotedLines = (lines: typeof LINES): string => `'${lines.map(([line]) => line).join("\n")}'`;

const lacks = (program: string) => ({
  skip: spawnSync(program, ["--version"]).status === 0 ? false : `${program} is not installed`,
});

test("zsh offers the same, with descriptions", lacks("zsh"), async () => {
  using place = await openPlace("zsh");
  const offer = `
    compdef() { registered="$*" }
    source '${place.script}'
    [[ $registered == '_prefork prefork' ]] || exit 9
    # What zsh would match: the words that start like the current one, without their descriptions.
    _describe() {
      local item; for item in "\${(@P)@[-1]}"; do
        item=\${\${item//\\\\:/$'\\1'}%%:*}; item=\${item//$'\\1'/:}
        [[ $item == "\${PREFIX}"* ]] && print -r -- "$item"
      done
      if [[ -n \${describing-} ]]; then print -rl -- "\${(@P)@[-1]}"; fi
    }
    _files() { print -r -- "files $*" }
    compset() { PREFIX=\${PREFIX#*=} }
    offer() {
      words=("\${(@z)1}"); [[ $1 == *' ' ]] && words+=('')
      CURRENT=\${#words}; PREFIX=\${words[CURRENT]}
      _prefork; printf '\\0'
    }
    while IFS= read -r line; do offer "$line"; done <<< ${quotedLines(LINES)}
    offer 'prefork -p --output-format=js'
    offer 'prefork sessions export ab12 -o '
    offer 'prefork --cwd '
    describing=1
    offer 'prefork sessions show ab1'
  `;
  const blocks = sorted(place.ask("zsh", ["-f", "-c", offer]));
  assert.deepEqual(
    LINES.map(([line], index) => [line, blocks[index]]),
    LINES,
  );
  assert.deepEqual(blocks.slice(LINES.length), [
    ["json"],
    ["files"].map((name) => `${name} `),
    ["files -/"],
    ["ab12", `ab12:${TITLE}`, "ab34:second", "x9:third"],
  ]);
  assert.equal(place.ask("ls", []), "bin\nit's a folder\nnames\nscript\n");
});

test("fish offers the same, with descriptions", lacks("fish"), async () => {
  using place = await openPlace("fish");
  const offer = `
    source '${place.script}'
    function offer
        complete -C $argv[1]
        printf '\\0'
    end
    for line in ${LINES.map(([line]) => `'${line}'`).join(" ")}
        offer $line
    end
    offer 'prefork -p --output-format=js'
    offer 'prefork sessions export ab12 -o na'
    offer 'prefork --cwd it'
    offer 'prefork sessions show ab1'
  `;
  const text = place.ask("fish", ["--no-config", "-c", offer]);
  const blocks = sorted(text.replace(/\t.*$/gm, ""));
  assert.deepEqual(
    LINES.map(([line], index) => [line, blocks[index]]),
    LINES,
  );
  assert.deepEqual(blocks.slice(LINES.length), [["--output-format=json"], ["names"], ["it's a folder/"], ["ab12"]]);
  assert.ok(text.endsWith(`ab12\t${TITLE}\n\0`), text.slice(-200));
  assert.equal(place.ask("ls", []), "bin\nit's a folder\nnames\nscript\n");
});

test("the running program names sessions with their titles, settings with their values, and prints no errors", async () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-completion-"));
  await using simulator = await startSimulator({ script: () => say("done") });
  const env = { HOME: folder.path, XDG_STATE_HOME: join(folder.path, "state") };
  const ids = ["first", "second"];
  for (const id of ids) {
    await using session = await createSession({
      engine: anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } }),
      ...{ cwd: folder.path, home: folder.path, environment: env, ids: { next: () => id } },
    });
    await session.prompt(`${id}: it's\t"quoted"\u001b[2J\nand more`).result();
  }
  assert.deepEqual((await printed(["__complete", "session"], env)).split("\n").toSorted(), [
    "",
    ...ids.map((id) => `${id}\t${id}: it's "quoted" [2J (${folder.path})`),
  ]);
  assert.match(await printed(["__complete", "key"], env), /^forks\.maxTurns\tTurns of one fork\. /m);
  assert.equal(await printed(["__complete", "value", "terminal.keys"], env), "default\t\nvi\t\n");
  assert.equal(await printed(["__complete", "task"], env), "");
  for (const argv of [["nonsense"], [], ["value", "nope"]])
    assert.equal(await printed(["__complete", ...argv], env), "");
  chmodSync(join(folder.path, "state/prefork"), 0o777);
  assert.equal(await printed(["__complete", "session"], env), "");
});
