/** Which names inside a workspace run something later, so that no agent may write them without approval?
 *  Invariant: a name is protected whether or not it exists yet, in upper or lower case, at any depth.
 *  Elsewhere: what is inside at all (judge.ts), refusing the write (../files), mounting read-only (../run). */

const eachEnding = (names: readonly string[], endings: readonly string[]): readonly string[] =>
  names.flatMap((name) => endings.map((ending) => `${name}.${ending}`));

/** Files and folders that are protected as a whole, wherever they are, grouped by the reason. */
const WHOLE_BY_REASON: readonly (readonly [why: string, names: readonly string[]])[] = [
  ["git's own folder, whose configuration and hooks run programs", [".git"]],
  ["Prefork's own settings, hooks and agents", [".prefork"]],
  [
    "git hooks",
    [
      ...[".githooks", ".husky", ".pre-commit-config.yaml", "prek.toml", ".overcommit.yml", ".simple-git-hooks.json"],
      ...[
        ".lefthook",
        ...eachEnding([".lefthook", "lefthook", ".lefthook-local", "lefthook-local"], ["yml", "yaml", "toml", "json"]),
      ],
    ],
  ],
  ["git configuration, which runs programs", [".gitconfig", ".gitattributes"]],
  ["git configuration of other repositories", [".gitmodules"]],
  ["the folder of another version control, whose configuration runs programs", [".hg", ".hgrc", ".jj"]],
  [
    "editor settings that run programs",
    [".idea", ".dir-locals.el", ".emacs", ".emacs.d", ".vim", ".nvim.lua", ".lvimrc", ".theia", ".helix"],
  ],
  ["container settings that run programs", [".devcontainer", ".devcontainer.json"]],
  ["keys and connection settings", [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".netrc", ".git-credentials"]],
  [
    "tool servers that are started as programs",
    [
      ...[".mcp.json", ".claude.json", "opencode.json", "opencode.jsonc", "crush.json", ".crush.json", ".amazonq"],
      ...eachEnding([".aider.conf"], ["yml", "yaml"]),
    ],
  ],
  [
    "a file that a shell runs on entering the folder",
    [".envrc", ".mise", ".rtx.toml", ...eachEnding([".mise", "mise", ".mise.local", "mise.local"], ["toml"])],
  ],
  [
    "options of a package manager, which can name programs to run",
    [".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.js", ".bundle"],
  ],
  ["options of a search program, which can run others", [".ripgreprc"]],
  ["options of a program that fetches files", [".curlrc", ".wgetrc"]],
];

const SHELLS: readonly string[] = [
  ...[
    "bashrc",
    "bashrc.d",
    "bash_profile",
    "bash_login",
    "bash_logout",
    "bash_aliases",
    "profile",
    "inputrc",
    "direnvrc",
  ],
  ...["zshrc", "zshenv", "zprofile", "zlogin", "zlogout", "kshrc", "mkshrc", "cshrc", "tcshrc", "login", "logout"],
  ...["xprofile", "xinitrc", "xserverrc", "xsession", "xsessionrc", "pam_environment"],
].map((name) => `.${name}`);

const PROGRAMS: readonly string[] = [
  ...["vimrc", "gvimrc", "exrc", "nvimrc", "tmux.conf", "screenrc", "gdbinit", "lldbinit"],
  ...[
    "ghci",
    "iex.exs",
    "irbrc",
    "pryrc",
    "Rprofile",
    "pythonrc",
    "ipython",
    "pdbrc",
    "psqlrc",
    "sqliterc",
    "wezterm.lua",
    "forward",
  ],
].map((name) => `.${name}`);

const START_UP: readonly string[] = [...SHELLS, ...PROGRAMS];

const WHOLE: readonly (readonly [name: string, why: string])[] = [
  ...WHOLE_BY_REASON.flatMap(([why, names]) => names.map((name) => [name, why] as const)),
  ...SHELLS.map((name) => [name, "a shell runs it when it starts"] as const),
  ...PROGRAMS.map((name) => [name, "a program runs it when it starts"] as const),
];

