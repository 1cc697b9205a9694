/** Changes one value in the text of a settings file. Pure.
 *  Invariant: comments, order and all other values of the file stay as they are; a file that is not valid JSON is not changed.
 *  Elsewhere: choosing and writing the file (the command line), whether the new text is valid (settings.ts). */

import {
  applyEdits,
  findNodeAtLocation,
  getNodeValue,
  modify,
  type Node,
  type ParseError,
  parseTree,
} from "jsonc-parser";

export type Edited = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string };

/** The value at `path`, and its text with another one there (`undefined`: without it). */
export type EditableSettings = {
  readonly valueAt: (path: readonly string[]) => unknown;
  /** The line of the value in the text, from 1; undefined if it is not there. */
  readonly lineOf: (path: readonly string[]) => number | undefined;
  readonly withValue: (path: readonly string[], value: unknown) => string;
};

/** `text` undefined: there is no file yet. */
export const editableSettings = (text: string | undefined): EditableSettings | undefined => {
  const before = text === undefined || text.trim() === "" ? "{}\n" : text;
  const root = treeOf(before);
  if (root?.type !== "object") return undefined;
  return {
    valueAt: (path) => {
      const node = findNodeAtLocation(root, [...path]);
      return node === undefined ? undefined : getNodeValue(node);
    },
    lineOf: (path) => {
      const node = findNodeAtLocation(root, [...path]);
      return node === undefined ? undefined : before.slice(0, node.offset).split("\n").length;
    },
    withValue: (path, value) => {
      const formattingOptions = { insertSpaces: true, tabSize: 2, eol: "\n" };
      return applyEdits(before, modify(before, [...path], value, { formattingOptions }));
    },
  };
};

/** Undefined if the text is not valid JSON, or nested too deeply for the parser, which calls itself for every level. */
const treeOf = (text: string): Node | undefined => {
  const errors: ParseError[] = [];
  try {
    const root = parseTree(text, errors, { allowTrailingComma: true });
    return errors.length === 0 ? root : undefined;
  } catch {
    return undefined;
  }
};
