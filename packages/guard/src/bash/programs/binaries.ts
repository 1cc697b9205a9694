/** Programs that look into compiled files.
 *  Invariant: options that print the sources a file refers to, or follow its debug links, are not listed, because the file
 *  itself chooses what they open.
 *  Elsewhere: their environment names no debuginfo server (../../run). */

import type { ParsedArguments } from "../options.ts";
import { Refusal } from "../refusal.ts";
import { allOf, limitNumbers, type ProgramTable, program } from "./program.ts";

/** All of them read more options from a response file that is named with @. */
const refuseResponseFiles = ({ operands, options }: ParsedArguments): void => {
  if (
    [...operands.map(({ text }) => text), ...options.map(({ value = "" }) => value)].some((word) =>
      word.startsWith("@"),
    )
  )
    throw new Refusal("@FILE is read as a list of options; write ./@FILE for a file of that name");
};

export const binaryPrograms: ProgramTable = {
  strings: program({
    flags: "afw",
    valued: "nte",
    count: true,
    long: "all print-file-name bytes= radix= encoding= version",
    check: allOf(refuseResponseFiles, limitNumbers("strings", "n", "bytes", "count")),
  }),
  nm: program({
    flags: "aABCDegjnopPrsSuUW",
    valued: "ft",
    long:
      "debug-syms print-file-name demangle? no-demangle dynamic format= extern-only just-symbols numeric-sort no-sort " +
      "portability reverse-sort print-size print-armap quiet size-sort special-syms synthetic radix= undefined-only " +
      "defined-only no-weak with-symbol-versions version",
    check: refuseResponseFiles,
  }),
  objdump: program({
    flags: "afphxdDstTrRCwz",
    valued: "jM",
    long:
      "archive-headers file-headers private-headers section-headers headers all-headers disassemble? disassemble-all " +
      "full-contents syms dynamic-syms reloc dynamic-reloc section= disassembler-options= demangle? wide disassemble-zeroes " +
      "start-address= stop-address= no-show-raw-insn show-raw-insn no-addresses version",
    minOperands: 1,
    check: refuseResponseFiles,
  }),
  readelf: program({
    flags: "ahlSgtesndrucVADIWCT",
    valued: "xpR",
    long:
      "all file-header program-headers segments section-headers sections section-groups section-details headers syms symbols " +
      "dyn-syms notes relocs unwind dynamic version-info arch-specific archive-index use-dynamic hex-dump= string-dump= " +
      "relocated-dump= histogram wide demangle? version",
    minOperands: 1,
    check: refuseResponseFiles,
  }),
  size: program({
    flags: "ABGdoxt",
    long: "format= radix= totals common version",
    check: refuseResponseFiles,
  }),
  "c++filt": program({ flags: "npit_", long: "no-params no-verbose types version", check: refuseResponseFiles }),
  ar: program({
    // It may only list the names of members.
    read: (words) => {
      const [mode, archive, ...names] = words;
      if (!mode || mode.pattern || !/^-?(t|tv|vt)$/.test(mode.text))
        throw new Refusal("ar may only list members: ar t FILE");
      if (!archive || [archive, ...names].some(({ text, pattern }) => pattern || /^[-@]/.test(text)))
        throw new Refusal("ar t takes plain file names: ar t FILE");
      return words;
    },
  }),
};
