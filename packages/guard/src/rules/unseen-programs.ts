/** Which programs take their program from standard input, a descriptor, a substitution, or a file that the same text writes? And
 *  which texts in a command could be that program?
 *  Invariant: errs towards "could": any text that appears in the command may be what such a program receives. What is fetched or
 *  computed at run time is not visible.
 *  Elsewhere: what such a text could run (programs-with-programs.ts), parsing the text (shell-words.ts). */

import { COMPUTED, type ShellCommand, type ShellWord } from "./shell-words.ts";

const nameOf = ({ text }: ShellWord): string => (text.split("/").at(-1) ?? "").toLowerCase();

const SHELL = /^(?:(?:|r|ba|z|da|k|mk|a|fi|c|tc)sh|\.|source)$/;

/** Programs with a language of their own: these take their program from the first file operand … */
const SCRIPTED =
  /^(?:python[\d.]*|pypy[\d.]*|node(?:js)?|deno|bun|tsx|ts-node|perl[\d.]*|ruby|php[\d.]*|lua(?:jit)?[\d.]*|tclsh[\d.]*|wish|expect|[gmn]?awk|g?sed|rscript|julia|octave|runghc|scala|groovy|osascript|pwsh|powershell|gnuplot|guile|racket|sbcl|clisp|elixir|ocaml)$/;

/** … and these from standard input, whatever their operands. */
const COMMANDED =
  /^(?:irb|gdb|lldb|g?make|ed|ex|vim?|nvim|emacs|psql|mysql|mariadb|sqlite3|r|ghci|jshell|m4|ftp|sftp|erl|iex|cmake|ninja|just|task|docker|podman|ssh|at|batch|crontab|parallel)$/;

/** Their standard input is data and never run. */
const TAKES_DATA =
  /^(?:sort|less|more|column|xclip|xsel|pbcopy|wl-copy|base(?:32|64)|gzip|gunzip|zcat|xz|bzip2|zstd|openssl|gpg|curl|wget|mail|sendmail|gh|glab|yq|bc|sponge|pv|hexdump|xxd|hd|iconv|dos2unix|fmt|pr|tar|cpio|zip|unzip|git|rg|read|mapfile|readarray|xargs|shuf|split|csplit|expand|unexpand|npm|pnpm|yarn|npx|cargo|kubectl|helm|jest|vitest|tsc|eslint|prettier)$/;

/** They pass on their words, or what they read. */
const PRINTER = /^(?:echo|printf|cat|tee|head|tail|tr|cut|rev|tac|fold|paste|nl|uniq|base64|sort)$/;

/** They write, create or rename the files that their words name. */
const WRITER = /^(?:tee|cp|mv|ln|install|dd|mkfifo|sponge)$/;

const DESCRIPTOR = /^(?:-|\/dev\/(?:stdin|fd\/\d+)|\/proc\/[^/]+(?:\/task\/[^/]+)?\/fd\/\d+)$/;

/** Standard input or another descriptor, as a file's name. */
export const isDescriptor = ({ text }: ShellWord): boolean => DESCRIPTOR.test(text);

const isOption = ({ text }: ShellWord): boolean => /^-./.test(text);

/** What a text contains besides its commands. */
export type Written = {
  /** Everything such a program could receive: words of programs that print them, standard input, values of variables. */
  readonly texts: readonly { readonly text: string; readonly isWhole: boolean }[];
  /** Last names of files that are written. */
  readonly files: ReadonlySet<string>;
  /** Which files were copied, moved or linked, by the last names that they may have now. */
  readonly copies: ReadonlyMap<string, readonly ShellWord[]>;
};

export const NOTHING_WRITTEN: Written = { texts: [], files: new Set(), copies: new Map() };

const COPIER = /^(?:cp|mv|ln|link|install|rsync)$/;
const MOST_COPIES = 40;

