/** Was this process started by a fork, whatever its environment says?
 *  Invariant: every command of a fork runs below a process whose arguments name the fork. A process cannot change the
 *  arguments of another one, and the command ends with it. In the sandbox this is the first process, which also adopts
 *  orphans. Outside the sandbox, a process that leaves both its parents *and* its session is not recognised.
 *  Elsewhere: the environment variable with the same meaning (../session), starting commands (run-command.ts). */

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** The name of a command's shell: the word after its script. */
export const shellName = ({ PREFORK_LINEAGE: lineage }: Readonly<Record<string, string>>): string =>
  lineage?.startsWith("fork:") ? `prefork:${lineage}` : "bash";

export const isForkName = (name: string): boolean => /^prefork:fork:[\w-]+$/.test(name);

/** Every script of run-command.ts ends like this. In a text that merely mentions the name, no script comes before
 *  it. */
const SCRIPT_END = "3>&-";

const isForkCommandLine = (words: readonly string[]): boolean =>
  words.some((word, at) => isForkName(word) && words[at - 1]?.endsWith(SCRIPT_END));

export const hasForkAncestor = (): boolean => {
  try {
    return process.platform === "linux" ? hasForkInProc() : process.platform === "darwin" && hasForkInProcessList();
  } catch {
    return false; // other processes are not visible
  }
};

type Status = { readonly parent: number; readonly session: number; readonly started: number };

const statusOf = (pid: number | "self"): Status | undefined => {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
    return { parent: Number(fields[1]), session: Number(fields[3]), started: Number(fields[19]) };
  } catch {
    return undefined; // it has ended, or is hidden
  }
};

const commandLineOf = (pid: number): readonly string[] => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
};

const hasForkInProc = (): boolean => {
  const sessions = new Set<number>();
  let status = statusOf("self");
  while (status !== undefined) {
    sessions.add(status.session);
    const { parent, started } = status;
    if (parent === 0) break;
    const above = statusOf(parent);
    // If the parent started later than its child, its process id was reused.
    if (above === undefined || above.started > started) break;
    if (isForkCommandLine(commandLineOf(parent))) return true;
    status = above;
  }
  // The watcher of a command is a child of the session's first process.
  return [...sessions].some((leader) =>
    [leader, ...childrenOf(leader)].some(
      (pid) => sessions.has(statusOf(pid)?.session ?? -1) && isForkCommandLine(commandLineOf(pid)),
    ),
  );
};

const childrenOf = (pid: number): readonly number[] => {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ").filter(Boolean).map(Number);
  } catch {
    return allProcesses().filter((other) => statusOf(other)?.parent === pid); // this kernel has no such list
  }
};

const allProcesses = (): readonly number[] => readdirSync("/proc").map(Number).filter(Number.isInteger);

/** Without /proc: the ancestors and their children. The watcher of a command is one of these. */
const hasForkInProcessList = (): boolean => {
  const listed = execFileSync("/bin/ps", ["-axww", "-o", "pid=,ppid=,command="], { encoding: "utf8", env: {} });
  const rows = listed.split("\n").flatMap((line) => {
    const [, pid, parent, words = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/s.exec(line) ?? [];
    return pid === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), words }];
  });
  const above = new Set<number>();
  for (let at: number | undefined = process.ppid; at !== undefined && at > 1 && !above.has(at); ) {
    above.add(at);
    at = rows.find(({ pid }) => pid === at)?.parent;
  }
  return rows.some(({ pid, parent, words }) => (above.has(pid) || above.has(parent)) && isForkShell(words));
};

/** Among the arguments of a shell, so not at the very start. */
const isForkShell = (words: string): boolean => {
  const first = words.indexOf(" ");
  return first >= 0 && /3>&- prefork:fork:[\w-]+ /.test(words.slice(first + 1));
};
