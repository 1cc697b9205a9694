/** The arguments for bubblewrap.
 *  Invariant: pure. Everything is read-only, private or absent; then what may be written is opened; then what is protected is closed
 *  again, in this order, because a later mount covers an earlier one.
 *  Elsewhere: which names exist on the disk and who may run without it (sandbox.ts). */

export type SandboxMounts = {
  /** The bubblewrap program. */
  readonly program: string;
  /** Canonical; writable. */
  readonly workspace: string;
  readonly writable?: readonly string[];
  /** Read-only, and there also where all around it is private. */
  readonly visible?: readonly string[];
  /** Folders that are empty inside. */
  readonly hidden?: readonly string[];
  /** Inside what is writable: existing names that stay read-only, and missing ones that stay missing. */
  readonly readOnly?: readonly string[];
  readonly missing?: readonly string[];
  readonly cwd?: string; // default: the workspace
  readonly network?: boolean; // default: false
};

/** Sockets of services, and files of other programs, stand in these; a socket can be talked to through a read-only mount. */
const PRIVATE = ["/tmp", "/var/tmp", "/run"];

/** Parts of /run that are no sockets: where one distribution keeps its programs, and name resolution. */
const KEPT = ["/run/current-system"];
const KEPT_WITH_NETWORK = ["/run/systemd/resolve"];

const pair = (option: string, paths: readonly string[]): readonly string[] =>
  paths.flatMap((path) => [option, path, path]);

export const sandboxArgv = (argv: readonly string[], mounts: SandboxMounts): readonly string[] => {
  const {
    program,
    workspace,
    writable = [],
    visible = [],
    hidden = [],
    readOnly = [],
    missing = [],
    cwd = workspace,
    network = false,
  } = mounts;
  return [
    program,
    ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"],
    ...[...PRIVATE, ...hidden].flatMap((path) => ["--tmpfs", path]),
    ...pair("--ro-bind-try", network ? [...KEPT, ...KEPT_WITH_NETWORK] : KEPT),
    ...pair("--ro-bind", visible),
    // A folder before what is in it: each stays a mount of its own, which cannot be renamed.
    ...pair(
      "--bind",
      [workspace, ...writable].toSorted((a, b) => a.length - b.length),
    ),
    ...pair("--ro-bind", readOnly),
    ...missing.flatMap((path) => ["--ro-bind", "/dev/null", path]),
    ...["--unshare-all", ...(network ? ["--share-net"] : [])],
    // Started by root, bubblewrap keeps capabilities unless told otherwise: clock and kernel log would stay writable.
    ...["--cap-drop", "ALL", "--die-with-parent", "--new-session"],
    ...["--chdir", cwd, "--", ...argv],
  ];
};
