/** Which parts of a prompt are literal, and which of its words name a file?
 *  Invariant: a masked text contains no quoted, backticked or fenced text, so patterns never match inside it; unmasking a
 *  captured word returns exactly what the prompt said.
 *  Elsewhere: the patterns (reading-moves.ts, changing-moves.ts), shell quoting (commands.ts). */

export type Span = {
  readonly kind: "code" | "quoted" | "fence";
  readonly text: string;
};

export type Masked = { readonly text: string; readonly spans: readonly Span[] };

const OPEN = "\uE000";
const CLOSE = "\uE001";

/** One word of a masked text: a whole span, or anything without a space. */
export const WORD = `(?:${OPEN}\\d+${CLOSE}|[^\\s${OPEN}]+)`;
/** A span: literal text must be marked. */
export const SPAN = `${OPEN}\\d+${CLOSE}`;

const QUOTED = /(?<=^|[\s(,:])(?:"[^"\n]+"|'[^'\n]+'|“[^”\n]+”)(?=$|[\s).,;:!?])/g;

export const mask = (prompt: string): Masked => {
  const spans: Span[] = [];
  const keep = (kind: Span["kind"], text: string): string => `${OPEN}${spans.push({ kind, text }) - 1}${CLOSE}`;
  const plain = prompt.replaceAll(/[\uE000\uE001]/g, "\uFFFD").replaceAll(/\r\n?/g, "\n");
  const text = maskFences(plain.split("\n"), (body) => keep("fence", body))
    .map((line) => maskCode(line, (body) => keep("code", body)))
    .join("\n")
    .replaceAll(QUOTED, (whole) => keep("quoted", whole.slice(1, -1)));
  return { text, spans };
};

/** Lines between fences, as one line; an unclosed fence extends to the end. */
const maskFences = (lines: readonly string[], keep: (body: string) => string): readonly string[] => {
  const masked: string[] = [];
  let fence: { readonly indent: number; readonly mark: string; readonly body: string[] } | undefined;
  const close = (): void => {
    if (fence) masked.push(" ".repeat(fence.indent) + keep(fence.body.map((line) => `${line}\n`).join("")));
    fence = undefined;
  };
  for (const line of lines) {
    const mark = /^[ \t]*(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence === undefined && mark !== undefined) fence = { indent: indentOf(line), mark, body: [] };
    else if (fence !== undefined && line.trim() === fence.mark) close();
    else if (fence === undefined) masked.push(line);
    else fence.body.push(line.slice(Math.min(fence.indent, indentOf(line))));
  }
  close();
  return masked;
};

/** Text between two equal runs of backticks on one line. Without a pattern, which would take quadratic time. */
const maskCode = (line: string, keep: (body: string) => string): string => {
  const runs = [...line.matchAll(/`+/g)];
  let masked = "";
  let copied = 0;
  for (let at = 0; at < runs.length; at += 1) {
    const opening = runs[at];
    let end = at + 1;
    while (end < runs.length && runs[end]?.[0] !== opening?.[0]) end += 1;
    const closing = runs[end];
    if (opening === undefined || closing === undefined) continue;
    masked += line.slice(copied, opening.index) + keep(line.slice(opening.index + opening[0].length, closing.index));
    copied = closing.index + closing[0].length;
    at = end;
  }
  return masked + line.slice(copied);
};

const indentOf = (text: string): number => /^[ \t]*/.exec(text)?.[0].length ?? 0;

/** The text of a captured word: a span's own text, or the word without final punctuation. */
export const textOfWord = (word: string, { spans }: Masked): string => {
  const index = new RegExp(`^${OPEN}(\\d+)${CLOSE}`).exec(word)?.[1];
  if (index !== undefined) return spans[Number(index)]?.text ?? "";
  return word.replace(/[.,;:!?)]+$/, "");
};

/** The text as a person wrote it, on one line, for a report or a to-do list. */
export const displayText = ({ text, spans }: Masked): string =>
  text
    .replaceAll(new RegExp(`${OPEN}(\\d+)${CLOSE}`, "g"), (_whole, index: string) => {
      const span = spans[Number(index)];
      if (span === undefined) return "";
      if (span.kind === "fence") return "(the text given)";
      return span.kind === "code" ? `\`${span.text}\`` : `"${span.text}"`;
    })
    .replaceAll(/\s+/g, " ")
    .trim();

/** The text as it was written, with its marks, for passing it on. */
export const unmasked = ({ text, spans }: Masked): string =>
  text.replaceAll(new RegExp(`${OPEN}(\\d+)${CLOSE}`, "g"), (_whole, index: string) => {
    const span = spans[Number(index)];
    if (span === undefined) return "";
    if (span.kind === "fence") return `\`\`\`\n${span.text}\`\`\``;
    return span.kind === "code" ? `\`${span.text}\`` : `"${span.text}"`;
  });

export const spansOf = ({ text, spans }: Masked): readonly Span[] =>
  [...text.matchAll(new RegExp(`${OPEN}(\\d+)${CLOSE}`, "g"))].flatMap(([, index]) => spans[Number(index)] ?? []);

/** Words in the position of a folder that mean the whole workspace. */
const WHOLE_PLACE =
  /^(?:the|this|that|it|its|them|all|every|each|any|a|an|my|our|whole|entire|here|there|repo|repository|project|code|codebase|tree|workspace|folder|directory|cwd|\.)$/i;

const FILE_NAME = /^(?!(?:e\.g|i\.e)$)(?:[^/\n]*\.[A-Za-z][\w-]*|Makefile|Dockerfile|LICENSE|README|CHANGELOG|NOTICE)$/;

export const isWholePlace = (word: string): boolean => WHOLE_PLACE.test(word);

/** Does it look like a file, not like a folder or a pattern? */
export const isFileName = (path: string): boolean =>
  !isPattern(path) && !path.endsWith("/") && FILE_NAME.test(path.slice(path.lastIndexOf("/") + 1));

export const isPattern = (path: string): boolean => /[*?[{]/.test(path);

/** Is this unmarked word more likely a path than a word of the sentence? */
export const looksLikePath = (word: string): boolean => /\w/.test(word) && (word.includes("/") || isFileName(word));

const PROGRAMS =
  /^(?:npm|npx|node|yarn|pnpm|bun|deno|make|cargo|go|python3?|pytest|git|ls|wc|cat|head|tail|grep|rg|find|tsc|echo|pwd|date|uname|du|df|stat|sort|true|false)$/;

/** Does the text look like a command? Marked texts may also be names, or text to search for. */
export const isCommand = (text: string): boolean => PROGRAMS.test(/^\S+/.exec(text)?.[0] ?? "");

/** A marked text names a path if it could be one and is not a command. */
export const isMarkedPath = (text: string): boolean =>
  /^\S+$/.test(text) || (/^[^\n]*[^\s.]\.\w{1,8}$/.test(text) && !isCommand(text));
