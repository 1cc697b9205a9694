/** Text without certain characters at its end.
 *  Invariant: linear; a pattern with `+$` would try anew from each character of a long run that does not stand at the end. */

export const trimEndOf = (text: string, characters: string): string => {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1] as string)) end -= 1;
  return text.slice(0, end);
};
