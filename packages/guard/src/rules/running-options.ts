/** Which words may follow an allowed command: what does `:*` match in an allow rule?
 *  Invariant: for the commands in this table, `:*` matches names inside the project and the options that are listed
 *  here. An unlisted option is asked about again, because it may make the program run, load or overwrite something
 *  that nobody named. For other commands, whose rules only people write, it matches everything except options that are
 *  known to do so. This applies only to allow rules.
 *  Elsewhere: what a rule covers (bash-rules.ts), which rules are suggested (suggest.ts). */

type Command = {
  /** Options without a value. */
  readonly flags?: string;
  /** Options with a plain value, as the next word or attached by `=`. */
  readonly valued?: string;
  /** After `--` come the arguments of the project's own script. */
  readonly script?: true;
  /** Operands that are refused. */
  readonly not?: RegExp;
};

const SCRIPT: Command = { flags: "--silent -s --if-present", script: true };
const CARGO: Command = {
  flags:
    "--all --workspace --release --all-features --no-default-features --all-targets --lib --bins --tests --examples " +
    "--no-fail-fast --locked --offline --frozen -q --quiet -v -vv --verbose --no-run --nocapture --check --no-deps --fix",
  valued: "-p --package --features -F --test --bin --example -j --jobs --exclude --test-threads --message-format",
};
const GO: Command = {
  flags: "-v -race -short -cover -failfast -json -x -n -a -l -w -s -d",
  valued: "-run -count -timeout -bench -skip -parallel -cpu -tags -covermode",
};
const REMOTE: Command = {
  flags:
    "--all --prune -p --tags -t --no-tags --rebase --no-rebase --ff-only --no-ff -q --quiet -v --verbose --unshallow --autostash -r",
  valued: "--depth",
  not: /:/,
};
const SHOWN: Command = {
  flags: "-a --all --json --long -l -q --quiet -g --global --production --prod",
  valued: "--depth",
};
const CONTAINERS: Command = {
  flags: "-a --all -q --quiet -f --follow -t --timestamps --no-trunc -l --latest -s --size",
  valued: "-n --tail --since --until --format --filter",
};
const KUBECTL: Command = {
  flags: "-A --all-namespaces --show-labels --no-headers -w --watch -f --follow --previous --timestamps",
  valued: "-n --namespace -o --output -l --selector --tail --since -c --container --sort-by",
  not: /secret/i,
};
const TESTS =
  "--run --coverage --watch -w --watchAll --verbose --silent --bail -u --updateSnapshot --runInBand -i --ci --passWithNoTests " +
  "--no-coverage --changed -o --onlyChanged --no-cache --cache --quiet --no-color --color";
const TEST_VALUES =
  "-t --testNamePattern --testPathPattern --grep -g --max-warnings --ext --maxWorkers --shard --project";

