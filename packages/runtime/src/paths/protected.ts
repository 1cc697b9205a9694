/** Which names inside a workspace run something later, so that no agent may write them?
 *  Invariant: a name is protected whether or not it exists yet, in any case of letters, at any depth.
 *  Elsewhere: what is inside at all (judge.ts), refusing at the descriptor (../files), mounting read-only (../workspace). */

/** Folders and files whose whole content is protected, wherever they stand. */
const WHOLE: Readonly<Record<string, string>> = {
  ".git": "git's own folder, whose configuration and hooks run programs",
  ".prefork": "Prefork's own settings, hooks and agents",
  ".githooks": "git hooks",
  ".husky": "git hooks",
  ".idea": "editor settings that run programs",
  ".devcontainer": "container settings that run programs",
  ".devcontainer.json": "container settings that run programs",
  ".ssh": "keys and connection settings",
  ".mcp.json": "tool servers that are started as programs",
  ".envrc": "a file that a shell runs on entering the folder",
  ".gitconfig": "git configuration, which runs programs",
  ".gitmodules": "git configuration of other repositories",
  ".ripgreprc": "options of a search program, which can run others",
};

const START_UP: readonly string[] = [
  ...["bashrc", "bash_profile", "bash_login", "bash_logout", "bash_aliases", "profile", "inputrc"],
  ...["zshrc", "zshenv", "zprofile", "zlogin", "zlogout", "kshrc", "mkshrc", "cshrc", "tcshrc", "login", "logout"],
  ...["xprofile", "xinitrc", "xsession", "xsessionrc"],
].map((name) => `.${name}`);

/** Folder → the names directly in it that are protected; the rest of the folder is ordinary. */
const INSIDE: Readonly<Record<string, readonly string[]>> = {
  ".claude": ["settings.json", "settings.local.json", "agents", "skills", "hooks", "commands"],
  ".vscode": ["tasks.json", "settings.json", "launch.json"],
  ".config": ["fish", "git"],
};

/** As the most forgiving file system would compare it: letters of one case, marks that some leave out removed, the
 *  endings that some cut off removed, and git's short name spelled out. */
const folded = (name: string): string => {
  const plain = name
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .toLowerCase()
    .replace(/:.*$/s, "")
    .replace(/[. ]+$/, "");
  return /^git~\d+$/.test(plain) ? ".git" : plain;
};

/** Why agents may not write this, or undefined. `below` are the names from the workspace's root down. */
export const protectedName = (below: readonly string[]): string | undefined => {
  const names = below.map(folded);
  for (const [at, name] of names.entries()) {
    const whole = Object.hasOwn(WHOLE, name) ? WHOLE[name] : undefined;
    if (whole !== undefined) return `${below[at]} is protected: ${whole}`;
    if (START_UP.includes(name)) return `${below[at]} is protected: a shell runs it when it starts`;
    const next = names[at + 1];
    if (next !== undefined && Object.hasOwn(INSIDE, name) && INSIDE[name]?.includes(next))
      return `${below[at]}/${below[at + 1]} is protected: settings that run programs`;
  }
  return undefined;
};

/** The names directly in a workspace that hold something protected: what a sandbox mounts read-only. A folder that
 *  holds a protected name stands here whole, since whoever may rename the folder could put another in its place. */
export const protectedTopNames: readonly string[] = [...Object.keys(WHOLE), ...START_UP, ...Object.keys(INSIDE)];

/** Those of them that have an effect in a project folder as soon as they exist. */
export const protectedWhenMissing: readonly string[] = [
  ...[".git", ".prefork", ".claude", ".mcp.json", ".envrc"],
  ...[".vscode", ".idea", ".devcontainer", ".devcontainer.json"],
];

/** Those that have one in a home folder as well. */
export const protectedWhenMissingAtHome: readonly string[] = [
  ...protectedWhenMissing,
  ".ssh",
  ".gitconfig",
  ...START_UP,
];
