/** Programs that look at files and folders. */

import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { limitWidths, type Program, type ProgramTable, program } from "./program.ts";

const isNumber = (word: PlanWord | undefined): boolean => word === undefined || /^-?\d+$/.test(word.text);

const testRule = program({
  silent: true,
  // Operands of test look like options; each word is checked by itself instead.
  read: (words) => {
    const known = /^(-[bcdefghknprstuwxzLNOSG]|-(eq|ne|lt|le|gt|ge|nt|ot|ef|a|o)|-\d+|!|=|==|!=|\(|\))$/;
    words.forEach(({ text, pattern }, at) => {
      // Some shells compute what stands beside these, and computing can run commands.
      if (/^-(eq|ne|lt|le|gt|ge)$/.test(text) && ![words[at - 1], words[at + 1]].every(isNumber))
        throw new Refusal(`test ${text} takes plain numbers`);
      if (pattern) throw new Refusal("test takes plain words; write the name out");
      if (text.startsWith("-") && !known.test(text)) throw new Refusal(`test ${text} is not read`);
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
  if (words.some(({ text }) => !/^-[LP]$/.test(text))) throw new Refusal("pwd takes no words");
  return words.length === 0 ? [{ text: "-L" }] : words;
};

/** Lists what is in a packed file or prints it; without being told to print, it would put another file in its place. */
const packer = (name: string): Program =>
  program({
    flags: name === "bzip2" ? "cdkqv" : "lvcdkq",
    long:
      name === "bzip2"
        ? "stdout decompress keep quiet verbose version"
        : "list verbose stdout to-stdout decompress uncompress keep quiet version",
    // Whether it lists or unpacks, the last word decides; that it prints stays, once said.
    check: ({ options }) => {
      const has = (...names: readonly string[]): boolean => options.some(({ name: option }) => names.includes(option));
      const lists = has("l", "list") && !has("d", "decompress", "uncompress");
      if (!lists && !has("c", "stdout", "to-stdout"))
        throw new Refusal(`${name} may only list and print: gzip -l FILE, gzip -dc FILE`, "write");
    },
  });

/** unzip and zipinfo look for an archive by a pattern of their own, also where the shell takes it for a name. */
const checkArchive = (program: string, archive: PlanWord | undefined): void => {
  if (archive && (archive.pattern || /^-|[*?[\\]/.test(archive.text)))
    throw new Refusal(`${program} takes the plain name of one archive, without * ? [ and \\`);
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
    flags: "bhikLNrvE0", // not p: it sets the time of access
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
  // A shell names the folder as it was entered; the program would follow links unless told.
  pwd: program({ read: readPwd }),
  test: testRule,
  "[": program({
    silent: true,
    read: (words, inner) => {
      if (words.at(-1)?.text !== "]") throw new Refusal("[ needs its ]");
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
    // Only listing, only of a plain local file: names with a colon are reached over the network.
    read: (words) => {
      const [mode, archive, ...names] = words;
      if (!mode || !/^-?(?=[vzjJ]{0,9}t)[tvzjJ]{1,9}f$/.test(mode.text) || mode.pattern)
        throw new Refusal("tar may only list: tar -tf FILE");
      if (!archive || archive.pattern || archive.text.startsWith("-") || archive.text.includes(":"))
        throw new Refusal("tar -tf needs a plain file name");
      if (names.some(({ text, pattern }) => pattern || text.startsWith("-")))
        throw new Refusal("tar -tf takes plain names and no more options");
      return words;
    },
  }),
  unzip: program({
    read: (words) => {
      const [mode, archive, ...names] = words;
      if (!mode || !/^-(l|v|p|Z1?|Zl|t|lv|lq|ql)$/.test(mode.text))
        throw new Refusal("unzip may only list and print: unzip -l FILE, unzip -p FILE NAME");
      if (!archive || [archive, ...names].some(({ text, pattern }) => pattern || text.startsWith("-")))
        throw new Refusal("unzip -l takes plain names");
      checkArchive("unzip", archive);
      return words;
    },
  }),
  gzip: packer("gzip"),
  gunzip: packer("gunzip"),
  xz: packer("xz"),
  bzip2: packer("bzip2"),
  zcat: program({ minOperands: 1 }),
  bzcat: program({ minOperands: 1 }),
  xzcat: program({ minOperands: 1 }),
};
