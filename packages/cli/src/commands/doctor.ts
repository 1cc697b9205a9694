/** `prefork doctor`: which layers of protection are active here, what does each cover, and why are the others inactive?
 *  Invariant: each layer is tried, not assumed; nothing is changed; a missing layer is not a failure, unless a prompt could
 *  not start.
 *  Elsewhere: the layers themselves (@prefork/guard), settings, key and model (doctor-setup.ts). */

import { execFile } from "node:child_process";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import {
  classify,
  findProgram,
  findRipgrep,
  inspectPrivateFolder,
  openReadOnlySandbox,
  openRoot,
  probeSandbox,
  type ReadOnlySandbox,
  runPlan,
  type SandboxProbe,
  stateFolder,
  whyMissing,
} from "@prefork/guard";
import { Worktrees } from "@prefork/worktrees";
import { type Command, Option } from "commander";
import { type Io, newCommand } from "../io.ts";
import { type EngineFlags, PROVIDERS } from "../print/index.ts";
import { visible } from "../visible.ts";
import { terminalColumns, wrapText } from "../width.ts";
import { GO_ELSEWHERE, type Layer, setupLayers, workingFolder } from "./doctor-setup.ts";

const OLDEST_NODE = [22, 18, 0] as const;

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
  const covers = "every file that Read, Write and Edit touch";
  try {
    await using root = await openRoot(tmpdir());
    if (root.way === "descriptors")
      return { name, active: true, detail: "folders are kept open through /proc/self/fd", covers };
    const detail =
      "this system has no /proc/self/fd, so links are refused, and folders are compared before and after each use";
    return { name, active: false, detail, covers, wayOut: "use Linux, or a container, where folders can be kept open" };
  } catch (error) {
    const detail = (error as Error).message;
    return { name, active: false, detail, covers, wayOut: "set TMPDIR to an existing folder" };
  }
};

const ONLY_READING = "commands that are provably read-only";
const APPROVED = "approved commands, in a real shell";

/** Runs a small read-only command; undefined if that worked. */
const commandFailure = async (sandbox?: ReadOnlySandbox): Promise<string | undefined> => {
  const judged = classify("printf 'a\\nb\\n' | tail -n 1");
  if (judged.verdict !== "read-only") return judged.reason;
  const { stdout, stderr, ended } = await runPlan(judged.plan, {
    cwd: "/",
    timeoutMs: 10_000,
    ...(sandbox && { readOnlySandbox: sandbox }),
  });
  if (stdout === "b\n") return undefined;
  return stderr.trim().split("\n")[0] || (ended === "timed-out" ? "it did not answer in time" : "it printed nothing");
};

const plannedCommands = async (): Promise<Layer> => {
  const failure = await commandFailure();
  const name = "parsed commands";
  if (failure === undefined)
    return {
      name,
      active: true,
      detail: "a command ran exactly as it was parsed, in a clean environment",
      covers: ONLY_READING,
    };
  return {
    name,
    active: false,
    detail: failure,
    covers: ONLY_READING,
    wayOut: "install bash and the standard programs",
  };
};

/** Shell built-ins only. */
const SANDBOX_TRIAL = `
for folder in / "$@"; do [ -w "$folder" ] && { echo "$folder is writable inside"; exit 3; }; done
while read -r name rest; do
  case $name in Iface|lo) ;; *) echo "the network is reachable inside"; exit 4 ;; esac
done < /proc/net/route`;

/** Checks the sandbox from inside, then runs a command in it; undefined if both worked. */
const sandboxFailure = async (sandbox: ReadOnlySandbox): Promise<string | undefined> => {
  const [program = "", ...words] = sandbox.enter(
    ["/bin/sh", "-c", SANDBOX_TRIAL, "sh", tmpdir(), workingFolder() ?? "/"],
    "/",
  );
  const failure = await new Promise<string | undefined>((done) => {
    execFile(program, words, { timeout: 10_000, env: {} }, (error, stdout, stderr) =>
      done(error === null ? undefined : `${stdout}${stderr}${error.message}`.split("\n")[0]),
    );
  });
  return failure ?? commandFailure(sandbox);
};

const GET_BUBBLEWRAP = "install bubblewrap and permit user namespaces";

const readOnlySandbox = async (probe: SandboxProbe): Promise<Layer> => {
  const opened = await openReadOnlySandbox({ mode: "auto", probe });
  const failure = opened.kind === "on" ? await sandboxFailure(opened.sandbox) : opened.reason;
  const name = "read-only sandbox";
  if (failure === undefined)
    return { name, active: true, detail: "a command ran where nothing can be written or sent", covers: ONLY_READING };
  const wayOut = `${GET_BUBBLEWRAP}; until then these commands run exactly as parsed, without it`;
  return { name, active: false, detail: failure, covers: ONLY_READING, wayOut };
};

const sandbox = (probe: SandboxProbe): Layer => {
  const name = "sandbox";
  if (!probe.ok) {
    const wayOut = `${GET_BUBBLEWRAP}; \`sandbox: required\` refuses commands until then`;
    return { name, active: false, detail: probe.reason, covers: APPROVED, wayOut };
  }
  const detail = `${probe.program} ran a command without network or capabilities`;
  return { name, active: true, detail, covers: `${APPROVED}, unless the settings switch it off` };
};

