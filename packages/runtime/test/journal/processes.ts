/** Starts writer-process.ts and reads its output. */

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("writer-process.ts", import.meta.url));

export type Fact = Readonly<Record<string, string | number>>;

export type WriterProcess = AsyncDisposable & {
  readonly pid: number;
  /** The next line it prints; undefined when it has ended. */
  readonly next: () => Promise<Fact | undefined>;
  readonly tell: () => void;
  readonly kill: () => Promise<void>;
};

/** `before` is run by the shell that becomes the process: limits, for example. */
export const startWriter = (parameters: readonly string[], before = ":"): WriterProcess => {
  const command = [process.execPath, ...process.execArgv, PROGRAM, ...parameters];
  const child = spawn("/bin/bash", ["-c", `${before}; exec "$@"`, "bash", ...command], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise<void>((done) => child.once("close", () => done()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  return {
    pid: child.pid ?? 0,
    next: async () => {
      const { value, done } = await lines.next();
      return done ? undefined : (JSON.parse(value) as Fact);
    },
    tell: () => void child.stdin.write("\n"),
    kill,
    [Symbol.asyncDispose]: kill,
  };
};
