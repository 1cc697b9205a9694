/** The names of files that contain secrets, as data.
 *  Invariant: lower case. Literal names (secret-names.ts) and patterns for programs (secret-globs.ts) are both derived from this
 *  one table, so they cannot diverge.
 *  Elsewhere: names that may not be written (protected.ts). */

/** Folders with everything in them. A name with slashes counts wherever these folders follow each other. */
export const FOLDERS: readonly string[] = [
  ...[".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".pki", ".envs"],
  ...[".ssh2", ".secrets", ".secret", ".credentials"],
  ...[".config/gh", ".config/hub", ".config/glab-cli", ".config/gcloud", ".config/doctl", ".config/hcloud", ".oci"],
  ...[
    ".config/op",
    ".config/1password",
    ".1password",
    ".config/bitwarden",
    ".config/bitwarden cli",
    ".config/keepassxc",
  ],
  ...[
    ".config/fly",
    ".fly",
    ".config/netlify",
    ".netlify",
    ".wrangler",
    ".config/.wrangler",
    ".config/stripe",
    ".bluemix",
  ],
  ...[".config/configstore", ".config/rclone", ".config/heroku", ".config/linode-cli", ".config/scw", ".config/vercel"],
  ...[".config/google-chrome", ".config/chromium", ".config/bravesoftware", ".mozilla", ".thunderbird"],
  ...[".config/github-copilot", ".copilot", ".config/cursor", ".config/goose", ".config/anthropic", ".config/openai"],
  ...[".config/io.datasette.llm", ".local/share/com.vercel.cli", ".local/share/com.vercel.token", ".ngrok2"],
  ...[".huggingface", ".terraform.d", ".chef", ".subversion/auth", ".ethereum/keystore", ".bitcoin", ".electrum"],
  ...["run/secrets", "ssl/private", "pki/tls/private", "share/keyrings", "library/keychains", "etc/wireguard"],
  ...[
    ".mcp-auth",
    ".config/helm/registry",
    ".cloudflared",
    ".argocd",
    ".config/argocd",
    ".config/rbw",
    ".step/secrets",
  ],
  ...["share/kwalletd", ".config/borg/keys", ".config/borg/security", ".purple", ".config/slack", ".config/signal"],
  ...["networkmanager/system-connections", "letsencrypt/live", "letsencrypt/archive", "letsencrypt/keys", "sudoers.d"],
];

/** Names so distinctive that anything after them and a separator is a copy, a variant or a part of the same. */
export const BEGINNINGS: readonly string[] = [
  ...[".env", ".envrc", ".dev.vars", ".flaskenv", ".netrc", "_netrc", ".pgpass", ".pg_service.conf", ".my.cnf"],
  ...[".mylogin.cnf", ".git-credentials", ".gitconfig", ".gitcookies", ".hgrc", ".npmrc", ".yarnrc", ".pnpmrc"],
  ...[".pypirc", ".curlrc", ".wgetrc", ".boto", ".s3cfg", ".passwd-s3fs", ".smbcredentials", ".htpasswd", "htpasswd"],
  ...["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss", "ssh_host_rsa_key", "ssh_host_dsa_key"],
  ...["ssh_host_ecdsa_key", "ssh_host_ed25519_key", ".vault-token", ".vault_pass", ".vault-pass", ".vault_password"],
  ...[".vault-password", ".terraformrc", "terraform.rc", "terraform.tfstate", "rclone.conf", ".dockercfg"],
  ...[
    ".dockerconfigjson",
    "nuget.config",
    ".claude.json",
    "claude_desktop_config.json",
    "cline_mcp_settings.json",
    ".aider.conf",
    ".aider.input.history",
    ".aider.chat.history",
  ],
  ...[".databrickscfg", ".sentryclirc", ".msmtprc", ".mbsyncrc", ".offlineimaprc", ".fetchmailrc", ".erlang.cookie"],
  ...[".authinfo", ".modal.toml", ".ansible_vault_pass", ".cifs-credentials", ".token", "token.json", "cookies.txt"],
  ...["password.txt", "passwords.txt", "wp-config.php", "local.settings.json"],
  ...[".xauthority", ".iceauthority", ".viminfo", ".lesshst", ".histfile", "wpa_supplicant.conf"],
];

/** The same, unless the ending shows that it is source code about such files. */
export const SUBJECTS: readonly string[] = [
  ...["oauth_creds", "mcp-oauth-tokens", "gemini-credentials", "google_accounts", "application_default_credentials"],
  ...[
    "access_tokens",
    "client_secret",
    "service-account",
    "service_account",
    "serviceaccount",
    "vault_pass",
    "firebase-adminsdk",
    "sa-key",
    "gcp-key",
  ],
  ...["vault_password", "ansible_vault_pass", "ansible_vault_password", "talosconfig", "rootkey.csv", "accesskeys.csv"],
  ...["krb5cc", "sentry.properties"],
];
export const SOURCES: ReadonlySet<string> = new Set([
  ...[
    "ts",
    "tsx",
    "mts",
    "cts",
    "js",
    "jsx",
    "mjs",
    "cjs",
    "vue",
    "svelte",
    "py",
    "pyi",
    "go",
    "rs",
    "java",
    "kt",
    "rb",
  ],
  ...[
    "c",
    "h",
    "cc",
    "cpp",
    "hpp",
    "cs",
    "swift",
    "scala",
    "dart",
    "ex",
    "exs",
    "hs",
    "lua",
    "php",
    "md",
    "mdx",
    "html",
  ],
  ...["css", "scss", "proto", "sql", "tf", "snap", "erb", "adoc", "rst"],
]);

/** Everyday words: secret only with the ending of a data file, some of them also without any ending. */
export const WORDS: ReadonlySet<string> = new Set(["credentials", "credential", "secrets", "secret", "kubeconfig"]);
export const BARE_WORDS: ReadonlySet<string> = new Set(["credentials", "kubeconfig"]);
export const DATA: ReadonlySet<string> = new Set([
  ...[
    "json",
    "jsonc",
    "json5",
    "yml",
    "yaml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "config",
    "xml",
    "properties",
    "csv",
    "txt",
  ],
  ...["db", "sqlite", "env", "ejson", "enc", "plist", "dat"],
]);

export const ENDINGS: ReadonlySet<string> = new Set([
  ...["env", "tfvars", "tfstate", "pem", "p8", "p12", "pfx", "pkcs12", "key", "keystore", "keyring", "jks", "jceks"],
  ...["bks", "kdb", "kdbx", "ovpn", "ppk", "keytab", "keychain", "keychain-db", "agekey", "publishsettings", "remmina"],
]);
export const LONG_ENDINGS: readonly string[] = [
  ".tfvars.json",
  "_rsa",
  "_dsa",
  "_ecdsa",
  "_ed25519",
  "_ecdsa_sk",
  "_ed25519_sk",
];
export const HISTORIES: readonly string[] = ["_history", "_hist", "-history"];

/** Ordinary names that contain secrets only in these folders. */
export const PLACES: readonly string[] = [
  ...["git/config", "git/credentials"],
  ...[
    "etc/shadow",
    "etc/shadow-",
    "etc/gshadow",
    "etc/gshadow-",
    "etc/sudoers",
    "etc/master.passwd",
    "etc/krb5.keytab",
  ],
  ...["backups/shadow", "backups/gshadow", "mysql/debian.cnf"],
  ...[".codex/auth.json", ".codex/config.toml", ".codex/history.jsonl", ".claude/history.jsonl", ".factory/auth.json"],
  ...["opencode/auth.json", "opencode/mcp-auth.json", "amp/secrets.json", "crush/crush.json", ".codeium/config.json"],
  ...[".continue/config.json", ".continue/config.yaml", ".cursor/cli-config.json", ".qwen/settings.json"],
  ...[".config/opencode/opencode.json", ".config/opencode/opencode.jsonc", ".config/opencode/config.json"],
  ...[".grok/user-settings.json", ".codeium/mcp_config.json", ".codeium/windsurf/mcp_config.json"],
  ...[".factory/config.json", ".config/amp/settings.json", ".pi/agent/models.json", ".openclaw/openclaw.json"],
  ...[".augment/session.json", "settings/mcp_settings.json"],
  ...[".pi/agent/auth.json", ".cline/data/secrets.json", "huggingface/token", "huggingface/stored_tokens"],
  ...["composer/auth.json", ".composer/auth.json", ".m2/settings.xml", ".m2/settings-security.xml"],
  ...[".gradle/gradle.properties", "pip/pip.conf", ".pip/pip.conf", "pip/pip.ini", ".kaggle/kaggle.json"],
  ...[".snowsql/config", ".dbt/profiles.yml", ".jupyter/jupyter_server_config.json", "solana/id.json"],
  ...[
    ".config/ngrok/ngrok.yml",
    ".config/sops/age/keys.txt",
    "fish/fish_history",
    ".vscode-server/data/machine/.secret",
  ],
  ...[".supabase/access-token", ".config/supabase/access-token", "containers/auth.json", ".railway/config.json"],
  ...[".planetscale/access-token", ".config/planetscale/access-token", ".snowflake/connections.toml"],
  ...[".snowflake/config.toml", ".aliyun/config.json", ".runpod/config.toml", ".openai/api_key", ".anthropic/api_key"],
  ...[".config/llm/keys.json", ".mc/config.json", ".lein/credentials.clj.gpg", ".weechat/sec.conf"],
  ...[".config/weechat/sec.conf", ".config/pypoetry/auth.toml", ".bundle/config", ".hex/hex.config"],
  ...[".circleci/cli.yml", ".travis/config.yml", "filezilla/sitemanager.xml", "filezilla/recentservers.xml"],
  ...["globalstorage/state.vscdb"],
];

/** Settings of programs that are secret only in a home folder; in a project, a file of the same name is ordinary. */
export const HOME_PLACES: readonly string[] = [
  ...[".claude/settings.json", ".claude/settings.local.json", ".prefork/settings.json", ".prefork/settings.local.json"],
  ...[".gemini/settings.json", ".factory/settings.json", ".factory/mcp.json", ".openhands/settings.json", ".mcp.json"],
  ...[".cursor/mcp.json", ".kiro/settings/mcp.json", ".lmstudio/mcp.json", ".trae/mcp.json", ".crush.json"],
];

/** What earlier sessions saw, also in other projects: folders of a home, with everything in them. */
export const HOME_FOLDERS: readonly string[] = [
  ...[".claude/projects", ".claude/file-history", ".claude/paste-cache", ".codex/sessions", ".codex/archived_sessions"],
  ...[".gemini/tmp", ".qwen/tmp", ".local/share/opencode/storage"],
];

/** The last part of names of templates, which list the keys and contain none. */
export const TEMPLATES: ReadonlySet<string> = new Set([
  ...[
    "example",
    "examples",
    "sample",
    "samples",
    "template",
    "templates",
    "tmpl",
    "tpl",
    "dist",
    "default",
    "defaults",
  ],
  ...["schema", "stub", "skeleton", "placeholder"],
]);

/** What editors, archivers and people append to a name. */
export const COPIES: ReadonlySet<string> = new Set([
  ...[
    "bak",
    "bk",
    "bkp",
    "back",
    "backup",
    "backups",
    "old",
    "older",
    "orig",
    "original",
    "save",
    "saved",
    "sav",
    "copy",
  ],
  ...["prev", "previous", "last", "new", "tmp", "temp", "swp", "swo", "swn", "swx", "un", "rej", "dup", "dpkg-old"],
  ...[
    "dpkg-dist",
    "dpkg-new",
    "rpmsave",
    "rpmnew",
    "rpmorig",
    "ucf-old",
    "disabled",
    "off",
    "deleted",
    "removed",
    "txt",
  ],
  ...[
    "gz",
    "tgz",
    "bz2",
    "xz",
    "zst",
    "zip",
    "tar",
    "7z",
    "lz4",
    "crypt",
    "bckp",
    "archive",
    "archived",
    "final",
    "lock",
  ],
]);

/** What people append to a folder's name. */
export const FOLDER_COPIES: ReadonlySet<string> = new Set([
  ...["bak", "bk", "bkp", "backup", "backups", "old", "orig", "original", "copy", "save", "saved", "prev", "previous"],
  ...["new", "tmp", "temp"],
]);

/** What they put before a name. */
export const BEFORE_COPIES: readonly string[] = [
  ...[".#", "#", "~$", "copy of ", "copy_of_", "copy-of-", "backup_", "backup-", "backup.", "bak_", "bak-", "bak."],
  ...["old_", "old-", "old.", "new_", "new-", "tmp_", "tmp-"],
];
