/** Which editor does the user want, and how is a file opened in it?
 *  Invariant: the editor is started from a list of arguments and never through a shell, so no character of a path or a
 *  variable is interpreted.
 *  Elsewhere: editing settings (config-edit.ts). */

import { spawn } from "node:child_process";

export type Editor = {
  readonly argv: readonly string[];
  /** The setting or variable that names it. */
  readonly from: string;
};

/** `configured` is the setting terminal.editor. Undefined if nothing names an editor. */
export const editorOf = (
  env: Readonly<Record<string, string | undefined>>,
  configured: readonly string[] | undefined,
): Editor | undefined => {
  if (configured !== undefined && configured.length > 0) return { argv: configured, from: "terminal.editor" };
  for (const name of ["VISUAL", "EDITOR"]) {
    const argv = splitWords(env[name] ?? "");
    if (argv.length > 0) return { argv, from: name };
  }
  return undefined;
};

/** `code --wait` and `"/opt/my editor" -w` as words. Quotes group; nothing is expanded. */
export const splitWords = (text: string): readonly string[] =>
  [...text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) =>
    word.replace(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ""),
  );

export type EditorEnd = { readonly kind: "closed" } | { readonly kind: "failed"; readonly reason: string };

/** Opens the file in the editor, which gets the terminal, and waits until it is closed. */
export const openInEditor = ({ argv }: Editor, file: string, env: NodeJS.ProcessEnv): Promise<EditorEnd> => {
  const [program = "", ...args] = argv;
  return new Promise((resolve) => {
    const child = spawn(program, [...args, file], { stdio: "inherit", env });
    child.once("error", (error: NodeJS.ErrnoException) => {
      const reason = error.code === "ENOENT" ? "there is no such program" : error.message;
      resolve({ kind: "failed", reason: `cannot be started: ${reason}` });
    });
    child.once("exit", (code, signal) => {
      if (code === 0) resolve({ kind: "closed" });
      else resolve({ kind: "failed", reason: code === null ? `ended by ${signal}` : `ended with exit code ${code}` });
    });
  });
};
