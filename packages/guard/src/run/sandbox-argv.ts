/** The arguments for bubblewrap.
 *  Invariant: pure. Everything is read-only, private or absent; then what may be written is opened; then what is
 *  protected is closed again, in this order, because a later mount covers an earlier one.
 *  Elsewhere: which names exist on the disk and who may run without it (sandbox.ts). */

export type SandboxMounts = {
  /** The bubblewrap program. */
  readonly program: string;
  /** Canonical; writable. */
  readonly workspace: string;
  readonly writable?: readonly string[];
  /** Read-only, and visible even if the folder around it is private. */
  readonly visible?: readonly string[];
  /** Folders that are empty inside. */
  readonly hidden?: readonly string[];
  /** Inside writable folders: existing names that stay read-only, and missing names that stay missing. */
  readonly readOnly?: readonly string[];
  readonly missing?: readonly string[];
  readonly cwd?: string; // default: the workspace
  readonly network?: boolean; // default: false
};

/** These contain sockets of services and files of other programs. A program can connect to a socket even on a
 *  read-only mount. */
const PRIVATE = ["/tmp", "/var/tmp", "/run"];

/** Parts of /run that are not sockets: one distribution's programs, and name resolution. */
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
    // A folder comes before its contents: each stays a separate mount, which cannot be renamed.
    ...pair(
      "--bind",
      [workspace, ...writable].toSorted((a, b) => a.length - b.length),
    ),
    ...pair("--ro-bind", readOnly),
    ...missing.flatMap((path) => ["--ro-bind", "/dev/null", path]),
    ...["--unshare-all", ...(network ? ["--share-net"] : [])],
    // If root starts bubblewrap, it keeps capabilities unless told otherwise, and the clock and the kernel log would
    // stay writable.
    ...["--cap-drop", "ALL", "--die-with-parent", "--new-session"],
    ...["--chdir", cwd, "--", ...argv],
  ];
};