/** By the words that name the command. A star matches any one plain word. */
const COMMANDS: Readonly<Record<string, Command>> = {
  "npm run *": SCRIPT,
  "npm run-script *": SCRIPT,
  "npm test": SCRIPT,
  "npm t": SCRIPT,
  "npm ls": SHOWN,
  "npm outdated": SHOWN,
  "pnpm run *": SCRIPT,
  "pnpm test": SCRIPT,
  "yarn run *": SCRIPT,
  "yarn test": SCRIPT,
  ...{
    "cargo build": CARGO,
    "cargo check": CARGO,
    "cargo test": CARGO,
    "cargo clippy": CARGO,
    "cargo fmt": CARGO,
    "cargo doc": CARGO,
    "cargo bench": CARGO,
  },
  "cargo nextest run": CARGO,
  ...{ "go build": GO, "go test": GO, "go vet": GO, "go fmt": GO },
  "git add": { flags: "-A --all -u --update -p --patch -n --dry-run -v --verbose -N --intent-to-add -f --force" },
  "git commit": {
    flags: "-a --all --amend --no-edit -q --quiet -s --signoff --allow-empty -v --verbose --dry-run",
    valued: "-m -am --message --fixup --author --date",
  },
  "git fetch": REMOTE,
  "git pull": REMOTE,
  "git stash push": { flags: "-u --include-untracked -k --keep-index -q", valued: "-m --message" },
  "git stash pop": { flags: "--index -q" },
  "git stash list": {},
  "git switch": { flags: "- -d --detach -q --quiet", valued: "-c --create" },
  "docker ps": CONTAINERS,
  "docker logs": CONTAINERS,
  ...{ "kubectl get": KUBECTL, "kubectl describe": KUBECTL, "kubectl logs": KUBECTL },
  "terraform validate": { flags: "-json -no-color" },
  "terraform fmt": { flags: "-check -diff -recursive" },
  "make *": { flags: "-k -s -n -B --silent --keep-going --dry-run --always-make -j", valued: "-j --jobs", not: /=/ },
  tsc: { flags: "--noEmit -w --watch --pretty --strict -b --build --force --verbose", valued: "-p --project" },
  eslint: {
    flags: "--fix --fix-dry-run --quiet --cache --no-cache --color --no-color",
    valued: "--max-warnings --ext",
  },
  prettier: { flags: "--check -c --write -w --list-different -l --log-level" },
  biome: { flags: "--write --fix --unsafe --staged --changed", valued: "--max-diagnostics" },
  vitest: { flags: TESTS, valued: TEST_VALUES },
  jest: { flags: TESTS, valued: TEST_VALUES },
  mocha: { flags: "--bail -b --watch -w --exit", valued: "-g --grep -f --fgrep -t --timeout" },
  pytest: {
    flags:
      "-q -qq -v -vv -vvv -x -s -l --lf --ff --last-failed --failed-first --exitfirst --sw --no-header -ra --co --collect-only",
    valued: "-k -m --maxfail --tb --durations -n",
  },
  ruff: { flags: "--fix --diff --check -q --quiet -v --watch --no-cache", valued: "--select --ignore --line-length" },
  mypy: { flags: "--strict --no-incremental --pretty -v" },
  black: { flags: "--check --diff -q --quiet -v", valued: "-l --line-length" },
  flake8: { flags: "-q -v --count", valued: "--max-line-length --select --ignore" },
  shellcheck: { flags: "-x -a", valued: "-s --shell -S --severity -e --exclude -f --format" },
  rubocop: { flags: "-a -A --autocorrect --parallel -P" },
  rspec: { flags: "--fail-fast --profile -b", valued: "-e --example -t --tag --seed" },
  ctest: { flags: "-V -VV --output-on-failure -N -Q", valued: "-R -E -j --parallel -L -C" },
};

const listOf = (names = ""): readonly string[] => names.split(" ").filter((name) => name !== "");

/** The command in the table that these words begin with, and how many words it has. */
const commandOf = (words: readonly string[]): { readonly command: Command; readonly words: number } | undefined => {
  for (let count = Math.min(words.length, 3); count > 0; count -= 1) {
    const first = words.slice(0, count);
    const isStarred = count > 1 && isPlain(first.at(-1) ?? "");
    const forms = [first, ...(isStarred ? [[...first.slice(0, -1), "*"]] : [])].map((form) => form.join(" "));
    const name = forms.find((form) => Object.hasOwn(COMMANDS, form));
    const command = name === undefined ? undefined : COMMANDS[name];
    if (command) return { command, words: count };
  }
  return undefined;
};

/** How many words of a command a rule with `:*` keeps; undefined if only a rule for the whole command is safe. */
export const starredWords = (words: readonly string[]): number | undefined => commandOf(words)?.words;

