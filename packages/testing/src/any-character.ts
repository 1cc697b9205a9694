/** Any character of Unicode, drawn and shrunk as by fast-check's unit "binary". That one numbers all 1,112,064 characters
 *  whenever a process first names it, which takes longer than most files of tests. */

import fc from "fast-check";

/** Halves of a pair are no characters. */
const [HALVES_FROM, HALVES] = [0xd800, 0x800];
const LAST = 0x10ffff - HALVES;

export const anyCharacter = fc.nat({ max: LAST }).map(
  (place) => String.fromCodePoint(place < HALVES_FROM ? place : place + HALVES),
  (value) => {
    const code = typeof value === "string" ? (value.codePointAt(0) ?? -1) : -1;
    if (code < 0 || value !== String.fromCodePoint(code)) throw new TypeError("no character");
    if (code >= HALVES_FROM && code < HALVES_FROM + HALVES) throw new TypeError("half of a pair");
    return code < HALVES_FROM ? code : code - HALVES;
  },
);
