/** The prompts that were typed in a folder, for the up arrow.
 *  Invariant: the file is private, each prompt is one line of JSON, and a file that cannot be read or written only means an
 *  empty history.
 *  Elsewhere: the input line (input.ts). */

import { createHash } from "node:crypto";
import { appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

const MAX_PROMPTS = 200;
const MAX_FILE = 1_000_000;

export class PromptHistory {
  readonly #file: string;

  constructor(home: string, cwd: string) {
    const name = createHash("sha256").update(cwd).digest("hex").slice(0, 16);
    this.#file = join(home, ".local", "state", "prefork", "prompts", `${name}.jsonl`);
  }

  /** Oldest first. */
  async load(): Promise<readonly string[]> {
    try {
      const text = await readFile(this.#file, "utf8");
      const prompts = text.split("\n").flatMap(parsePrompt).slice(-MAX_PROMPTS);
      if (text.length > MAX_FILE) await writeFile(this.#file, prompts.map(toLine).join(""), { mode: 0o600 });
      return prompts;
    } catch {
      return [];
    }
  }

  async add(prompt: string): Promise<void> {
    try {
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
      await appendFile(this.#file, toLine(prompt), { mode: 0o600 });
    } catch {
      // the prompt is in the journal all the same
    }
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
