/** Where is a program that Prefork starts by itself?
 *  Invariant: programs come from system folders, never from PATH or the workspace. The one exception is our own copy of
 *  ripgrep, and only while its bytes are the pinned ones: a file that somebody replaced does not run.
 *  Elsewhere: the environment of programs (environment.ts), whether bubblewrap works (../run/sandbox.ts). */

import { createHash } from "node:crypto";
import { accessSync, constants, readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { SYSTEM_FOLDERS } from "../paths/index.ts";

export { SYSTEM_FOLDERS };

/** Programs named here are treated as not installed: `PREFORK_HIDE_PROGRAMS="bwrap rg"`. Tests use it to show what happens
 *  on a machine without them; it can only hide programs. Our own copy of ripgrep is named `@vscode/ripgrep`. */
export const HIDE_PROGRAMS = "PREFORK_HIDE_PROGRAMS";

const OWN_RIPGREP = "@vscode/ripgrep";

const isHidden = (name: string): boolean => (process.env[HIDE_PROGRAMS] ?? "").split(/[\s,]+/).includes(name);

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
};

const findInSystem = (name: string): string | undefined =>
  isHidden(name) ? undefined : SYSTEM_FOLDERS.map((folder) => join(folder, name)).find(isProgram);

const ownRipgrep = (): string | undefined => (isHidden(OWN_RIPGREP) ? undefined : pinnedRipgrep());

/** The path of a system program, as a shell would find it. For `rg`, falls back to our own copy. */
export const findProgram = (name: string): string | undefined =>
  findInSystem(name) ?? (name === "rg" ? ownRipgrep() : undefined);

/** For the search tools: our own copy first, because its version is known; then the system's. */
export const findRipgrep = (): string | undefined => ownRipgrep() ?? findInSystem("rg");

/** Why a program that was not found is missing, for messages. */
export const whyMissing = (name: string): string => (isHidden(name) ? `hidden by ${HIDE_PROGRAMS}` : "not installed");

/** The PATH for a program that runs others, as in `xargs rg`. Our own folder comes last, only if it is needed, and only
 *  while it contains nothing else that could be started. */
export const searchPath = (words: readonly string[] = []): string => {
  const own = words.includes("rg") && findInSystem("rg") === undefined ? ownRipgrep() : undefined;
  const folders = own !== undefined && isAlone(own) ? [...SYSTEM_FOLDERS, dirname(own)] : SYSTEM_FOLDERS;
  return folders.join(":");
};

const isAlone = (path: string): boolean => {
  try {
    return readdirSync(dirname(path)).length === 1;
  } catch {
    return false;
  }
};

// --- our own ripgrep -------------------------------------------------------------------------------------------------
// npm installs it next to us. Its path is returned only if its SHA-256 is listed below: Prefork may be installed inside a
// workspace, where an agent can write files without approval, and a program written there must not run as a search.

/** `bin/rg` of each platform's package, @vscode/ripgrep 1.18.0 (ripgrep 15.0.0). Other platforms use the system's. */
const SHA256: Readonly<Record<string, string>> = {
  "darwin-arm64": "6ef40346bf31fcce79d9614c7745c198542925a0c7d4911e1ffe794c53392ac1",
  "darwin-x64": "f999495980a5e6f1e7d26461ef5768b4013a62df610ed7d77a8b2de247a5b228",
  "linux-arm": "0d8353810445d0606cc3c714601fd6ed0465b03746107ce2bb173499ffc34a67",
  "linux-arm64": "e152ea689d6e8420357e592f0d8253b96476c164118ca3e6e13074fa1705ddda",
  "linux-ia32": "47763deda9f135d94176258090162bc2b2faece1bb8b806c5d02be4e9ac43f18",
  "linux-ppc64": "921b000ad16eda974d9dffc1780771c917b540429b7afc4f72d1742d742abbf2",
  "linux-riscv64": "c0a0ed0c04224325ea9b9929ef8a7daf5fa2a3a6713d6f466ac0df820c079808",
  "linux-s390x": "3932fc118f402eb72cc180d6238ed4d805a375c513613e3ce61320433cc6d760",
  "linux-x64": "193906679498de4d939345b937fa24e0e69a03c244bd70c859f5e41232713f21",
};

const PLATFORM = `${process.platform}-${process.arch}`;

/** The platform's package is a dependency of the package that we depend on, so it is resolved from there. */
const locateRipgrep = (): string | undefined => {
  try {
    const wrapper = createRequire(import.meta.url).resolve("@vscode/ripgrep");
    return createRequire(wrapper).resolve(`@vscode/ripgrep-${PLATFORM}/bin/rg`);
  } catch {
    return undefined;
  }
};

/** A program that runs only with the bytes it was published with. It is hashed again only if it may have changed: the kernel
 *  updates the change time of a file, and only the superuser can set it back. */
export class PinnedProgram {
  readonly #locate: () => string | undefined;
  readonly #sha256: string | undefined;
  #path: { readonly located: string | undefined } | undefined;
  #checked = { facts: "", fits: false };

  constructor(locate: () => string | undefined, sha256: string | undefined) {
    this.#locate = locate;
    this.#sha256 = sha256;
  }

  /** Its path; undefined if it is missing or has other bytes. */
  path(): string | undefined {
    this.#path ??= { located: this.#locate() };
    const { located } = this.#path;
    if (located === undefined) return undefined;
    try {
      const { dev, ino, size, mode, ctimeNs } = statSync(located, { bigint: true });
      const facts = [dev, ino, size, mode, ctimeNs].join();
      if (facts !== this.#checked.facts) {
        const sha256 = createHash("sha256").update(readFileSync(located)).digest("hex");
        this.#checked = { facts, fits: sha256 === this.#sha256 && (mode & 0o111n) !== 0n };
      }
      return this.#checked.fits ? located : undefined;
    } catch {
      return undefined;
    }
  }
}

const ripgrep = new PinnedProgram(locateRipgrep, SHA256[PLATFORM]);

export const pinnedRipgrep = (): string | undefined => ripgrep.path();
