/** Which files may contain secrets because of where they are, although no list knows their names?
 *  Invariant: programs invent new files for tokens every week, so a hidden file in a home folder counts, and so do the
 *  settings of services, unless they are known to be harmless. A folder on the way to something harmless does not count itself.
 *  Elsewhere: names that are secret anywhere (secret-names.ts), folders that are workspaces (../files/read-judge.ts). */

/** Below a home folder, in lower case: what people and tools read every day, and where programs keep no tokens. */
const HARMLESS_AT_HOME: readonly string[] = [
  ...[".bashrc", ".bash_profile", ".bash_aliases", ".bash_login", ".bash_logout", ".bash_completion", ".profile"],
  ...[".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".aliases", ".inputrc", ".dircolors", ".hushlogin"],
  ...[".vimrc", ".gvimrc", ".exrc", ".ideavimrc", ".nanorc", ".emacs", ".tmux.conf", ".screenrc", ".xinitrc"],
  ...[".editorconfig", ".gitignore", ".gitignore_global", ".gitattributes", ".gitmessage", ".clang-format"],
  ...[".prettierrc", ".eslintrc.json", ".nvmrc", ".node-version", ".python-version", ".ruby-version", ".tool-versions"],
  ...[".vim", ".emacs.d", ".oh-my-zsh", ".zsh", ".bashrc.d", ".tmux", ".fonts", ".themes", ".icons"],
  ...[".nvm", ".fnm", ".volta", ".pyenv", ".rbenv", ".asdf", ".sdkman", ".jenv", ".goenv", ".tfenv", ".rustup"],
  ...[".cargo/registry", ".cargo/git", ".cargo/bin", ".cargo/env", ".deno", ".bun/bin", ".bun/install", ".npm/_logs"],
  ...[".m2/repository", ".gradle/caches", ".gradle/wrapper", ".ivy2/cache", ".nuget/packages", ".dotnet", ".cache"],
  ...[".local/bin", ".local/lib", ".local/include", ".local/share/man", ".local/share/applications"],
  ...[".local/share/fonts", ".local/share/icons", ".local/share/mise", ".local/share/uv", ".local/share/pnpm"],
  ...[".local/share/virtualenvs", ".local/share/nvim/lazy", ".local/share/nvim/site", ".local/state/prefork"],
  ...[".config/nvim", ".config/fish", ".config/alacritty", ".config/kitty", ".config/starship.toml", ".config/htop"],
  ...[".config/git/ignore", ".config/git/attributes", ".config/tmux", ".config/bat", ".config/ripgrep", ".config/i3"],
  ...[".vscode/extensions", ".vscode-server/extensions", ".prefork", ".agents", ".dotfiles", ".worktrees"],
  ...[".claude/claude.md", ".claude/commands", ".claude/agents", ".claude/skills", ".claude/plugins"],
  ...[".codex/agents.md", ".codex/prompts", ".codex/skills", ".gemini/gemini.md", ".qwen/qwen.md"],
];

const HARMLESS: ReadonlySet<string> = new Set(HARMLESS_AT_HOME);

const TOWARDS_HARMLESS: ReadonlySet<string> = new Set(
  HARMLESS_AT_HOME.flatMap((path) => {
    const names = path.split("/");
    return names.slice(1).map((_, at) => names.slice(0, at + 1).join("/"));
  }),
);

/** `~`, `/root`, `/home/NAME`, `/Users/NAME`, `/var/home/NAME`, and what is hidden there. */
const HIDDEN_AT_HOME = /^(?:~[^/]*|\/root|\/(?:var\/)?home\/[^/]+|\/users\/[^/]+)\/(\..*|library\/.+)$/;

/** Settings and states of services, which only their owner may read on most systems. */
const OF_SERVICES: readonly RegExp[] = [
  /^\/etc\/(?:kubernetes|rancher|ppp|openvpn|netplan|davfs2|krb5kdc|gitlab|gitlab-runner|sssd|credstore|opendkim\/keys)(?:\/|$)/,
  /^\/etc\/(?:postfix\/sasl|exim4\/passwd|mosquitto\/passwd|samba\/smbpasswd|security\/opasswd|boto\.cfg|msmtprc)/,
  /^\/var\/lib\/(?:rancher|iwd|tailscale|cloud)(?:\/|$)|^\/run\/cloud-init(?:\/|$)|^\/tmp\/krb5cc/,
  /^\/(?:etc|var|run)\/(?:.*\/)?[^/]*(?:secret|credential|private[-_.]?key|passw(?!d-?$)|\.psk$)[^/]*$/,
];

/** `path`: absolute, or below `~`. */
export const isPrivatePlace = (path: string): boolean => {
  const lower = path.toLowerCase();
  const hidden = HIDDEN_AT_HOME.exec(lower)?.[1];
  if (hidden === undefined) return OF_SERVICES.some((place) => place.test(lower));
  if (lower.endsWith(".pub")) return false;
  const below = hidden.replace(/\/+$/, "");
  if (TOWARDS_HARMLESS.has(below)) return false;
  const names = below.split("/");
  return !names.some((_, at) => HARMLESS.has(names.slice(0, at + 1).join("/")));
};

/** Below these, a file that not everybody may read is one that somebody protects. Not logs, which many programs keep
 *  from others. */
const OF_SYSTEM = /^\/(?:etc|usr|opt|srv|boot|run|var\/(?!log\/|tmp\/))/;

/** Does the system itself say that this file is private? `mode`: its permissions. */
export const isProtectedBySystem = (path: string, mode: number): boolean =>
  OF_SYSTEM.test(path) && (mode & 0o004) === 0;
