/** Programs that look at files and folders, and list archives. */

import type { ParsedArguments } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { limitWidths, type ProgramTable, program } from "./program.ts";

const isNumber = (word: PlanWord | undefined): boolean => word === undefined || /^-?\d+$/.test(word.text);

const testRule = program({
  silent: true,
  // Operands of test look like options, so each word is checked on its own.
  read: (words) => {
    const known = /^(-[bcdefghknprstuwxzLNOSG]|-(eq|ne|lt|le|gt|ge|nt|ot|ef|a|o)|-\d+|!|=|==|!=|\(|\))$/;
    words.forEach(({ text, pattern }, at) => {
      // Some shells evaluate the words next to these as arithmetic, which can run commands.
      if (/^-(eq|ne|lt|le|gt|ge)$/.test(text) && ![words[at - 1], words[at + 1]].every(isNumber))
        throw new Refusal(`test ${text} compares plain numbers only: test 1 ${text} 2`);
      if (pattern) throw new Refusal("test takes plain words; write the name without a pattern");
      if (text.startsWith("-") && !known.test(text)) throw new Refusal(`test ${text} is not a known operator of test`);
    });
    return words;
  },
});

const fd = program({
  flags: "HIuUsigFaLpl0q1",
  valued: "detEScojM",
  long:
    "hidden no-ignore unrestricted case-sensitive ignore-case glob regex fixed-strings absolute-path list-details follow " +
    "full-path print0 max-depth= min-depth= exact-depth= exclude= type= extension= size= changed-within= changed-before= " +
    "owner= color= max-results= base-directory= path-separator= no-ignore-vcs prune one-file-system quiet version",
  check: ({ options }) => {
    if (options.some(({ name, value = "" }) => name === "j" && !/^\d{1,2}$/.test(value)))
      throw new Refusal("fd -j takes a small number");
  },
});

const readPwd = (words: readonly PlanWord[]): readonly PlanWord[] => {
  if (words.some(({ text }) => !/^-[LP]$/.test(text))) throw new Refusal("pwd takes no words but -L and -P");
  return words.length === 0 ? [{ text: "-L" }] : words;
};

/** gzip and its relatives may list an archive or print its contents. Without an option that says so, they replace the file. */
const checkPacker = (name: string, { options }: ParsedArguments): void => {
  const has = (...names: readonly string[]): boolean => options.some(({ name: option }) => names.includes(option));
  // Of listing and unpacking, the last option wins; printing stays on once it is given.
  const lists = has("l", "list") && !has("d", "decompress", "uncompress");
  if (!lists && !has("c", "stdout", "to-stdout"))
    throw new Refusal(`${name} may only list and print: gzip -l FILE, gzip -dc FILE`, "write");
};

const GZIP_OPTIONS = {
  flags: "lvcdkq",
  long: "list verbose stdout to-stdout decompress uncompress keep quiet version",
} as const;

