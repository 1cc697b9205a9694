/** Who takes a program from standard input, a descriptor, a substitution, or a file that the same text writes? And which
 *  texts stand in a command that could be that program?
 *  Invariant: errs towards "could": whatever is written out anywhere in a text may be what such a reader gets. What is
 *  fetched or computed while it runs is nowhere to be seen.
 *  Elsewhere: what such a text could run (programs-with-programs.ts), reading the text (shell-words.ts). */

import { COMPUTED, type ShellCommand, type ShellWord } from "./shell-words.ts";

const nameOf = ({ text }: ShellWord): string => (text.split("/").at(-1) ?? "").toLowerCase();

const SHELL = /^(?:(?:|r|ba|z|da|k|mk|a|fi|c|tc)sh|\.|source)$/;

/** Programs with a language of their own: these take their program from the first file that they are named … */
const SCRIPTED =
  /^(?:python[\d.]*|pypy[\d.]*|node(?:js)?|deno|bun|tsx|ts-node|perl[\d.]*|ruby|php[\d.]*|lua(?:jit)?[\d.]*|tclsh[\d.]*|wish|expect|[gmn]?awk|g?sed|rscript|julia|octave|runghc|scala|groovy|osascript|pwsh|powershell|gnuplot|guile|racket|sbcl|clisp|elixir|ocaml)$/;

/** … and these from standard input, whatever else they are named. */
const COMMANDED =
  /^(?:irb|gdb|lldb|g?make|ed|ex|vim?|nvim|emacs|psql|mysql|mariadb|sqlite3|r|ghci|jshell|m4|ftp|sftp|erl|iex|cmake|ninja|just|task|docker|podman|ssh|at|batch|crontab|parallel)$/;

/** What comes to them on standard input is data and never run. */
const TAKES_DATA =
  /^(?:sort|less|more|column|xclip|xsel|pbcopy|wl-copy|base(?:32|64)|gzip|gunzip|zcat|xz|bzip2|zstd|openssl|gpg|curl|wget|mail|sendmail|gh|glab|yq|bc|sponge|pv|hexdump|xxd|hd|iconv|dos2unix|fmt|pr|tar|cpio|zip|unzip|git|rg|read|mapfile|readarray|xargs|shuf|split|csplit|expand|unexpand|npm|pnpm|yarn|npx|cargo|kubectl|helm|jest|vitest|tsc|eslint|prettier)$/;

/** They hand on their words, or what they read. */
const PRINTER = /^(?:echo|printf|cat|tee|head|tail|tr|cut|rev|tac|fold|paste|nl|uniq|base64|sort)$/;

/** They write, make or rename the files that their words name. */
const WRITER = /^(?:tee|cp|mv|ln|install|dd|mkfifo|sponge)$/;

const DESCRIPTOR = /^(?:-|\/dev\/(?:stdin|fd\/\d+)|\/proc\/[^/]+(?:\/task\/[^/]+)?\/fd\/\d+)$/;

/** Standard input or another descriptor, as a file's name. */
export const isDescriptor = ({ text }: ShellWord): boolean => DESCRIPTOR.test(text);

const isOption = ({ text }: ShellWord): boolean => /^-./.test(text);

/** What stands in a text beside its commands. */
export type Written = {
  /** Whatever a reader could be given: words of programs that print them, standard input, values of variables. */
  readonly texts: readonly { readonly text: string; readonly isWhole: boolean }[];
  /** Last names of files that are written. */
  readonly files: ReadonlySet<string>;
};

export const NOTHING_WRITTEN: Written = { texts: [], files: new Set() };

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
  for (const { words, input, assigned, redirects } of commands) {
    const [head, ...rest] = words;
    if (head && PRINTER.test(nameOf(head))) {
      const said = rest.map(({ text }) => text).join(" ");
      if (said !== "") texts.push({ text: said, isWhole: false });
      if (said.includes("\\")) texts.push({ text: unescaped(said), isWhole: false });
    }
    for (const { text } of input) texts.push({ text, isWhole: true });
    for (const { value } of assigned) texts.push({ text: value.text, isWhole: false });
    for (const { operator, target } of redirects) if (target && />/.test(operator)) files.add(nameOf(target));
    if (head && WRITER.test(nameOf(head)))
      for (const word of rest) if (!isOption(word)) files.add(nameOf({ ...word, text: word.text.replace(/^of=/, "") }));
  }
  files.delete("null");
  files.delete("");
  return { texts, files };
};

export type Reader = "none" | "shell" | "other";

/** `places`: where in the words a program could stand. */
export const readerIn = (
  command: ShellCommand,
  words: readonly ShellWord[],
  { places, written }: { readonly places: readonly boolean[]; readonly written: Written },
): Reader => {
  const { piped, input, redirects } = command;
  const isFed = piped || input.length > 0 || redirects.some(({ operator }) => operator.startsWith("<"));
  const isWritten = (word: ShellWord): boolean => written.files.has(nameOf(word)) || isDescriptor(word);
  let isOther = false;
  for (const [at, word] of words.entries()) {
    if (places[at] !== true) continue;
    const [name, rest] = [nameOf(word), words.slice(at + 1)];
    if (at === 0 ? written.files.has(name) : word.text.includes("/") && written.files.has(name)) return "shell";
    if (SHELL.test(name) && (isFed || rest.some(isWritten))) return "shell";
    if (COMMANDED.test(name)) isOther ||= isFed || isGivenProgram(rest, isWritten);
    else if (SCRIPTED.test(name)) isOther ||= isGivenProgram(rest, isWritten) || (isFed && !hasScript(rest));
    else if (at === words.length - 1 || !places[at + 1]) isOther ||= piped && !isKnown(name);
  }
  return isOther ? "other" : "none";
};

const isKnown = (name: string): boolean => TAKES_DATA.test(name) || PRINTER.test(name);

/** An option that takes a program, or a file with one, alone or behind other letters. */
const PROGRAM_OPTION =
  /^-[a-zA-Z]*[cefmxsSP]$|^--(?:file|makefile|expression|eval|command|execute|script|source|module)$/;

/** A program in a file that is nowhere to be seen: as the first operand, or behind an option. */
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

/** Then standard input is data. */
const hasScript = (rest: readonly ShellWord[]): boolean =>
  rest.some((word, at) => (!isOption(word) && !isDescriptor(word)) || PROGRAM_OPTION.test(rest[at - 1]?.text ?? ""));
