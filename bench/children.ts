/** Child processes that take one order at a time and report on it.
 *  Invariant: a child is killed with its owner's scope, by its own id; a child that fails or stays silent is an error with
 *  its name, never an endless wait.
 *  Elsewhere: what the children do (wire/). */

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export type Child<TOrder extends object, TReport> = AsyncDisposable & {
  readonly first: TReport;
  readonly ask: (order: TOrder) => Promise<TReport>;
};

const PATIENCE_MS = 180_000;
/** V8's own limit depends on the machine's memory; a comparison must not fail at a different point on every machine. */
const MAX_HEAP_MB = 4_096;

/** Starts a script and waits for its first report. */
export const startChild = async <TOrder extends object, TReport>(
  script: URL,
  parameters: readonly string[] = [],
): Promise<Child<TOrder, TReport>> => {
  const child = fork(fileURLToPath(script), parameters, {
    execArgv: [...process.execArgv, `--max-old-space-size=${MAX_HEAP_MB}`],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const name = [script.pathname.split("/").at(-1), ...parameters.slice(0, 1)].join(" ");
  const report = async (): Promise<TReport> => {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, AbortSignal.timeout(PATIENCE_MS)]);
    try {
      const [said] = await Promise.race([
        once(child, "message", { signal }),
        once(child, "exit", { signal }).then(([code]) => Promise.reject(new Error(`it ended (${code})`))),
      ]);
      return said as TReport;
    } catch (cause) {
      throw new Error(`${name} did not report: ${(cause as Error).message}`, { cause });
    } finally {
      over.abort();
    }
  };
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  try {
    const first = await report();
    return {
      first,
      ask: (order) => {
        const said = report();
        child.send(order);
        return said;
      },
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
};