/** unzip and zipinfo expand patterns in an archive's name themselves, even if the word is quoted. */
const checkArchive = (program: string, archive: PlanWord | undefined): void => {
  if (archive && (archive.pattern || /^-|[*?[\\]/.test(archive.text)))
    throw new Refusal(`${program} takes the plain name of one archive, without * ? [ or \\`);
};

export const filePrograms: ProgramTable = {
  ls: program({
    flags: "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1",
    valued: "ITw",
    long:
      "all almost-all author escape block-size= ignore-backups color? classify? directory dired full-time group-directories-first " +
      "no-group human-readable si dereference-command-line hide= indicator-style= inode ignore= kibibytes dereference " +
      "numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style= reverse recursive size sort= " +
      "time= time-style= tabsize= width= context zero hyperlink? version",
    harmless: true,
    check: limitWidths("ls", "time-style"),
  }),
  dir: program({ flags: "alhRrtS1", harmless: true }),
  stat: program({
    flags: "Lft",
    valued: "c",
    long: "dereference file-system format= printf= terse cached= version",
    minOperands: 1,
    harmless: true,
    check: limitWidths("stat", "c", "format", "printf"),
  }),
  file: program({
    flags: "bhikLNrvE0", // not p: it resets the access time
    valued: "F",
    long: "brief mime mime-type mime-encoding dereference no-dereference no-pad keep-going raw separator= print0 version extension",
  }),
  du: program({
    flags: "0aDbcHhklLmPSsx",
    valued: "Bdtx",
    long: "null all apparent-size block-size= bytes total dereference-args max-depth= human-readable inodes count-links dereference separate-dirs si summarize threshold= time? time-style= exclude= one-file-system version",
    harmless: true,
    check: limitWidths("du", "time-style"),
  }),
  df: program({
    flags: "ahHiklPT",
    valued: "Btx",
    long: "all block-size= human-readable si inodes local portability type= print-type exclude-type= total output? version",
  }),
  tree: program({
    flags: "adfhiDFglnNpqrstuvxACJSUX",
    valued: "LPI",
    long: "dirsfirst filesfirst prune noreport du si inodes device gitignore matchdirs fromfile sort? filelimit= timefmt= version",
    separateValues: true, // in -Lo the o would name an output file
    check: limitWidths("tree", "timefmt"),
  }),
  realpath: program({
    flags: "emLPqsz",
    long: "canonicalize-existing canonicalize-missing logical physical quiet relative-to= relative-base= strip no-symlinks zero version",
    minOperands: 1,
    harmless: true,
  }),
  readlink: program({
    flags: "efmnqsvz",
    long: "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero version",
    minOperands: 1,
    harmless: true,
  }),
  basename: program({
    flags: "az",
    valued: "s",
    long: "multiple suffix= zero version",
    minOperands: 1,
    harmless: true,
  }),
  dirname: program({ flags: "z", long: "zero version", minOperands: 1, harmless: true }),
  // A shell's pwd prints the folder as it was entered; the program resolves links unless it gets -L.
  pwd: program({ read: readPwd }),
  test: testRule,
  "[": program({
    silent: true,
    read: (words, inner) => {
      if (words.at(-1)?.text !== "]") throw new Refusal("[ needs a closing ]: [ -f FILE ]");
      testRule.read?.(words.slice(0, -1), inner);
      return words;
    },
  }),
  fd,
  fdfind: fd,
  zipinfo: program({
    flags: "12smlvhtTz",
    minOperands: 1,
    check: ({ operands }) => checkArchive("zipinfo", operands[0]),
  }),
  tar: program({
    // It may only list a plain local file: tar contacts a host for a name with a colon.
    read: (words) => {
      const [mode, archive, ...names] = words;
      if (!mode || !/^-?(?=[vzjJ]{0,9}t)[tvzjJ]{1,9}f$/.test(mode.text) || mode.pattern)
        throw new Refusal("tar may only list archives: tar -tf FILE");
      if (!archive || archive.pattern || archive.text.startsWith("-") || archive.text.includes(":"))
        throw new Refusal("tar -tf needs a plain file name");
      if (names.some(({ text, pattern }) => pattern || text.startsWith("-")))
        throw new Refusal("tar -tf takes plain names after the archive, and no more options");
      return words;
    },
  }),
  unzip: program({
    read: (words) => {
      const [mode, archive, ...names] = words;
      if (!mode || !/^-(l|v|p|Z1?|Zl|t|lv|lq|ql)$/.test(mode.text))
        throw new Refusal("unzip may only list and print: unzip -l FILE, unzip -p FILE NAME");
      if (!archive || [archive, ...names].some(({ text, pattern }) => pattern || text.startsWith("-")))
        throw new Refusal("unzip -l takes plain file names: unzip -l FILE");
      checkArchive("unzip", archive);
      return words;
    },
  }),
  gzip: program({ ...GZIP_OPTIONS, check: (given) => checkPacker("gzip", given) }),
  gunzip: program({ ...GZIP_OPTIONS, check: (given) => checkPacker("gunzip", given) }),
  xz: program({ ...GZIP_OPTIONS, check: (given) => checkPacker("xz", given) }),
  bzip2: program({
    flags: "cdkqv",
    long: "stdout decompress keep quiet verbose version",
    check: (given) => checkPacker("bzip2", given),
  }),
  zcat: program({ minOperands: 1 }),
  bzcat: program({ minOperands: 1 }),
  xzcat: program({ minOperands: 1 }),
};
