/** Texts inside a command that another program parses: a shell, or a program with a language of its own.
 *  Invariant: errs towards "could be parsed"; words of programs that take plain data do not count.
 *  Elsewhere: what such a text could run (programs-with-programs.ts), which files it names (command-paths.ts). */

import { commandPlaces, isShell, isWrapper, programOf, takesPlainData } from "./programs-with-programs.ts";
import { COMPUTED, type ShellCommand, type ShellWord } from "./shell-words.ts";

export type InnerTexts = {
  /** For a shell. */
  readonly texts: readonly string[];
  /** Possibly for a shell: text attached to an option. If it does not parse, it was not for a shell. */
  readonly glued: readonly string[];
  /** Single words of texts in other languages, which may be paths. */
  readonly loose: readonly string[];
  /** A shell receives commands that are not visible here. */
  readonly isUnseen: boolean;
};

const NONE: InnerTexts = { texts: [], glued: [], loose: [], isUnseen: false };

/** Where no command is expected, `bash` is an ordinary word, unless it gets a text with `-c`. */
const isGivenText = (word: ShellWord, next: ShellWord | undefined): boolean =>
  /sh$/.test(programOf(word)) && isShell(programOf(word)) && /^-\w*c/.test(next?.text ?? "");

const isText = (text: string): boolean => /[^\w@%+=:,./~-]/.test(text);

export const innerTexts = (command: ShellCommand): InnerTexts => {
  const { words, input, piped } = command;
  const head = words[0];
  if (!head) return NONE;
  const feeds = words.some((word) => /^(?:xargs|parallel)$/.test(programOf(word)));
  const given = input.map(({ text }) => text);
  if (takesPlainData(words)) return feeds ? { ...NONE, loose: given.flatMap(looseWords) } : NONE;
  const places = commandPlaces(words);
  const shell = words.findIndex((word, at) => {
    return places[at] === true ? isShell(programOf(word)) : isGivenText(word, words[at + 1]);
  });
  const texts = [...words.slice(1).map(({ text }) => text), ...given].filter(isText);
  if (shell === -1) {
    const glued = words.some((word) => isWrapper(programOf(word))) ? texts.flatMap(gluedTexts) : [];
    // What find compares with names is not a file itself.
    const loose = programOf(head) === "find" ? [] : texts.flatMap(looseWords);
    return { texts: [], glued, loose, isUnseen: false };
  }
  const isUnseen = places[shell] === true && readsInput(words.slice(shell), piped) && (piped || given.length === 0);
  return { texts, glued: [], loose: [], isUnseen };
};

/** A shell without a script and without `-c` reads its input. */
const readsInput = ([head, ...rest]: readonly ShellWord[], piped: boolean): boolean => {
  if (!head || /^(?:eval|\.|source|trap)$/.test(programOf(head))) return false;
  if (rest.some(({ text }) => /^--(?:version|help)$/.test(text))) return false;
  const hasScript = rest.some(({ text }) => !/^-/.test(text));
  return !hasScript || (piped && rest.some(({ text }) => /^-s$|^-$|^\/dev\/(?:stdin|fd\/0)$/.test(text)));
};

/** `env -S'cat x'`: the letters are the option's. */
const gluedTexts = (text: string): readonly string[] =>
  /^-[a-zA-Z]/.test(text) ? [2, 3, 4].map((letters) => text.slice(letters)) : [text];

const MOST_LOOSE = 400;

export const looseWords = (text: string): readonly string[] =>
  text
    .split(/[^\w.\-/~@%+\0]+/)
    .filter((word) => word !== "" && !word.includes(COMPUTED))
    .slice(0, MOST_LOOSE);