/** A name inside the project, a number or a pattern; not a path that leads out of it, and no text for a shell. */
const isPlain = (word: string): boolean =>
  /^[\w@.,+%^][\w@.,:+%^/*-]*$/.test(word) && !/(?:^|\/)\.\.(?:\/|$)|::/.test(word);

const isPlainMessage = (word: string): boolean => !/^-/.test(word);

const MESSAGES: readonly string[] = ["-m", "-am", "--message", "-k", "-t", "-run", "--grep", "-g", "-e"];

const coveredBy = ({ flags, valued, script, not }: Command, rest: readonly string[]): boolean => {
  const [plain, taking] = [listOf(flags), listOf(valued)];
  for (let at = 0; at < rest.length; at += 1) {
    const word = rest[at] ?? "";
    if (word === "--")
      return rest.slice(at + 1).every((one) => (script ? isScriptWord(one) : isPlain(one) || plain.includes(one)));
    if (!/^-/.test(word) || plain.includes(word)) {
      if (!plain.includes(word) && (!isPlain(word) || not?.test(word))) return false;
      continue;
    }
    const [name = word, value] = word.split(/=(.*)/s);
    const glued = taking.find((option) => /^-[a-zA-Z]$/.test(option) && new RegExp(`^${option}\\d+$`).test(word));
    if (glued !== undefined) continue;
    if (!taking.includes(name)) return false;
    const given = value ?? rest[++at] ?? "";
    if (!(MESSAGES.includes(name) ? isPlainMessage(given) : isPlain(given) || /^\d*$/.test(given)) || not?.test(given))
      return false;
  }
  return true;
};

/** For a script of the project: no path out of it, no text, and no option that commonly takes a program. */
const isScriptWord = (word: string): boolean =>
  /^-{0,2}[\w@.,:+%^=/*?[\]{}-]*$/.test(word) &&
  !/(?:^|[=/])\.\.(?:\/|$)|^\/|=[/~]/.test(word) &&
  !/^-(?:e|c|p|r)$|^--?(?:eval|exec|print|require|import|loader|config|shell|command)\b/.test(word);

type Running = {
  readonly long: readonly string[];
  readonly short?: string;
  readonly words?: RegExp;
};

const known = (long: string, short = "", words?: RegExp): Running => ({
  long: listOf(long),
  short,
  ...(words ? { words } : {}),
});

/** For commands that are not in the table: options known to run or load something. Lower case, without dashes. */
const RUNNING: Readonly<Record<string, Running>> = {
  git: known("upload-pack receive-pack exec config config-env template open-files-in-pager", "", /::/),
  make: known("eval file makefile include-dir directory", "fICE", /^[\w.]+\s*(?:[:+?!]|::|:::)?=/),
  npm: known("node-options script-shell prefix userconfig globalconfig shell init-module git editor viewer registry"),
  pnpm: known("node-options script-shell prefix dir config shell"),
  yarn: known("cwd node-options script-shell"),
  go: known("exec toolexec vettool overlay modfile pkgdir c o ldflags"),
  cargo: known("config manifest-path target-dir out-dir artifact-dir", "Z"),
  docker: known("config host context build-context output secret ssh volume mount privileged", "Hv"),
  kubectl: known("kubeconfig server token as raw", "s", /secret/i),
  just: known("shell shell-arg justfile working-directory set dotenv-path command chooser", "fdc"),
  mvn: known("settings global-settings file toolchains", "sfgt", /^-D(?:maven\.ext|java|exec\.|argline)/i),
  gradle: known("init-script include-build project-dir build-file settings-file", "Ipbc", /jvmargs|javaagent/i),
  dotnet: known("property test-adapter-path", "", /^[-/]p(?:roperty)?:/i),
  bazel: known("run_under override_repository workspace_status_command package_path shell_executable action_env"),
  mix: known("require eval", "re"),
};

/** How much of a long option is needed to tell it apart from others. */
const SHORTEST = 2;

const goesBeyond = ({ long, short = "", words }: Running, rest: readonly string[]): boolean => {
  const end = rest.indexOf("--");
  return (end < 0 ? rest : rest.slice(0, end)).some((word) => {
    if (words?.test(word)) return true;
    if (!/^-./.test(word)) return false;
    // Some programs accept any case, `_` instead of `-`, and one dash instead of two.
    const name = (word.split("=", 1)[0] ?? word).replace(/^-+/, "").toLowerCase();
    const plain = name.replaceAll("_", "-");
    const isLong = long.some(
      (one) => one === name || one === plain || (plain.length >= SHORTEST && one.startsWith(plain)),
    );
    const letters = /^-([a-zA-Z]+)/.exec(word)?.[1]?.replace(/[DP].*$/, "") ?? ""; // `-Dname` is a property
    return isLong || [...letters].some((letter) => short.includes(letter));
  });
};

/** May these words follow those of a rule that ends in `:*`? If the rule's words are not in the table, a person wrote
 *  the rule. */
export const coversRest = (words: readonly string[], rest: readonly string[]): boolean => {
  const found = commandOf(words);
  if (found?.words === words.length) return coveredBy(found.command, rest);
  const program = words[0] ?? "";
  const running = Object.hasOwn(RUNNING, program) ? RUNNING[program] : undefined;
  return running === undefined || !goesBeyond(running, rest);
};
