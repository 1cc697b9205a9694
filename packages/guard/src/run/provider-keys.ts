/** Which variables are keys of model providers, and how do they leave the memory that other processes can read?
 *  Invariant: `process.env` keeps its values; only the block that the kernel shows as /proc/<pid>/environ is changed, and
 *  of it only these variables.
 *  Elsewhere: what commands get of the environment (../agent), systems without /proc (the launcher of the command line). */

import { closeSync, openSync, readFileSync, writeSync } from "node:fs";

/** Names of keys of model providers, and of ours. */
const KEYS =
  /^(ANTHROPIC|OPENAI|GEMINI|GOOGLE|OPENROUTER|DEEPSEEK|MINIMAX|DASHSCOPE|MOONSHOT|ZHIPU|ZHIPUAI|ZAI|MISTRAL|GROQ|XAI)_.*(KEY|TOKEN|SECRET)$|^PREFORK_.*(KEY|TOKEN|SECRET)$/s;

export const isProviderKey = (name: string): boolean => KEYS.test(name);

type Variables = Readonly<Record<string, string | undefined>>;

export const withoutProviderKeys = (environment: Variables): Variables =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !isProviderKey(name)));

/** The block as it was when the process began. Afterwards `process.env` lives elsewhere, but the block stays readable for
 *  every process of the same user: a command would find the key in /proc/$PPID/environ. Called before anything is started
 *  that could look. True where no key is left in the block. */
export const eraseKeysFromBlock = (): boolean => {
  if (process.platform !== "linux") return false;
  try {
    const found = keysIn(readFileSync("/proc/self/environ"));
    if (found.length === 0) return true;
    // The runtime reads the block itself until a variable is set anew.
    for (const { name } of found) process.env[name] = String(process.env[name] ?? "");
    const memory = openSync("/proc/self/mem", "r+");
    try {
      const start = blockStart();
      for (const { at, length } of found) writeSync(memory, Buffer.alloc(length), 0, length, start + at);
    } finally {
      closeSync(memory);
    }
    return keysIn(readFileSync("/proc/self/environ")).length === 0;
  } catch {
    return false; // no /proc, or one that does not let us write
  }
};

type BlockEntry = { readonly name: string; readonly at: number; readonly length: number };

const keysIn = (block: Buffer): readonly BlockEntry[] => {
  const found: BlockEntry[] = [];
  for (let at = 0; at < block.length; ) {
    const zero = block.indexOf(0, at);
    const end = zero < 0 ? block.length : zero;
    const entry = block.toString("latin1", at, end);
    const name = entry.slice(0, Math.max(0, entry.indexOf("=")));
    if (isProviderKey(name)) found.push({ name, at, length: end - at });
    at = end + 1;
  }
  return found;
};

/** Field 50 of the process's line; the program's name before it may hold spaces and parentheses. */
const blockStart = (): number => {
  const line = readFileSync("/proc/self/stat", "latin1");
  const start = Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[47]);
  if (!Number.isSafeInteger(start) || start <= 0) throw new Error("the start of the environment is not shown");
  return start;
};
