/** Runs a command of the user's between two merges, and says whether it was content.
 *  Invariant: it runs in a process group of its own without our keys, and ends with whoever waits for it; what it printed last is kept.
 *  Elsewhere: when it runs (merge.ts), who chose it (settings and the command line, never a repository). */

import { spawn } from "node:child_process";
import { endStragglers, eraseKeysFromBlock, MARK, newMark, withoutProviderKeys } from "@prefork/guard/internal";

export type Checked = { readonly ok: boolean; readonly output: string };

export type CheckOptions = {
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number; // default: 20 minutes
};

const KEPT = 4_000;

export const runCheck = (command: string, options: CheckOptions): Promise<Checked> => {
  const { cwd, environment, signal, timeoutMs = 20 * 60_000 } = options;
  if (signal?.aborted) return Promise.resolve({ ok: false, output: "interrupted before it began" });
  const { promise, resolve } = Promise.withResolvers<Checked>();
  eraseKeysFromBlock();
  const mark = newMark();
  const child = spawn("/bin/bash", ["-c", command], {
    cwd,
    env: { ...withoutProviderKeys(environment), [MARK]: mark },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const heard = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-KEPT);
  };
  child.stdout.on("data", heard);
  child.stderr.on("data", heard);
  const stop = (why: string) => (): void => {
    output += `\n${why}`;
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // it has ended by itself
    }
    void endStragglers(mark);
  };
  const timer = setTimeout(stop(`ended after ${timeoutMs / 1_000} s`), timeoutMs);
  const interrupted = stop("interrupted");
  signal?.addEventListener("abort", interrupted, { once: true });
  const done = (checked: Checked): void => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", interrupted);
    resolve(checked);
  };
  child.on("error", (error) => done({ ok: false, output: error.message }));
  child.on("close", (code) => {
    const said = output.trim();
    done({ ok: code === 0, output: said !== "" || code === 0 ? said : `it printed nothing, and ended with ${code}` });
  });
  return promise;
};
