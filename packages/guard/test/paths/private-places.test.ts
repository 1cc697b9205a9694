/** Files that are private because of where they are, whatever their names. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { classify } from "@prefork/guard";
import { pathJudge } from "../../src/files/index.ts";
import { isPrivatePlace, isProtectedBySystem } from "../../src/paths/index.ts";

const PRIVATE: readonly string[] = [
  ...["~/.local/share/atuin/key", "~/.local/share/atuin/history.db", "~/.config/tea/config.yml", "~/.talos/config"],
  ...["~/.jira.d/config.yml", "~/.config/.jira/.config.yml", "~/.tsh/keys/x/y", "~/.config/helm/repositories.yaml"],
  ...["~/.twilio-cli/config.json", "~/.expo/state.json", "~/.vagrant.d/insecure_private_key", "~/.lastpass/blob"],
  ...["~/.local/share/signal-cli/data/x", "~/.config/aerc/accounts.conf", "~/.muttrc", "~/.davfs2/secrets"],
  ...["~/.config/syncthing/config.xml", "~/.local/state/syncthing/config.xml", "~/.znc/configs/znc.conf", "~/.lftprc"],
  ...["~/.mongorc.js", "~/.dbshell", "~/.bunfig.toml", "~/.config/zed/settings.json", "~/.config/pulse/cookie"],
  ...["/home/ann/.config/himalaya/config.toml", "/root/.irssi/config", "/Users/ann/.ncftp/bookmarks", "/ROOT/.Muttrc"],
  ...["/Users/ann/Library/Application Support/x/y", "/var/home/ann/.config/new-program/config.toml"],
  ...["/etc/kubernetes/admin.conf", "/etc/rancher/k3s/k3s.yaml", "/tmp/krb5cc_1000", "/etc/postfix/sasl_passwd"],
  ...["/etc/ppp/chap-secrets", "/etc/netplan/50-cloud.yaml", "/etc/openvpn/client.conf", "/etc/security/opasswd"],
  ...["/var/cache/debconf/passwords.dat", "/etc/pam_ldap.secret", "/etc/ipsec.secrets", "/etc/gitlab/gitlab.rb"],
  ...["/var/lib/rancher/k3s/server/token", "/var/lib/iwd/home.psk", "/etc/zabbix/agent.psk", "/etc/cifs-credentials"],
];

const HARMLESS: readonly string[] = [
  ...["~/.bashrc", "~/.zshrc", "~/.profile", "~/.vimrc", "~/.tmux.conf", "~/.config/nvim/init.lua", "~/.gitignore"],
  ...["~/.cargo/registry/src/x/lib.rs", "~/.rustup/toolchains/x/lib.rs", "~/.nvm/nvm.sh", "~/.npm/_logs/x.log"],
  ...[
    "~/.m2/repository/a/b.pom",
    "~/.local/bin/tool",
    "~/.cache/pip/x",
    "~/.claude/CLAUDE.md",
    "~/.claude/skills/a.md",
  ],
  ...["~/.local/state/prefork/worktrees/a/trees/t1/src/a.ts", "~/project/.config/x.yml", "/home/ann/work/.eslintrc"],
  ...["~/.config", "~/.local/share", "src/.config/zed/settings.json", ".config/app.yml", "/srv/app/.config/x"],
  ...[
    "/etc/passwd",
    "/etc/hosts",
    "/etc/os-release",
    "/etc/nginx/nginx.conf",
    "/etc/ssh/ssh_config",
    "/var/log/syslog",
  ],
  ...["/usr/share/doc/passwd/README", "/home/ann/secret-santa/app.ts", "~/notes.md"],
];

test("hidden files of a home folder and settings of services are private, except for what is known to be harmless", () => {
  assert.deepEqual(
    PRIVATE.filter((path) => !isPrivatePlace(path)),
    [],
  );
  assert.deepEqual(HARMLESS.filter(isPrivatePlace), []);
  const quoted = (path: string): string => `cat '${path}'`.replace("'~/", "~/'");
  const verdictOf = (path: string): string => classify(quoted(path)).verdict;
  assert.deepEqual(
    PRIVATE.filter((path) => verdictOf(path) === "read-only"),
    [],
  );
  assert.deepEqual(
    HARMLESS.filter((path) => verdictOf(path) !== "read-only"),
    [],
  );
});

test("names in a project that say it themselves are secret", () => {
  const names = ["vault_password.txt", "ansible_vault_password", "talosconfig", "rootkey.csv", "accessKeys.csv"];
  const others = ["sentry.properties", "deep/office.remmina", "vault_password.py", "docs/talosconfig.md"];
  const asked = [...names, ...others].filter((name) => classify(`cat ${name}`).verdict !== "read-only");
  assert.deepEqual(asked, [...names, "sentry.properties", "deep/office.remmina"]);
});

test("files of the system that others may not read are private, whatever their names", () => {
  const modes: readonly (readonly [string, number])[] = [
    ["/etc/some/file", 0o100640],
    ["/etc/some/file", 0o100644],
    ["/var/lib/service/state", 0o100600],
    ["/var/log/syslog", 0o100640],
    ["/tmp/tmp.Xy12", 0o100600],
    ["/home/ann/notes", 0o100600],
  ];
  assert.deepEqual(
    modes.map(([path, mode]) => isProtectedBySystem(path, mode)),
    [true, false, true, false, false, false],
  );
});

test("a workspace below a hidden folder is read like any other, and a home folder as workspace hides its settings", () => {
  const home = "/home/nobody-here";
  const judged = (cwd: string, path: string): boolean => pathJudge({ cwd, home }).problem(path) === undefined;
  assert.deepEqual(
    [
      judged(`${home}/.site`, `${home}/.site/src/a.ts`),
      judged(`${home}/.site`, `${home}/.site/.env`),
      judged(`${home}/.site`, `${home}/.other/a.ts`),
      judged(home, `${home}/.other/a.ts`),
      judged(home, `${home}/a.ts`),
    ],
    [true, false, false, false, true],
  );
});
