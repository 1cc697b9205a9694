/** Which other files does a conventions file name with `@path`?
 *  Invariant: pure; what stands in fences, indented fences and code spans is an example and names nothing; each name
 *  comes once, in the order of the text.
 *  Elsewhere: where a name leads and whether it may be read (conventions.ts). */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** Lines outside fences. A fence ends with a line of at least as many of the same marks, or with the text. */
const outsideFences = (text: string): readonly string[] => {
  const kept: string[] = [];
  let open: string | undefined;
  for (const line of text.split(/\r\n|\n|\r/)) {
    const marks = FENCE.exec(line)?.[1];
    if (open === undefined) {
      if (marks === undefined) kept.push(line);
      else open = marks;
    } else if (marks?.startsWith(open) && line.trim() === marks) open = undefined;
  }
  return kept;
};

/** A span opens with a run of backticks and closes with a run of the same length; a run that never closes is text. */
const withoutSpans = (text: string): string => text.replace(/(?<!`)(`+)(?!`)[\s\S]*?(?<!`)\1(?!`)/g, " ");

/** After white space or a bracket, so that no address of a person is taken for one. */
const IMPORT = /(?<=^|[\s([{"'*])@([^\s@]+)/gm;

/** Of a sentence or a bracket around the name, not of the name. Tried where a run of such signs begins, and nowhere else. */
const CLOSING = /(?<![.,;:!?)\]}"'>*_])[.,;:!?)\]}"'>*_]+$/;

export const importsIn = (text: string): readonly string[] => {
  const prose = withoutSpans(outsideFences(text).join("\n"));
  const names = [...prose.matchAll(IMPORT)].map(([, name = ""]) => name.replace(CLOSING, ""));
  return [...new Set(names.filter((name) => name !== ""))];
};

const ENDING =
  /[\w-]\.(?:mdx?|markdown|txt|rst|adoc|jsonc?|ya?ml|toml|xml|html|css|csv|ini|cfg|conf|sh|[cm]?[jt]sx?|py|rs|go|java|rb|sql)$/i;

/** `@scope/package`, `@somebody` and `@decorator(…)` are no files, and nobody wants to hear so. */
export const looksLikeFile = (name: string): boolean => /^(?:\.{1,2}|~)?\//.test(name) || ENDING.test(name);