/** Programs that run what a file of a usual name says, wherever it was written. */
const RUN_BY_NAME: readonly (readonly [program: RegExp, file: RegExp])[] = [
  [/^g?make$/, /^(?:gnu)?makefile$|\.mk$/],
  [/^(?:npm|pnpm|yarn|bun|npx|node)$/, /^package\.json$|^\.npmrc$|^\.pnpmfile\.c?js$/],
  [/^just$/, /^\.?justfile$/],
  [/^(?:task|go-task)$/, /^taskfile\.ya?ml$/],
  [/^(?:rake|bundle|bundler)$/, /^rakefile$|^gemfile$/],
  [
    /^(?:pytest|py\.test|python[\d.]*|tox|nox|pip3?)$/,
    /^(?:conftest|setup|noxfile|sitecustomize|usercustomize)\.py$|^tox\.ini$|^setup\.cfg$|^pyproject\.toml$/,
  ],
  [/^(?:cmake|ctest)$/, /^cmakelists\.txt$|^cmakepresets\.json$/],
  [/^cargo$/, /^build\.rs$|^cargo\.toml$/],
  [/^(?:gradle|gradlew|mvn|mvnw|ant)$/, /^(?:build|settings|init)\.gradle(?:\.kts)?$|^pom\.xml$|^build\.xml$/],
  [/^(?:docker|podman|docker-compose)$/, /^(?:docker|container)file|compose\.ya?ml$/],
  [/^(?:direnv|mise)$/, /^\.envrc$|^\.?mise(?:\.local)?\.toml$/],
  [
    /^git$/,
    /^(?:pre|post)-[a-z-]+$|^(?:commit-msg|prepare-commit-msg|update|reference-transaction|push-to-checkout|\.gitconfig|config)$/,
  ],
  [
    /^(?:bash|zsh|sh|ksh|su|login|tmux|screen|ssh)$/,
    /^\.(?:bashrc|bash_profile|profile|zshrc|zshenv|zprofile|kshrc|tmux\.conf|screenrc)$/,
  ],
  [/^(?:vim?|nvim|ex|emacs|gdb|lldb)$/, /^\.(?:vimrc|exrc|nvimrc|emacs|gdbinit|lldbinit)$/],
];

/** Does a program run a file that the same text writes, because of the file's name? */
export const runsByName = (name: string, files: ReadonlySet<string>): boolean => {
  const usual = RUN_BY_NAME.filter(([program]) => program.test(name));
  return usual.length > 0 && [...files].some((file) => usual.some(([, usualName]) => usualName.test(file)));
};

/** Signs that echo and printf turn into others. */
const unescaped = (text: string): string =>
  text
    .replace(/\\(?:x[\da-fA-F]{1,2}|u[\da-fA-F]{1,4}|[0-7]{1,4})/g, (sign) =>
      String.fromCharCode(Number.parseInt(sign.slice(/[xu]/.test(sign) ? 2 : 1), /[xu]/.test(sign) ? 16 : 8)),
    )
    .replace(/\\[abcefnrtv]/g, "\n");

export const writtenIn = (commands: readonly ShellCommand[], outer: Written = NOTHING_WRITTEN): Written => {
  const texts = [...outer.texts];
  const files = new Set(outer.files);
  const copies = new Map(outer.copies);
  for (const { words, input, assigned, redirects } of commands) {
    const [head, ...rest] = words;
    if (head && PRINTER.test(nameOf(head))) {
      const printed = rest.map(({ text }) => text).join(" ");
      if (printed !== "") texts.push({ text: printed, isWhole: false });
      if (printed.includes("\\")) texts.push({ text: unescaped(printed), isWhole: false });
    }
    for (const { text } of input) texts.push({ text, isWhole: true });
    for (const { value } of assigned) texts.push({ text: value.text, isWhole: false });
    for (const { operator, target } of redirects) if (target && />/.test(operator)) files.add(nameOf(target));
    const operands = rest.filter((word) => !isOption(word));
    if (head && COPIER.test(nameOf(head)) && copies.size < MOST_COPIES)
      for (const word of operands) copies.set(nameOf(word), operands.slice(0, MOST_COPIES));
    if (head && WRITER.test(nameOf(head)))
      for (const word of rest) if (!isOption(word)) files.add(nameOf({ ...word, text: word.text.replace(/^of=/, "") }));
  }
  files.delete("null");
  files.delete("");
  return { texts, files, copies };
};

