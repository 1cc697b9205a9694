/** Which names stand for files that hold keys? The one list: for names that are written out, patterns, walks through
 *  folders, the file tools, and what is not there inside a cell.
 *  Invariant: judged by name alone, in any case of letters, copies that editors and people leave behind included; files
 *  that only show which keys there are, and public keys, are not among them. Takes time in proportion to the name.
 *  Elsewhere: names that may not be written (protected.ts), where links lead (../workspace). */

/** Folders with all that is in them. A name with slashes counts wherever these folders follow each other. */
const FOLDERS: readonly string[] = [
  ...[".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".pki", ".envs"],
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
  ...["networkmanager/system-connections", "letsencrypt/live", "letsencrypt/archive", "letsencrypt/keys", "sudoers.d"],
];

/** Names so much their own that whatever follows a sign after them is a copy, a variant or a part of the same. */
const BEGINNINGS: readonly string[] = [
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
    ".aider.conf",
    ".aider.input.history",
    ".aider.chat.history",
  ],
  ...[".databrickscfg", ".sentryclirc", ".msmtprc", ".mbsyncrc", ".offlineimaprc", ".fetchmailrc", ".erlang.cookie"],
  ...[".xauthority", ".iceauthority", ".viminfo", ".lesshst", ".histfile", "wpa_supplicant.conf"],
];