const WHY_WHOLE: ReadonlyMap<string, string> = new Map(WHOLE.map(([name, why]) => [name.toLowerCase(), why]));

const AGENTS = [
  "settings.json",
  "settings.local.json",
  "agents",
  "skills",
  "hooks",
  "commands",
  "extensions",
  "plugins",
];

/** Folder → the paths below it that are protected; the rest of the folder is ordinary. */
const INSIDE: ReadonlyMap<string, readonly string[]> = new Map([
  [".claude", AGENTS],
  [".agents", ["skills"]],
  [".gemini", [...AGENTS, ".env", "policies"]],
  [".qwen", [...AGENTS, ".env"]],
  [".codex", [...AGENTS, "config.toml", "hooks.json", "rules", "prompts"]],
  [".cursor", [...AGENTS, "mcp.json", "hooks.json", "environment.json", "cli.json"]],
  [".opencode", [...AGENTS, "opencode.json", "opencode.jsonc", "plugin", "agent", "command", "tool", "tools"]],
  [".roo", ["mcp.json"]],
  [".kilocode", [...AGENTS, "mcp.json"]],
  [".junie", ["mcp"]],
  [".trae", ["mcp.json"]],
  [".copilot", [...AGENTS, "mcp-config.json"]],
  [".clinerules", ["hooks"]],

  [".factory", [...AGENTS, "mcp.json"]],
  [".continue", [...AGENTS, "config.yaml", "config.json", "config.ts", "mcpservers"]],
  [".windsurf", [...AGENTS, "mcp_config.json", "hooks.json", "workflows", "rules"]],
  [".yarn", ["releases", "plugins"]],
  [".mvn", ["extensions.xml", "jvm.config", "maven.config", "wrapper"]],
  [".kiro", ["settings", "hooks"]],
  [".vscode", ["tasks.json", "settings.json", "launch.json", "mcp.json"]],
  [".zed", ["tasks.json", "settings.json", "debug.json"]],
  [".cargo", ["config", "config.toml"]],
  [".docker", ["config.json", "cli-plugins"]],
  [
    ".config",
    [
      ...["autostart", "systemd", "environment.d", "plasma-workspace", "fish", "zsh", "tmux", "direnv", "mise"],
      ...["git", "jj", "nvim", "emacs", "nushell", "wezterm", "gh", "gcloud", "opencode", "crush"],
      ...["kitty", "sway", "i3", "hypr", "zellij", "helix", "zed", "code/user", "cursor/user", "powershell", "julia"],
    ],
  ],
  // Only the user decides which folders are trusted, and nobody rewrites past sessions.
  [
    ".local",
    [
      ...["trust", "sessions", "drafts", "worktrees"].map((name) => `state/prefork/${name}`),
      ...["bin", "lib", "share/applications", "share/systemd"],
    ],
  ],
]);

/** The same for folders that programs often write to for other reasons; a sandbox leaves them writable. */
const IN_SHARED_FOLDERS: ReadonlyMap<string, readonly string[]> = new Map([
  [".github", ["hooks"]],
  [".gradle", ["init.d", "init.gradle", "init.gradle.kts"]],
  [".m2", ["settings.xml", "settings-security.xml", "extensions.xml"]],
  ["mise", ["config.toml", "config.local.toml"]],
  ["library", ["launchagents", "launchdaemons"]],
]);

const EDITOR_WORKSPACE = /.\.code-workspace$/;

/** A name as the most forgiving file system would compare it: lower case, without characters that some ignore, without
 *  endings that some cut off, and with git's short name expanded. */
const folded = (written: string): string => {
  const plain = written
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .toLowerCase()
    .replace(/:.*$/s, "");
  const name = withoutEnd(plain);
  return /^git~\d+$/.test(name) ? ".git" : name;
};

/** Written by hand, because a regular expression would take quadratic time on a run of dots inside a name. */
const withoutEnd = (name: string): string => {
  let end = name.length;
  while (name[end - 1] === "." || name[end - 1] === " ") end -= 1;
  return name.slice(0, end);
};

