/** What views need to show code: tokens of a language, and differences between two texts.
 *  Invariant: types only, so that a view can be rendered before the tools are loaded.
 *  Elsewhere: the tools themselves (../load-code-tools.ts), code as lines (code-lines.ts), diffs (diff-lines.ts). */

export type SyntaxRole = "keyword" | "string" | "number" | "comment" | "identifier" | "type";

/** A piece of one line. Without a role it is plain text. */
export type CodeToken = { readonly text: string; readonly role?: SyntaxRole };

/** A run of items that only the old text has, only the new one has, or both. */
export type DiffRun<T> = { readonly kind: "same" | "removed" | "added"; readonly items: readonly T[] };

export type CodeTools = {
  /** Undefined: the language is unknown, or the text is too large. One list per line. */
  readonly tokenize: (code: string, language: string) => readonly (readonly CodeToken[])[] | undefined;
  /** Undefined: it takes too long. */
  readonly diffLines: (before: readonly string[], after: readonly string[]) => readonly DiffRun<string>[] | undefined;
  readonly diffWords: (before: string, after: string) => readonly DiffRun<string>[] | undefined;
};
