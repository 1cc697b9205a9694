/** The prompts that were typed in a folder, for the up arrow.
 *  Invariant: the file is private, each prompt is one line of JSON, and a file that cannot be read or written only means an
 *  empty history.
 *  Elsewhere: the input line (input.ts). */

import { createHash } from "node:crypto";
import { appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

const MAX_PROMPTS = 200;
const MAX_FILE = 1_000_000;

export class PromptHistory {
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #name: string;

  constructor(env: Readonly<Record<string, string | undefined>>, cwd: string) {
    this.#env = env;
    this.#name = `${createHash("sha256").update(cwd).digest("hex").slice(0, 16)}.jsonl`;
  }

  /** Oldest first. */
  async load(): Promise<readonly string[]> {
    try {
      const file = await this.#file();
      const text = await readFile(file, "utf8");
      const prompts = text.split("\n").flatMap(parsePrompt).slice(-MAX_PROMPTS);
      if (text.length > MAX_FILE) await writeFile(file, prompts.map(toLine).join(""), { mode: 0o600 });
      return prompts;
    } catch {
      return [];
    }
  }

  async add(prompt: string): Promise<void> {
    try {
      const file = await this.#file();
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await appendFile(file, toLine(prompt), { mode: 0o600 });
    } catch {
      // the prompt is in the journal all the same
    }
  }

  /** The guard is loaded when it is needed, because the first frame does not wait for it. */
  async #file(): Promise<string> {
    const { stateFolder } = await import("@prefork/guard");
    return join(stateFolder(this.#env, this.#env.HOME || homedir()), "prompts", this.#name);
  }
}

const toLine = (prompt: string): string => `${JSON.stringify(prompt)}\n`;

const parsePrompt = (line: string): readonly string[] => {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "string" ? [value] : [];
  } catch {
    return [];
  }
};