export type Reader = "none" | "shell" | "other";

/** `places`: indexes of words that could be a program. */
export const readerIn = (
  command: ShellCommand,
  words: readonly ShellWord[],
  { places, written }: { readonly places: readonly boolean[]; readonly written: Written },
): Reader => {
  const { piped, input, redirects } = command;
  const isFed = piped || input.length > 0 || redirects.some(({ operator }) => operator.startsWith("<"));
  // `BASH_ENV=f bash -c :`
  if (words.length > 0 && command.assigned.some(({ value }) => written.files.has(nameOf(value)))) return "shell";
  const isWritten = (word: ShellWord): boolean => written.files.has(nameOf(word)) || isDescriptor(word);
  let isOther = false;
  for (const [at, word] of words.entries()) {
    if (places[at] !== true) continue;
    const [name, rest] = [nameOf(word), words.slice(at + 1)];
    if (at === 0 ? written.files.has(name) : word.text.includes("/") && written.files.has(name)) return "shell";
    if (SHELL.test(name) && (isFed || rest.some(isWritten))) return "shell";
    if (runsByName(name, written.files)) return "shell";
    if (COMMANDED.test(name)) isOther ||= isFed || isGivenProgram(rest, isWritten);
    else if (SCRIPTED.test(name))
      isOther ||= isGivenProgram(rest, isWritten) || (isFed && (!hasScript(rest) || runsInput(name, rest)));
    else if (at === words.length - 1 || !places[at + 1]) isOther ||= piped && !isKnown(name);
  }
  return isOther ? "other" : "none";
};

const isKnown = (name: string): boolean => TAKES_DATA.test(name) || PRINTER.test(name);

/** An option that takes a program or a file with one, alone or after other letters. */
const PROGRAM_OPTION =
  /^-[a-zA-Z]*[cefmxsSP]$|^--(?:file|makefile|expression|eval|command|execute|script|source|module)$/;

/** A program in a file that is not visible: as the first operand, or after an option. */
const isGivenProgram = (rest: readonly ShellWord[], isWritten: (word: ShellWord) => boolean): boolean => {
  const first = rest.findIndex((word) => !isOption(word));
  return rest.some((word, at) => {
    const value = {
      ...word,
      text: /^--?[\w-]+=(.+)$/s.exec(word.text)?.[1] ?? word.text.replace(/^-[a-zA-Z]+(?=\/)/, ""),
    };
    const isProgram = at === first || PROGRAM_OPTION.test(rest[at - 1]?.text ?? "");
    return isWritten(value) || (isProgram && word.text.includes(COMPUTED));
  });
};

/** Parts of programs in other languages that run a text, which may be what they read. */
const RUNS_TEXT =
  /system|exec|popen|spawn|subprocess|child_process|eval|qx|`|\bos\b|shell|getline|\||process|open|%x|Function|require|import/;

/** Whether an inline program runs what it reads, or a part of it. */
const runsInput = (name: string, rest: readonly ShellWord[]): boolean =>
  rest.some(({ text }) => (/^g?sed$/.test(name) ? runsOfSed(text) : RUNS_TEXT.test(text)));

/** `e`, `1e`, `s/x/y/e`: sed's command and flag to run something. */
const OF_SED =
  /^[\d,$!\s]*e(?:$|[;}\s])|[;{}\n/\d$!][^\S\n]*e(?:$|[;}\s])|[^\w\s][gpiImM\d]{0,8}e[gpiImM\d]{0,8}(?:$|[;}\s#])/;

export const runsOfSed = (text: string): boolean => OF_SED.test(text) || /s(\w).*\1\w{0,8}$/s.test(text.slice(0, 200));

/** Then standard input is data. */
const hasScript = (rest: readonly ShellWord[]): boolean =>
  rest.some((word, at) => (!isOption(word) && !isDescriptor(word)) || PROGRAM_OPTION.test(rest[at - 1]?.text ?? ""));
