/** Do the targets in documents and headers exist? Checks links and their anchors, code spans that name a path of this
 *  repository, code blocks that name the example they come from, and the files that a source file's header names.
 *  Invariant: code inside fences is never searched for links.
 *  Elsewhere: whether the examples run (../test.ts). */

import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { isFile, lineOf, listFiles, type Problem, type Verdict } from "./source.ts";

type Document = { readonly path: string; readonly text: string; readonly prose: string };

const RULE = "what a document points at exists";

export function checkLinks(root: string): Verdict {
  const documents = listFiles(root, /\.md$/).map((path): Document => {
    const text = readFileSync(join(root, path), "utf8");
    return {
      path,
      text,
      prose: text.replace(/^( *)(```+|~~~+)[\s\S]*?^ *\2/gm, (fence) => fence.replace(/[^\n]/g, " ")),
    };
  });
  const problems = documents.flatMap((document) => [
    ...checkTargets(root, document),
    ...checkPathSpans(root, document),
    ...checkQuotedCode(root, document),
  ]);
  const sources = listFiles(root, /\.ts$/).filter((path) => /^packages\/[^/]+\/src\//.test(path));
  return {
    files: documents.length + sources.length,
    problems: [...problems, ...sources.flatMap((path) => checkHeader(root, path))],
  };
}

const report = (document: Document, index: number, rest: Omit<Problem, "place">): Problem => ({
  place: `${document.path}:${lineOf(document.text, index)}`,
  ...rest,
});

/** `[text](target)` and `[name]: target`; other sites are not asked. */
function checkTargets(root: string, document: Document): readonly Problem[] {
  const prose = document.prose.replace(/`[^`\n]+`/g, (span) => " ".repeat(span.length));
  const found = [...prose.matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)/g), ...prose.matchAll(/^ {0,3}\[[^\]]+\]:\s+(\S+)/gm)];
  return found.flatMap((match) => {
    const [path = "", anchor] = decodeURI(match[1] ?? "").split("#");
    if (/^[a-z][a-z+.-]*:/i.test(path)) return [];
    const target = path === "" ? document.path : posix.join(posix.dirname(document.path), path);
    const fault = faultOf(root, target, anchor);
    return fault ? [report(document, match.index, { rule: `${RULE} (${fault})`, wayOut: "correct the link" })] : [];
  });
}

/** A span like `packages/wire/src/prefix.ts:12`. Patterns, place-holders and built files are not paths. */
function checkPathSpans(root: string, document: Document): readonly Problem[] {
  const span = /`((?:packages|apps|docs|examples|bench|evals|scripts|\.ci)\/[\w@.\-/]*)(?::(\d+)|#(L\d+\S*))?`/g;
  return [...document.prose.matchAll(span)].flatMap((match) => {
    const [, path = "", line, anchor] = match;
    if (/\bdist\b|node_modules|NNNN/.test(path)) return [];
    const fault = faultOf(root, path, line ? `L${line}` : anchor);
    const wayOut = "name a path that exists, from the root of the repository";
    return fault ? [report(document, match.index, { rule: `${RULE} (${fault})`, wayOut })] : [];
  });
}

function faultOf(root: string, target: string, anchor: string | undefined): string | undefined {
  const full = join(root, target);
  if (target.startsWith("..") || !existsSync(full)) return `${target} is not there`;
  if (anchor === undefined || anchor === "") return undefined;
  const text = isFile(full) ? readFileSync(full, "utf8") : "";
  const lines = /^L(\d+)(?:-L?(\d+))?$/.exec(anchor);
  if (lines) {
    const count = text.trimEnd().split("\n").length;
    return Number(lines[2] ?? lines[1]) > count ? `${target} has ${count} lines, not ${anchor.slice(1)}` : undefined;
  }
  return target.endsWith(".md") && !headingsOf(text).includes(anchor)
    ? `${target} has no heading #${anchor}`
    : undefined;
}

/** The files that a header names: `run.ts` in the same folder or from the package's `src`, `../fork`, `../fork: family.ts`
 *  and `@prefork/wire: family.ts` in that folder or package. */
function checkHeader(root: string, path: string): readonly Problem[] {
  const text = readFileSync(join(root, path), "utf8");
  const header = /^(?:#!.*\n)?\/\*\*[\s\S]*?\*\//.exec(text)?.[0] ?? "";
  const [folder, source] = [posix.dirname(path), path.split("/").slice(0, 3).join("/")];
  const within = (named: string): readonly string[] =>
    named.startsWith("@prefork/")
      ? [`packages/${named.slice("@prefork/".length)}/src`]
      : [posix.join(folder, named), posix.join(source, named)];
  const reference =
    /(?:(@prefork\/[\w-]+|[\w./-]+):[\s*]+)?((?:[\w./-]+\.ts\b(?:(?:,|\s+and)[\s*]+(?=[\w./-]+\.ts\b))?)+)|(?<=\()(\.\.\/[\w./-]*[\w-])/g;
  return [...header.matchAll(reference)].flatMap((match) => {
    const [, named, files, other = ""] = match;
    const inner = [source, "", ...(named === undefined ? [] : within(named))];
    const basesOf = (name: string): readonly string[] => [folder, ...(name.startsWith("..") ? [] : inner)];
    const names = files?.match(/[\w./-]+\.ts\b/g) ?? [other];
    return names
      .filter((name) => !basesOf(name).some((base) => existsSync(join(root, base, name))))
      .map((name) => ({
        place: `${path}:${lineOf(text, match.index)}`,
        rule: `what a header names exists (${name} is not there)`,
        wayOut:
          "name the file that has this part now, as `file.ts`, `../folder: file.ts` or `@prefork/package: file.ts`",
      }));
  });
}

/** The anchors a Markdown page gets: lower case, punctuation dropped, spaces as hyphens, repeats numbered. */
function headingsOf(text: string): readonly string[] {
  const seen = new Map<string, number>();
  return [...text.matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)].map(([, title = ""]) => {
    const slug = title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-");
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    return times === 0 ? slug : `${slug}-${times}`;
  });
}

/** `<!-- from examples/01-x.ts -->` or `<!-- from examples/01-x.ts#region -->`, then the fence that quotes it. */
function checkQuotedCode(root: string, document: Document): readonly Problem[] {
  const quote = /<!-- from ([^\s#]+)(?:#(\S+))? -->\s*\n(`{3,})[^\n]*\n([\s\S]*?)^\3/gm;
  const marks = [...document.prose.matchAll(/<!-- from \S+ -->/g)];
  const quotes = [...document.text.matchAll(quote)];
  const bare = marks.filter((mark) => !quotes.some((match) => match.index === mark.index));
  const rule = "code in documents comes from a program that runs";
  return [
    ...bare.map((mark) => report(document, mark.index, { rule, wayOut: "put the fence right after the mark" })),
    ...quotes.flatMap((match) => {
      const [, path = "", region, , code = ""] = match;
      const source = isFile(join(root, path)) ? regionOf(readFileSync(join(root, path), "utf8"), region) : undefined;
      if (source?.trimEnd() === code.trimEnd()) return [];
      const name = region === undefined ? path : `${path}#${region}`;
      const wayOut = source === undefined ? `${name} is not there` : `copy ${name} into the block again`;
      return [report(document, match.index, { rule, wayOut })];
    }),
  ];
}

/** What stands between `// #region name` and `// #endregion`, moved to the left edge; without a name the whole file. */
function regionOf(text: string, region: string | undefined): string | undefined {
  if (region === undefined) return text;
  const lines = text.split("\n");
  const start = lines.findIndex((line) => line.trim() === `// #region ${region}`);
  const length = lines.slice(start + 1).findIndex((line) => line.trim().startsWith("// #endregion"));
  if (start === -1 || length === -1) return undefined;
  const body = lines.slice(start + 1, start + 1 + length);
  const indents = body.filter((line) => line.trim() !== "").map((line) => line.length - line.trimStart().length);
  const indent = Math.min(...indents);
  return body.map((line) => line.slice(indent)).join("\n");
}