/** The same, unless the ending says that it is source text about such files. */
const SUBJECTS: readonly string[] = [
  ...["oauth_creds", "mcp-oauth-tokens", "gemini-credentials", "google_accounts", "application_default_credentials"],
  ...[
    "access_tokens",
    "client_secret",
    "service-account",
    "service_account",
    "serviceaccount",
    "vault_pass",
    "firebase-adminsdk",
  ],
];
const SOURCES: ReadonlySet<string> = new Set([
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

/** Everyday words: keys only with an ending that says data, some of them also without any. */
const WORDS: ReadonlySet<string> = new Set(["credentials", "credential", "secrets", "secret", "kubeconfig"]);
const BARE_WORDS: ReadonlySet<string> = new Set(["credentials", "kubeconfig"]);
const DATA: ReadonlySet<string> = new Set([
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

const ENDINGS: ReadonlySet<string> = new Set([
  ...["env", "tfvars", "tfstate", "pem", "p8", "p12", "pfx", "pkcs12", "key", "keystore", "keyring", "jks", "jceks"],
  ...["bks", "kdb", "kdbx", "ovpn", "ppk", "keytab", "keychain", "keychain-db", "agekey", "publishsettings"],
]);
const LONG_ENDINGS: readonly string[] = [
  ".tfvars.json",
  "_rsa",
  "_dsa",
  "_ecdsa",
  "_ed25519",
  "_ecdsa_sk",
  "_ed25519_sk",
];
const HISTORIES: readonly string[] = ["_history", "_hist", "-history"];

/** Ordinary names that hold keys in these folders only. */
const PLACES: readonly string[] = [
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
];

/** The last part of names that show which keys there are, and hold none. */
const TEMPLATES: ReadonlySet<string> = new Set([
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

/** What editors, packers and people put after a name. */
const COPIES: ReadonlySet<string> = new Set([
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
  ...["gz", "tgz", "bz2", "xz", "zst", "zip", "tar", "7z", "lz4", "crypt", "bckp", "archive", "archived", "final"],
]);

const EXACT: ReadonlySet<string> = new Set(PLACES);
const WHOLE: ReadonlySet<string> = new Set(FOLDERS);
const DEEPEST = Math.max(...[...PLACES, ...FOLDERS].map((name) => name.split("/").length));

const byFirst = (names: readonly string[]): ReadonlyMap<string, readonly string[]> =>
  Map.groupBy(names, (name) => name.slice(0, 2));
const BEGINNINGS_BY = byFirst(BEGINNINGS);
const SUBJECTS_BY = byFirst(SUBJECTS);

/** A sign of a pattern is no end of a name: what it stands for is judged when it is known. */
const isLetter = (letter: string | undefined): boolean => letter !== undefined && /[a-z0-9*?[]/.test(letter);

const BEFORE_COPIES: readonly string[] = [
  ...[".#", "#", "~$", "copy of ", "copy_of_", "copy-of-", "backup_", "backup-", "backup.", "bak_", "bak-", "bak."],
  ...["old_", "old-", "old.", "new_", "new-", "tmp_", "tmp-"],
];

const FIRST_OF_COPIES: ReadonlySet<string> = new Set(BEFORE_COPIES.map((before) => before.slice(0, 1)));

/** A name without what marks it as a copy: `#name#`, `.#name`, `name~`, `name.bak`, `name (1)`, `Copy of name`. */
const withoutCopy = (name: string): string => {
  let [from, to] = [0, name.length];
  if (FIRST_OF_COPIES.has(name[0] ?? ""))
    for (const before of BEFORE_COPIES) if (name.startsWith(before, from)) from += before.length;
  for (;;) {
    while (to > from && "~#) \t.".includes(name[to - 1] ?? "")) to -= 1;
    let at = to - 1;
    while (at > from && !"._- (~".includes(name[at] ?? "")) at -= 1;
    // A word for a copy, with a number or not; a number; a date.
    const last = at <= from ? "?" : withoutNumber(name.slice(at + 1, to));
    if (last !== "" && !COPIES.has(last)) return name.slice(from, to);
    to = at;
  }
};

const withoutNumber = (word: string): string => {
  let end = word.length;
  while (end > 0 && "0123456789".includes(word[end - 1] ?? "?")) end -= 1;
  return word.slice(0, end);
};

const ending = (name: string): string => name.slice(name.lastIndexOf(".") + 1);

const lastPart = (name: string): string =>
  name.slice(Math.max(name.lastIndexOf("."), name.lastIndexOf("-"), name.lastIndexOf("_")) + 1);

/** `.env.production.example`; and `example.env`, where the ending only says what it is an example of. */
const isTemplate = (name: string): boolean => {
  if (TEMPLATES.has(lastPart(name))) return true;
  const dot = name.lastIndexOf(".");
  const isData = /^(?:env|tfvars|json|ya?ml|toml)$/.test(name.slice(dot + 1));
  return dot > 0 && isData && !name.startsWith(".env") && TEMPLATES.has(lastPart(name.slice(0, dot)));
};

const beginsLike = (name: string, beginnings: ReadonlyMap<string, readonly string[]>): boolean =>
  beginnings.get(name.slice(0, 2))?.some((one) => name.startsWith(one) && !isLetter(name[one.length])) ?? false;

/** `credentials`, and with an ending of data also as a part: `prod-secrets.old.yml`. */
const isWord = (name: string): boolean => {
  const dot = name.indexOf(".", 1);
  if (dot < 0) return BARE_WORDS.has(name);
  const isData = name
    .slice(dot + 1)
    .split(".")
    .every((part) => DATA.has(part) || COPIES.has(part));
  return (
    isData &&
    name
      .slice(0, dot)
      .split(/[-_ .]/)
      .some((part) => WORDS.has(part))
  );
};

const endsLike = (name: string): boolean => {
  if (name.lastIndexOf(".") > 0 && ENDINGS.has(ending(name))) return true;
  if (name.includes("_") || name.endsWith(".json"))
    if (LONG_ENDINGS.some((one) => name.length > one.length && name.endsWith(one))) return true;
  return name.startsWith(".") && HISTORIES.some((one) => name.endsWith(one));
};

/** One name by itself, wherever it stands. */
const isSecretName = (name: string): boolean => {
  const core = withoutCopy(name);
  if (isTemplate(core)) return false;
  // An editor puts a dot before the copy of what had none.
  return hasForm(name) || (core !== name && hasForm(core)) || (core.startsWith(".") && hasForm(core.slice(1)));
};

const hasForm = (name: string): boolean =>
  beginsLike(name, BEGINNINGS_BY) ||
  (beginsLike(name, SUBJECTS_BY) && !SOURCES.has(ending(name))) ||
  isWord(name) ||
  endsLike(name);

/** git's own settings, also those of submodules and of repositories without a working tree. */
const isGitSetting = (names: readonly string[], last: string): boolean =>
  /^(?:config(?:\.worktree)?|credentials)$/.test(last) && names.slice(0, -1).some((name) => name.endsWith(".git"));

/** May a file of this path hold keys? What follows a colon counts as a path as well: `HEAD:.env`. */
export const isSecret = (path: string): boolean => {
  const names = path
    .toLowerCase()
    .replaceAll(":", "/")
    .split("/")
    .filter((name) => name !== "" && name !== ".");
  const last = names.at(-1) ?? "";
  if (last.endsWith(".pub")) return false;
  for (let from = 0; from < names.length; from += 1) {
    let joined = names[from] ?? "";
    if (WHOLE.has(joined)) return true;
    for (let at = from + 1; at < Math.min(names.length, from + DEEPEST); at += 1) {
      joined += `/${names[at]}`;
      if (WHOLE.has(joined)) return true;
      if (at === names.length - 1 && (EXACT.has(joined) || EXACT.has(withoutCopy(joined)))) return true;
    }
  }
  return isGitSetting(names, withoutCopy(last)) || isSecretName(last);
};

const KEY_FILES: readonly string[] = BEGINNINGS.filter((name) => name.startsWith("id_"));
const COMMON_DATA: readonly string[] = ["json", "yaml", "yml", "toml", "ini", "txt", "xml", "properties"];

/** Patterns that hit each of these names, and now and then a harmless one: for programs that leave files out by pattern.
 *  Letters of either case have to be asked for by whoever uses them. */
export const secretPatterns: {
  readonly files: readonly string[];
  readonly folders: readonly string[];
  readonly templates: readonly string[];
  /** With the folder that makes them keys. */
  readonly places: readonly string[];
} = {
  files: [
    ...[...BEGINNINGS, ...SUBJECTS].map((name) => `${name}*`),
    ...["#*", ".#*", ...KEY_FILES.map((name) => `.${name}*`)],
    ...[...BARE_WORDS].flatMap((word) => [word, `${word}[~#_-]*`, `${word}.bak*`, `${word}.old*`]),
    ...[...WORDS].flatMap((word) => COMMON_DATA.map((ending) => `*${word}*.${ending}*`)),
    ...[...ENDINGS, "tfvars.json"].flatMap((one) => [`*?.${one}`, `*?.${one}[~#._ -]*`]),
    ...LONG_ENDINGS.filter((one) => !one.startsWith(".")).map((one) => `*${one}`),
    ...HISTORIES.map((one) => `.*${one}`),
  ],
  folders: FOLDERS,
  /** Among what `files` hits: no keys after all. */
  templates: [...TEMPLATES].flatMap((word) => [`*[._-]${word}`, `${word}.env`, `*[._-]${word}.env`]).concat("*.pub"),
  places: [...PLACES, "*.git/config", "*.git/config.worktree", "*.git/credentials"],
};
