/** Which words after an allowed command have its program run, load or overwrite something that the rule does not name?
 *  Invariant: asked of what `:*` stands for, before a `--`: words for files and names pass, and so do options that are not
 *  known to name a program, a module, a configuration or a place to write. To allow only; what denies looks elsewhere.
 *  Elsewhere: what a rule covers (bash-rules.ts), which rules are suggested (suggest.ts). */

type Running = {
  /** Long options with their dashes. Cut short they count as well, since many programs take them so. */
  readonly long?: string;
  /** The same where their value is a path; a plain word names something that the program brings along. */
  readonly files?: string;
  /** Letters of short options, also behind another letter and with a value glued to them. */
  readonly short?: string;
  /** Any other word. */
  readonly words?: RegExp;
};

const MAKE: Running = {
  long: "--eval --file --makefile --include-dir --directory",
  short: "fICE",
  words: /^\w+[:+?]?=/,
};
const NPM: Running = {
  long:
    "--node-options --script-shell --prefix --userconfig --globalconfig --shell --init-module --git --editor --viewer " +
    "--registry --dir --cwd --use-node-version",
  short: "C",
};
const SCRIPTS: Running = {
  long: "--node-option --outDir --outFile --declarationDir --tsBuildInfoFile --generateTrace --globalSetup --outputFile",
  files:
    "--config --rulesdir --resolve-plugins-relative-to --plugin --parser --format --output-file --require --import " +
    "--loader --setupFiles --setupFilesAfterEnv --globalTeardown --transform --runner --testRunner --testEnvironment " +
    "--reporter --reporters --resolver --root --rootDir",
};
const PYTHON: Running = {
  long: "--python-executable --import-mode --override-ini --init-hook",
  files: "--config --config-file --rootdir --confcutdir --basetemp --plugin --output --junit-xml --settings",
};

/** By program. */
const RUNNING: Readonly<Record<string, Running>> = {
  git: {
    long: "--upload-pack --receive-pack --exec --config --config-env --template --open-files-in-pager",
    words: /::/,
  },
  make: MAKE,
  gmake: MAKE,
  npm: NPM,
  pnpm: NPM,
  yarn: NPM,
  npx: { ...NPM, long: `${NPM.long} --package --call`, short: "Cpc" },
  go: { long: "-exec -toolexec -vettool -overlay -modfile -pkgdir", words: /extld/ },
  cargo: { long: "--config --manifest-path --target-dir --out-dir --artifact-dir", short: "Z" },
  docker: {
    long: "--config --host --context --build-context --output --secret --ssh",
    short: "H",
    words: /^(?:[/~]|\.\.)/,
  },
  kubectl: {
    long: "--kubeconfig --server --token --as --raw",
    short: "s",
    words: /^secrets?(?:[/.,]|$)|,secrets?(?:,|$)/,
  },
  terraform: { long: "-chdir -plugin-dir -config -backend-config -generate-config-out" },
  just: {
    long: "--shell --shell-arg --justfile --working-directory --set --dotenv-path --command --chooser",
    short: "fdc",
  },
  mvn: {
    long: "--settings --global-settings --file --toolchains",
    short: "sfgt",
    words: /^-D(?:maven\.ext|java\.|exec\.)/,
  },
  gradle: { long: "--init-script --include-build --project-dir --build-file --settings-file", short: "Ipbc" },
  dotnet: { long: "--property --test-adapter-path", words: /^[-/]p(?:roperty)?:/ },
  poetry: { long: "--directory --project", short: "CP" },
  uv: { long: "--with --with-editable --directory --project --config-file --index-url --find-links" },
  pip: {
    long: "--target --prefix --root --index-url --extra-index-url --find-links --python --config-settings",
    short: "tif",
  },
  bundle: { long: "--gemfile --path" },
  swift: { long: "--package-path --scratch-path --toolchain --sdk" },
  bazel: { long: "--run_under --override_repository --workspace_status_command --package_path --shell_executable" },
  mix: { long: "--require --eval", short: "re" },
  ...Object.fromEntries("tsc biome prettier".split(" ").map((name) => [name, SCRIPTS])),
  eslint: { ...SCRIPTS, short: "cfo" },
  jest: { ...SCRIPTS, short: "c" },
  vitest: { ...SCRIPTS, short: "cr" },
  mocha: { ...SCRIPTS, short: "rR" },
  pytest: { ...PYTHON, short: "pco" },
  ...Object.fromEntries("ruff mypy black flake8".split(" ").map((name) => [name, PYTHON])),
  shellcheck: { files: "--rcfile --source-path", short: "P" },
  rubocop: { long: "--require", files: "--config --plugin --format --out", short: "rco" },
  rspec: { long: "--require --options", files: "--format --out --default-path", short: "rIO" },
  ctest: {
    long: "--build-and-test --script --build-makeprogram --launch",
    files: "--test-dir --output-log",
    short: "SO",
  },
};

const namesIn = (list = ""): readonly string[] => list.split(" ").filter((name) => name !== "");

/** So much of a long option has to be there before it can be told from others. */
const SHORTEST = 4;

const isOneOf = (names: readonly string[], name: string): boolean =>
  names.some((long) => name === long || (name.length >= SHORTEST && long.startsWith(name)));

/** The words that a rule's `:*` stands for: is one of them more than that? */
export const goesBeyond = (program: string, words: readonly string[]): boolean => {
  const running = Object.hasOwn(RUNNING, program) ? RUNNING[program] : undefined;
  if (!running) return false;
  const end = words.indexOf("--");
  const own = end < 0 ? words : words.slice(0, end);
  const [long, files] = [namesIn(running.long), namesIn(running.files)];
  return own.some((word, at) => {
    if (running.words?.test(word)) return true;
    if (!/^-./.test(word)) return false;
    const [name = word, value = own[at + 1] ?? ""] = word.split(/=(.*)/s);
    if (isOneOf(long, name) || (isOneOf(files, name) && /[./~]/.test(value))) return true;
    return hasLetter(word, running.short ?? "");
  });
};

/** `-C dir`, `-Cdir`, `-kC dir`. What is longer is a value behind the first letter. */
const hasLetter = (word: string, letters: string): boolean => {
  const cluster = /^-([a-zA-Z]+)/.exec(word)?.[1] ?? "";
  return [...(cluster.length > 3 ? cluster.slice(0, 1) : cluster)].some((letter) => letters.includes(letter));
};