/** Why agents may not write this, or undefined. `below`: the names from the workspace's root down. */
export const protectedName = (below: readonly string[]): string | undefined => {
  const names = below.map(folded);
  for (const [at, name] of names.entries()) {
    const whole = WHY_WHOLE.get(name);
    if (whole !== undefined) return `${below[at]} is protected: ${whole}`;
    if (EDITOR_WORKSPACE.test(name)) return `${below[at]} is protected: settings that run programs`;
    const inside = [...(INSIDE.get(name) ?? []), ...(IN_SHARED_FOLDERS.get(name) ?? [])].find(
      (path) => path === names.slice(at + 1, at + 1 + depthOf(path)).join("/"),
    );
    if (inside !== undefined)
      return `${below.slice(at, at + 1 + depthOf(inside)).join("/")} is protected: settings that run programs`;
  }
  return undefined;
};

/** Hidden names that projects have at their top, and that no program runs by itself. */
const OF_PROJECTS =
  /^\.(?:github|gitlab|gitlab-ci\.yml|circleci|changeset|storybook|gitignore|dockerignore|npmignore|prettierignore|eslintignore|editorconfig|prettierrc|eslintrc|stylelintrc|babelrc|swcrc|nvmrc|node-version|python-version|ruby-version|java-version|browserslistrc|coveragerc|flake8|pylintrc|rubocop\.yml|rspec|clang-format|clang-tidy|golangci\.ya?ml|markdownlint|textlintrc|commitlintrc|lintstagedrc|releaserc|env|cache|next|nuxt|turbo|pytest_cache|mypy_cache|ruff_cache|nyc_output|tmp|git-blame-ignore-revs|mailmap|keep|gitkeep|local)(?:\.[\w.-]+)?$/;

/** Why agents may not write a hidden name in a home folder, or undefined: the user's programs and shells read files
 *  there, under too many names to list. `below`: the names from the home folder down. */
export const protectedAtHome = ([first = ""]: readonly string[]): string | undefined => {
  const name = folded(first);
  return name.startsWith(".") && !OF_PROJECTS.test(name)
    ? `${first} is protected: programs read hidden names of a home folder when they start`
    : undefined;
};

const depthOf = (path: string): number => path.split("/").length;

/** Names whose presence makes git treat a folder as a repository, without a `.git`. */
export const repositoryMarks: readonly string[] = ["HEAD", "objects", "refs", "commondir"];

const MARKS: readonly string[] = repositoryMarks.map(folded);

/** Names in such a folder that decide which programs git starts. */
const ACTED_ON: readonly string[] = ["config", "config.worktree", "hooks", "info", "modules", "worktrees", "gitdir"];

/** Why `name` may not be written in a folder with these marks, or undefined. Names that would turn the folder into a
 *  repository are refused too, so that none can be assembled piece by piece. */
export const protectedInRepository = (name: string, found: readonly string[]): string | undefined => {
  const plain = folded(name);
  if (!MARKS.includes(plain) && !ACTED_ON.includes(plain)) return undefined;
  const there = new Set([...found.map(folded), plain]);
  const isRepository = there.has("head") && (there.has("commondir") || (there.has("objects") && there.has("refs")));
  return isRepository
    ? `${name} is protected: git treats its folder as a repository, and runs the programs it names`
    : undefined;
};

/** The names directly in a workspace that contain something protected: a sandbox mounts them read-only. A folder with a
 *  protected name is listed as a whole, because anyone who may rename it could replace it. */
export const protectedTopNames: readonly string[] = [...WHOLE.map(([name]) => name), ...INSIDE.keys()];

/** Protected names that take effect in a project folder as soon as they exist. */
export const protectedWhenMissing: readonly string[] = [
  ...[".git", ".prefork", ".claude", ".mcp.json", ".envrc", ".npmrc", ".yarnrc.yml"],
  ...[".vscode", ".idea", ".devcontainer", ".devcontainer.json", ".cursor", ".codex", ".gemini"],
];

/** Protected names that also take effect in a home folder. */
export const protectedWhenMissingAtHome: readonly string[] = [
  ...protectedWhenMissing,
  ".ssh",
  ".gitconfig",
  ...START_UP,
];
