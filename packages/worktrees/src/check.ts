/** Runs the user's check command after a merge.
 *  Invariant: it runs in its own process group without our keys, and is killed when the caller aborts; the end of its output
 *  is kept.
 *  Elsewhere: when it runs (merge.ts). Settings or the command line choose the command, never a repository. */

import { type ChildProcess, spawn } from "node:child_process";
import { endStragglers, eraseKeysFromBlock, MARK, newMark, withoutProviderKeys } from "@prefork/guard/internal";

export type CheckResult = { readonly ok: boolean; readonly output: string };

export type CheckOptions = {
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number; // default: 20 minutes
};

const MAX_OUTPUT_CHARACTERS = 4_000;

export const runCheck = (command: string, options: CheckOptions): Promise<CheckResult> => {
  const { cwd, environment, signal, timeoutMs = 20 * 60_000 } = options;
  if (signal?.aborted) return Promise.resolve({ ok: false, output: "interrupted before it started" });
  const { promise, resolve } = Promise.withResolvers<CheckResult>();
  eraseKeysFromBlock();
  const mark = newMark();
  const child: ChildProcess = spawn("/bin/bash", ["-c", command], {
    cwd,
    env: { ...withoutProviderKeys(environment), [MARK]: mark },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const collect = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-MAX_OUTPUT_CHARACTERS);
  };
  // There are no streams if the system has no file descriptors left; then the error event says so.
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  const stop = (why: string) => (): void => {
    output += `\n${why}`;
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // it has already ended
    }
    void endStragglers(mark);
  };
  const timer = setTimeout(stop(`timed out after ${timeoutMs / 1_000} s`), timeoutMs);
  const interrupted = stop("interrupted");
  signal?.addEventListener("abort", interrupted, { once: true });
  const done = (checked: CheckResult): void => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", interrupted);
    resolve(checked);
  };
  child.on("error", (error) => done({ ok: false, output: error.message }));
  child.on("close", (code) => {
    const text = output.trim();
    done({ ok: code === 0, output: text !== "" || code === 0 ? text : `it printed nothing and exited with ${code}` });
  });
  return promise;
};
