/** `prefork doctor`: which layers of protection are active here, and why are the others not?
 *  Invariant: each layer is tried, not assumed; nothing is changed, and what is missing is no failure.
 *  Elsewhere: the layers themselves (@prefork/runtime). */

import { execFile } from "node:child_process";
import { homedir, tmpdir } from "node:os";
import { findProgram, inspectPrivateFolder, openRoot, probeSandbox, stateFolder } from "@prefork/runtime";
import type { Command } from "commander";
import { type Io, newCommand } from "../io.ts";

type Layer = {
  readonly name: string;
  readonly active: boolean;
  readonly detail: string;
  /** What to do about a layer that is not active. */
  readonly wayOut?: string;
};

const OLDEST_NODE = [22, 22, 2] as const;

const runtime = (): Layer => {
  const parts = process.versions.node.split(".").map(Number);
  const at = OLDEST_NODE.findIndex((wanted, index) => parts[index] !== wanted);
  const active = at === -1 || (parts[at] ?? 0) > (OLDEST_NODE[at] ?? 0);
  const detail = `Node ${process.versions.node} on ${process.platform}-${process.arch}`;
  return {
    name: "runtime",
    active,
    detail,
    ...(active ? {} : { wayOut: `install Node ${OLDEST_NODE.join(".")} or newer` }),
  };
};

const descriptors = async (): Promise<Layer> => {
  const name = "files by descriptor";
  try {
    await using root = await openRoot(tmpdir());
    if (root.way === "descriptors") return { name, active: true, detail: "folders are held through /proc/self/fd" };
    const detail =
      "this system has no /proc/self/fd: links are refused, and folders are compared again around each use";
    return { name, active: false, detail, wayOut: "use Linux, or a container, where folders can be held" };
  } catch (error) {
    return { name, active: false, detail: (error as Error).message, wayOut: "set TMPDIR to a folder that is there" };
  }
};

const sandbox = async (): Promise<Layer> => {
  const probe = await probeSandbox();
  const name = "sandbox";
  if (probe.ok)
    return { name, active: true, detail: `${probe.program} ran a command without network and capabilities` };
  const wayOut = "install bubblewrap and permit user namespaces; `sandbox: required` refuses commands until then";
  return { name, active: false, detail: probe.reason, wayOut };
};

const versionOf = (program: string): Promise<{ readonly starts: boolean; readonly said: string }> =>
  new Promise((done) => {
    execFile(program, ["--version"], { timeout: 5_000, env: {} }, (error, stdout) =>
      done({ starts: error === null, said: ((error === null ? stdout : error.message).split("\n")[0] ?? "").trim() }),
    );
  });

/** Only among the system's programs: one that a project brings along is never run. */
const program = async (name: string, command: string): Promise<Layer> => {
  const path = findProgram(command);
  if (path === undefined)
    return { name, active: false, detail: `no ${command} in the system's folders`, wayOut: `install ${name}` };
  const { starts, said } = await versionOf(path);
  return {
    name,
    active: starts,
    detail: `${path}, ${said}`,
    ...(starts ? {} : { wayOut: `repair or reinstall ${name}` }),
  };
};

const state = async ({ env }: Io): Promise<Layer> => {
  const inspected = await inspectPrivateFolder(stateFolder(env, env.HOME ?? homedir()));
  const name = "state folder";
  if (!inspected.ok)
    return {
      name,
      active: false,
      detail: inspected.reason,
      wayOut: "repair its owner and mode, or set XDG_STATE_HOME",
    };
  const { path, mode } = inspected;
  if (mode === undefined)
    return { name, active: true, detail: `${path} is not there yet and will be made with mode 0700` };
  const found = `${path}, mode 0${mode.toString(8)}`;
  return { name, active: true, detail: mode === 0o700 ? found : `${found}; it is closed to 0700 at the next use` };
};

const asText = ({ name, active, detail, wayOut }: Layer): string =>
  `${active ? "on " : "off"}  ${name.padEnd(20)}${detail}\n${wayOut === undefined ? "" : `${" ".repeat(25)}${wayOut}\n`}`;

export const doctorCommand = (io: Io): Command =>
  newCommand("doctor", io)
    .description("say which layers of protection are active here, and why the others are not")
    .option("--json", "the same for machines")
    .allowExcessArguments(false)
    .action(async (options: { readonly json?: true }) => {
      const layers = await Promise.all([
        runtime(),
        descriptors(),
        sandbox(),
        program("git", "git"),
        program("ripgrep", "rg"),
        state(io),
      ]);
      io.out(options.json ? `${JSON.stringify({ layers })}\n` : layers.map(asText).join(""));
    });
