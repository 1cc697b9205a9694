/** An arbitrary for any Unicode character, generated and shrunk like fast-check's unit "binary". That unit enumerates all
 *  1,112,064 characters on first use in a process, which takes longer than most test files. */

import fc from "fast-check";

/** Surrogates, the halves of a pair, are not characters. */
const [FIRST_SURROGATE, SURROGATES] = [0xd800, 0x800];
const LAST = 0x10ffff - SURROGATES;

export const anyCharacter = fc.nat({ max: LAST }).map(
  (index) => String.fromCodePoint(index < FIRST_SURROGATE ? index : index + SURROGATES),
  (value) => {
    const code = typeof value === "string" ? (value.codePointAt(0) ?? -1) : -1;
    if (code < 0 || value !== String.fromCodePoint(code)) throw new TypeError("not a character");
    if (code >= FIRST_SURROGATE && code < FIRST_SURROGATE + SURROGATES) throw new TypeError("a surrogate");
    return code < FIRST_SURROGATE ? code : code - SURROGATES;
  },
);
