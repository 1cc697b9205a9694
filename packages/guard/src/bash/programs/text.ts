/** Programs that read text and print text. */

import { type CompiledRule, readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import {
  allOf,
  checkRepetition,
  limitNumbers,
  limitWidths,
  type Program,
  type ProgramTable,
  program,
} from "./program.ts";

/** Without -c, which takes the names of the files to open from a file. */
const checksum = program({
  flags: "btz",
  long: "binary text tag zero version",
  harmless: true,
});

/** The first operand, unless an option gave the text to search for, or the operand is a pattern that stands for files. */
const searchTextOf = (rule: CompiledRule, words: readonly PlanWord[]): readonly PlanWord[] => {
  const { options, operands } = readOptions("grep", words, rule);
  return options.some(({ name }) => /^(e|f|regexp|file|files|type-list)$/.test(name))
    ? []
    : operands.slice(0, 1).filter(({ pattern, placeholder }) => !pattern || placeholder);
};

const grep: Program = program({
  searchText: (words) => searchTextOf(grep.rule, words),
  flags: "EFGPivwxcLlqsbHhnorRIUzZyaT",
  valued: "efmABCdD",
  dashValues: "e regexp",
  count: true,
  long:
    "extended-regexp fixed-strings basic-regexp perl-regexp regexp= file= ignore-case no-ignore-case invert-match " +
    "word-regexp line-regexp count color? colour? files-without-match files-with-matches max-count= only-matching quiet " +
    "silent no-messages byte-offset with-filename no-filename label= line-number initial-tab null after-context= " +
    "before-context= context= text binary-files= devices= directories= exclude= exclude-from= exclude-dir= include= " +
    "recursive dereference-recursive line-buffered binary null-data version",
  harmless: true,
  // A pipe or a device among the files would make grep wait.
  check: ({ options, operands }) => {
    for (const { text } of operands) checkRepetition("grep", text);
    for (const { value = "" } of options) checkRepetition("grep", value);
    if (options.some(({ name, value }) => /^(D|devices)$/.test(name) && value !== "skip"))
      throw new Refusal("grep -D may only be skip: grep -D skip TEXT FILE");
  },
});

/** Not --debug and --trace, which print lines of the files that say what is to be ignored: those may be links to keys. */
const ripgrep: Program = program({
  searchText: (words) => searchTextOf(ripgrep.rule, words),
  flags: "abcFHhIiLlnNopPqsSuUvVwx0.",
  valued: "ABCEefgjmMrtTd",
  dashValues: "e regexp",
  long:
    "after-context= before-context= context= auto-hybrid-regex no-config binary block-buffered byte-offset case-sensitive " +
    "color= colors= column context-separator= count count-matches crlf encoding= engine= " +
    "field-context-separator= field-match-separator= file= files files-with-matches files-without-match fixed-strings " +
    "follow glob= glob-case-insensitive heading no-heading hidden iglob= ignore-case ignore-file= include-zero " +
    "invert-match json line-buffered line-number no-line-number line-regexp max-columns= max-columns-preview max-count= " +
    "max-depth= max-filesize= mmap multiline multiline-dotall no-ignore no-ignore-dot no-ignore-exclude no-ignore-files " +
    "no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs no-messages no-mmap no-unicode null null-data " +
    "one-file-system only-matching passthru path-separator= pcre2 pretty quiet regexp= replace= " +
    "smart-case sort= sortr= stats text threads= trim type= type-add= type-clear= type-list type-not= unrestricted " +
    "version vimgrep with-filename no-filename word-regexp",
  // `type-add` can only include other types by name; it holds globs, not programs.
  check: ({ options }) => {
    if (options.some(({ name, value = "" }) => /^(j|threads)$/.test(name) && !/^\d{1,2}$/.test(value)))
      throw new Refusal("rg -j takes a number of at most two digits");
  },
});

/** Without -T, which chooses where to write, and -S, which takes any amount of memory. */
const sort = program({
  flags: "bdfghiMnRrVcCmsuz",
  valued: "kt",
  long:
    "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort ignore-nonprinting " +
    "month-sort numeric-sort random-sort reverse version-sort check? merge key= stable field-separator= " +
    "unique zero-terminated sort= debug version",
});

export const textPrograms: ProgramTable = {
  cat: program({
    flags: "AbeEnstTuv",
    long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting version",
    harmless: true,
  }),
  tac: program({ flags: "br", valued: "s", long: "before regex separator= version", harmless: true }),
  rev: program({ harmless: true }),
  nl: program({
    flags: "p",
    valued: "bdfhilnsvw",
    long: "body-numbering= number-format= number-width= starting-line-number= line-increment= number-separator= version",
    harmless: true,
    check: limitNumbers("nl", "w", "number-width"),
  }),
  head: program({
    flags: "qvz",
    valued: "cn",
    count: true,
    long: "bytes= lines= quiet silent verbose zero-terminated version",
    harmless: true,
  }),
  tail: program({
    flags: "qvz",
    valued: "cn",
    count: true,
    long: "bytes= lines= quiet silent verbose zero-terminated version",
    harmless: true,
    // The old form `+5f` waits for more, as `-f` does.
    check: ({ operands }) => {
      if (operands.some(({ text }) => /^\+\d*[bcl]?f$/.test(text)))
        throw new Refusal("tail may not follow a file; use tail -n 50 FILE");
    },
  }),
  wc: program({ flags: "clLmw", long: "bytes chars lines max-line-length words total= version", harmless: true }),
  cut: program({
    flags: "nsz",
    valued: "bcdf",
    long: "bytes= characters= delimiter= fields= only-delimited complement output-delimiter= zero-terminated version",
    harmless: true,
  }),
  tr: program({
    flags: "cCdst",
    long: "complement delete squeeze-repeats truncate-set1 version",
    minOperands: 1,
    maxOperands: 2,
    harmless: true,
    // `[x*99999]` expands to that many letters.
    check: ({ operands }) => {
      if (operands.some(({ text }) => /\*\d{5}/.test(text)))
        throw new Refusal("tr repeats a letter at most 9999 times");
    },
  }),
  sort,
  shuf: program({
    flags: "z",
    valued: "in",
    long: "head-count= input-range= zero-terminated version",
    maxOperands: 1,
    check: ({ options }) => {
      if (options.some(({ name, value = "" }) => /^(i|input-range)$/.test(name) && /\d{8}/.test(value)))
        throw new Refusal("shuf -i takes numbers of at most seven digits");
    },
  }),
  uniq: program({
    flags: "cdDiuz",
    valued: "fsw",
    long: "count repeated all-repeated? group? skip-fields= ignore-case skip-chars= unique zero-terminated check-chars= version",
    maxOperands: 1,
    // After the first file, uniq may take an option for its output file.
    optionsFirst: true,
  }),
  comm: program({
    flags: "123z",
    long: "check-order nocheck-order output-delimiter= total zero-terminated version",
    minOperands: 2,
    maxOperands: 2,
    harmless: true,
  }),
  join: program({
    flags: "iz",
    valued: "aejotv12",
    long: "ignore-case check-order nocheck-order header zero-terminated version",
    minOperands: 2,
    maxOperands: 2,
    harmless: true,
  }),
  paste: program({ flags: "sz", valued: "d", long: "serial delimiters= zero-terminated version", harmless: true }),
  fold: program({ flags: "bs", valued: "w", count: true, long: "bytes spaces width= version", harmless: true }),
  fmt: program({
    flags: "cstu",
    valued: "pwg",
    count: true,
    long: "width= split-only uniform-spacing version",
    harmless: true,
  }),
  iconv: program({
    flags: "cl",
    valued: "ft",
    long: "from-code= to-code= list version",
    check: ({ options }) => {
      if (options.some(({ value = "" }) => !/^[\w.:-]*(\/\/(TRANSLIT|IGNORE))*$/i.test(value)))
        throw new Refusal("iconv takes plain encoding names: iconv -f latin1 -t utf-8 FILE");
    },
  }),
  numfmt: program({
    flags: "z",
    valued: "d",
    long:
      "from= to= from-unit= to-unit= padding= field= format= suffix= round= delimiter= grouping header? invalid= " +
      "zero-terminated version",
    harmless: true,
    check: allOf(limitNumbers("numfmt", "padding", "header"), limitWidths("numfmt", "format")),
  }),
  expand: program({
    flags: "i",
    valued: "t",
    long: "initial tabs= version",
    harmless: true,
    check: limitNumbers("expand", "t", "tabs"),
  }),
  unexpand: program({
    flags: "a",
    valued: "t",
    long: "all first-only tabs= version",
    harmless: true,
    check: limitNumbers("unexpand", "t", "tabs"),
  }),
  column: program({
    flags: "txneJL",
    valued: "csoNHRTlEWdOp",
    long: "table separator= output-separator= output-width= table-columns= json version",
    harmless: true,
    check: limitNumbers("column", "c", "output-width", "l"),
  }),
  diff: program({
    flags: "qsruyNBbwaiEtTZcpd",
    valued: "UCWxFI",
    count: true,
    long:
      "brief report-identical-files recursive unified? context? side-by-side new-file ignore-blank-lines " +
      "ignore-space-change ignore-all-space ignore-trailing-space ignore-case ignore-tab-expansion text minimal width= " +
      "suppress-common-lines left-column exclude= color? no-dereference strip-trailing-cr show-c-function label= normal version",
    minOperands: 2,
    maxOperands: 2,
    check: allOf(limitNumbers("diff", "W", "width"), ({ options, operands }) => {
      const has = (pattern: RegExp): boolean => options.some(({ name }) => pattern.test(name));
      const broad = operands.some(({ text, home }) => home || /^\/|^\.*\/?$|^\.\.\//.test(text));
      if (broad && has(/^(r|recursive)$/) && has(/^(N|new-file)$/))
        throw new Refusal(
          "diff -rN prints files that only one side has, including secrets; name two folders of the project",
        );
    }),
  }),
  cmp: program({
    flags: "bls",
    valued: "in",
    long: "print-bytes verbose silent quiet bytes= ignore-initial= version",
    minOperands: 1,
    maxOperands: 4,
    harmless: true,
  }),
  grep,
  egrep: grep,
  fgrep: grep,
  rg: ripgrep,
  od: program({
    flags: "abcdfhilosxv",
    valued: "AjNSt",
    glued: "w",
    long: "address-radix= skip-bytes= read-bytes= format= output-duplicates width? endian= version",
    harmless: true,
    check: limitNumbers("od", "w", "width", "S"),
  }),
  hexdump: program({
    flags: "bcCdovx",
    valued: "ens",
    long: "canonical length= skip= no-squeezing version",
    harmless: true,
    check: limitNumbers("hexdump", "e"),
  }),
  hd: program({ flags: "bcCdovx", valued: "ens", harmless: true, check: limitNumbers("hd", "e") }),
  // After the first file, xxd takes any word for its output file; and `-ps` is a single option.
  xxd: program({
    flags: "abeEipuC",
    valued: "cglos",
    maxOperands: 1,
    optionsFirst: true,
    separateValues: true,
    oneLetter: true,
  }),
  shasum: program({ flags: "btU0", valued: "a", long: "algorithm= binary text version" }),
  md5sum: checksum,
  sha1sum: checksum,
  sha224sum: checksum,
  sha256sum: checksum,
  sha384sum: checksum,
  sha512sum: checksum,
  b2sum: checksum,
  cksum: program({ valued: "a", long: "algorithm= tag untagged zero version", harmless: true }),
  sum: program({ flags: "rs", harmless: true }),
  base64: program({
    flags: "di",
    valued: "w",
    long: "decode ignore-garbage wrap= version",
    maxOperands: 1,
    harmless: true,
  }),
  base32: program({
    flags: "di",
    valued: "w",
    long: "decode ignore-garbage wrap= version",
    maxOperands: 1,
    harmless: true,
  }),
};