const versionOf = (program: string): Promise<{ readonly starts: boolean; readonly output: string }> =>
  new Promise((done) => {
    execFile(program, ["--version"], { timeout: 5_000, env: {} }, (error, stdout) =>
      done({ starts: error === null, output: ((error === null ? stdout : error.message).split("\n")[0] ?? "").trim() }),
    );
  });

/** Only programs of the system and our own: a program inside a project never runs. */
const program = async (name: string, command: string): Promise<Layer> => {
  const path = command === "rg" ? findRipgrep() : findProgram(command);
  if (path === undefined)
    return { name, active: false, detail: `${command} is ${whyMissing(command)}`, wayOut: `install ${name}` };
  const { starts, output } = await versionOf(path);
  return {
    name,
    active: starts,
    detail: `${path}, ${output}`,
    ...(starts ? {} : { wayOut: `reinstall ${name}` }),
  };
};

const OLDEST_MERGING_GIT = [2, 38] as const;

/** Since this version git merges trees without a checkout. */
const worktrees = async (): Promise<Layer> => {
  const name = "worktrees";
  const covers = "forks that change code in their own worktrees";
  const path = findProgram("git");
  const { output: version = "" } = path === undefined ? {} : await versionOf(path);
  const [, major = "0", minor = "0"] = /(\d+)\.(\d+)/.exec(version) ?? [];
  const [oldest, least] = OLDEST_MERGING_GIT;
  if (Number(major) < oldest || (Number(major) === oldest && Number(minor) < least)) {
    const wayOut = `install git ${OLDEST_MERGING_GIT.join(".")} or newer`;
    return {
      name,
      active: false,
      detail: version === "" ? "git is not installed" : `${version} cannot merge trees`,
      covers,
      wayOut,
    };
  }
  const cwd = workingFolder();
  if (cwd === undefined)
    return { name, active: false, detail: "the working folder was deleted", covers, wayOut: GO_ELSEWHERE };
  const refusal = await Worktrees.refusal(cwd);
  if (refusal === undefined)
    return { name, active: true, detail: "worktrees can be created from this checkout", covers };
  return {
    name,
    active: false,
    detail: refusal,
    covers,
    wayOut: "start in a git checkout without an unfinished merge or rebase",
  };
};

const state = async ({ env }: Io): Promise<Layer> => {
  const folder = stateFolder(env, env.HOME || homedir());
  const found = await inspectPrivateFolder(folder);
  const below = found.ok && found.mode !== undefined ? await inspectPrivateFolder(join(folder, "sessions")) : found;
  const inspected = below.ok ? found : below;
  const name = "state folder";
  if (!inspected.ok)
    return {
      name,
      active: false,
      isBroken: true, // no session can be stored, so none starts
      detail: inspected.reason,
      wayOut: "repair its owner and mode, or set XDG_STATE_HOME",
    };
  const { path, mode } = inspected;
  if (mode === undefined)
    return { name, active: true, detail: `${path} does not exist yet and will be created with mode 0700` };
  const seen = `${path}, mode 0${mode.toString(8)}`;
  return { name, active: true, detail: mode === 0o700 ? seen : `${seen}; it is changed to 0700 at the next use` };
};

/** Names get their own column if enough room is left next to it. */
const NAME_WIDTH = 20;
const MIN_DETAIL_WIDTH = 30;

const layerAsText = ({ name, active, detail, covers, wayOut, isBroken }: Layer): string => {
  const below = [covers === undefined ? [] : `${active ? "covers" : "would cover"} ${covers}`, wayOut ?? []].flat();
  const mark = isBroken ? "bad" : active ? "on " : "off";
  const width = terminalColumns();
  const isNarrow = width !== undefined && width < 5 + NAME_WIDTH + MIN_DETAIL_WIDTH;
  const indent = " ".repeat(isNarrow ? 5 : 5 + NAME_WIDTH);
  const [first = "", ...others] = [visible(detail), ...below]
    .flatMap((line) => (width === undefined ? [line] : wrapText(line, width - indent.length)))
    .map((line) => `${line}\n`);
  const head = isNarrow ? `${mark}  ${name}\n${indent}` : `${mark}  ${name.padEnd(NAME_WIDTH)}`;
  return [`${head}${first}`, ...others.map((line) => `${indent}${line}`)].join("");
};

export const doctorCommand = (io: Io): Command =>
  newCommand("doctor", io)
    .description("check settings, key and model, and show which layers of protection are active here")
    .addOption(new Option("--provider <name>", "check this provider").choices([...PROVIDERS]))
    .option("--model <id>", "check this model")
    .option("--base-url <url>", "check this endpoint")
    .option("--json", "print one JSON object")
    .allowExcessArguments(false)
    .action(async (options: EngineFlags & { readonly json?: true }) => {
      const probe = await probeSandbox();
      const protection = await Promise.all([
        runtime(),
        descriptors(),
        plannedCommands(),
        readOnlySandbox(probe),
        sandbox(probe),
        program("git", "git"),
        program("ripgrep", "rg"),
        worktrees(),
        state(io),
      ]);
      const layers = [...protection, ...(await setupLayers(options, io))];
      if (layers.some(({ isBroken }) => isBroken)) io.exitWith(1);
      io.out(options.json ? `${JSON.stringify({ layers })}\n` : layers.map(layerAsText).join(""));
    });
