/** Links that a terminal opens (OSC 8), for paths in tool lines and addresses in answers.
 *  Invariant: only http, https, file and mailto; the text that is shown stays the text, and an address leads where it says,
 *  so nothing is hidden behind other words; the target is plain ASCII, so it cannot end the sequence.
 *  Elsewhere: whether the terminal knows links (../screen.ts). */

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { hyperlink } from "@earendil-works/pi-tui";
import type { Theme } from "./theme.ts";

const SCHEMES: readonly string[] = ["http:", "https:", "file:", "mailto:"];
const MAX_TARGET = 2_000;

/** Undefined if it is no address that may be opened. */
const targetOf = (address: string): string | undefined => {
  try {
    const { protocol, href } = new URL(address);
    return SCHEMES.includes(protocol) && href.length <= MAX_TARGET && /^[!-~]+$/.test(href) ? href : undefined;
  } catch {
    return undefined;
  }
};

const hasLinks = ({ links, name }: Theme): boolean => links === true && name !== "none";

/** Links `text`, which shows the address itself, perhaps in colours. */
export const linkAddress = (text: string, theme: Theme): string => {
  if (!hasLinks(theme)) return text;
  const shown = stripVTControlCharacters(text);
  const target = targetOf(/^[^\s@:/]+@[^\s@:/]+\.[^\s@:/]+$/.test(shown) ? `mailto:${shown}` : shown);
  return target === undefined ? text : hyperlink(text, target);
};

/** Links `shown` in a line to the file that it names. */
export const linkPath = (line: string, { shown, path, cwd, isAtEnd }: PathInLine, theme: Theme): string => {
  if (!hasLinks(theme) || shown === "") return line;
  const at = isAtEnd ? line.lastIndexOf(shown) : line.indexOf(shown);
  if (at === -1 || /\p{Cc}/u.test(path)) return line;
  const target = targetOf(pathToFileURL(resolve(cwd, path)).href);
  return target === undefined ? line : line.slice(0, at) + hyperlink(shown, target) + line.slice(at + shown.length);
};

export type PathInLine = {
  readonly shown: string;
  readonly path: string;
  readonly cwd: string;
  /** The line may contain the same characters before it, for instance in a pattern. */
  readonly isAtEnd: boolean;
};
