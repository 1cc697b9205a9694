/** Really runs allowed commands: in bubblewrap, without network and capabilities, in a folder that is thrown away.
 *  Invariant: the root is read-only; a program that opens a socket to the network is killed at once and found by that; the tree is compared after every command.
 *  Elsewhere: what happens inside (inside.ts). */

import { spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type SampleReport = { readonly findings: readonly string[]; readonly summary: string };

const BWRAP = "/usr/bin/bwrap";
const SYSTEM_CALLS: Readonly<Record<string, { readonly arch: number; readonly socket: number }>> = {
  x64: { arch: 0xc000003e, socket: 41 },
  arm64: { arch: 0xc00000b7, socket: 198 },
};

/** Why nothing can be really run here; undefined if it can. */
export const sandboxProblem = (): string | undefined => {
  if (process.platform !== "linux") return "there is no bubblewrap on this system";
  if (!existsSync(BWRAP)) return "bubblewrap is not installed";
  if (!SYSTEM_CALLS[process.arch]) return `the system calls of ${process.arch} are not known`;
  const tried = spawnSync(BWRAP, [...walls("/tmp"), "--", "/bin/true"]);
  return tried.status === 0 ? undefined : `bubblewrap does not work here: ${tried.stderr}`.trim();
};

/** Everything readable, one folder writable, nothing else shared. */
const walls = (writable: string): readonly string[] => [
  ...["--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--ro-bind", "/", "/"],
  ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", writable, "/tmp/place", "--chdir", "/tmp/place"],
];

/** A filter for the kernel: `socket` for anything but AF_UNIX and AF_NETLINK, which stay in the machine, ends the process. Each instruction is code, jumps, value. */
const socketFilter = (): Buffer => {
  const { arch, socket } = SYSTEM_CALLS[process.arch] as { readonly arch: number; readonly socket: number };
  const [LOAD, EQUAL, RETURN] = [0x20, 0x15, 0x06];
  const [ALLOW, KILL] = [0x7fff0000, 0x80000000];
  const program: readonly (readonly [number, number, number, number])[] = [
    [LOAD, 0, 0, 4],
    [EQUAL, 0, 5, arch],
    [LOAD, 0, 0, 0],
    [EQUAL, 0, 3, socket],
    [LOAD, 0, 0, 16],
    [EQUAL, 1, 0, 1],
    [EQUAL, 0, 1, 16],
    [RETURN, 0, 0, ALLOW],
    [RETURN, 0, 0, KILL],
  ];
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, [code, yes, no, value]] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(yes, index * 8 + 2);
    bytes.writeUInt8(no, index * 8 + 3);
    bytes.writeUInt32LE(value, index * 8 + 4);
  }
  return bytes;
};

export type Inside = { readonly script: string; readonly input: string; readonly sockets: "free" | "deadly" };

/** Runs a script of this folder inside the walls; its standard output. */
export const insideWalls = async ({ script, input, sockets }: Inside): Promise<string> => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "prefork-fuzz-")));
  const place = join(folder, "place");
  mkdirSync(place);
  writeFileSync(join(folder, "filter"), socketFilter());
  const filter = openSync(join(folder, "filter"), "r");
  try {
    const seal = sockets === "deadly" ? ["--seccomp", "3"] : [];
    const node = [process.execPath, "--conditions=prefork-source", "--disable-warning=ExperimentalWarning"];
    const child = spawn(BWRAP, [...walls(place), ...seal, "--", ...node, join(import.meta.dirname, script)], {
      env: { PATH: "/usr/bin:/bin", HOME: "/tmp/place" },
      stdio: ["pipe", "pipe", "inherit", filter],
    });
    const printed: Buffer[] = [];
    child.stdout?.on("data", (chunk: Buffer) => printed.push(chunk));
    child.stdin?.end(input);
    const code = await new Promise<number | null>((done) => child.once("close", done));
    if (code !== 0) throw new Error(`${script} ended with ${code} inside the walls`);
    return Buffer.concat(printed).toString();
  } finally {
    closeSync(filter);
    rmSync(folder, { recursive: true, force: true });
  }
};

export const runSamples = async (commands: readonly string[]): Promise<SampleReport> => {
  const output = await insideWalls({ script: "inside.ts", input: JSON.stringify(commands), sockets: "deadly" });
  const { ran, findings } = JSON.parse(output) as { readonly ran: number; readonly findings: readonly string[] };
  return {
    findings,
    summary: `${ran} allowed commands really run, ${findings.length} of them changed a file, showed keys or opened a socket`,
  };
};
