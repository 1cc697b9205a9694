/** A walk through files' contents leaves out those that may hold keys. Pure.
 *  Invariant: only what a program leaves out is added, and it stands last, where it counts over what was said before.
 *  Elsewhere: where a walk may begin (../guard/bash), names that are spelled out (render-pipe.ts). */

const KEY_FILES: readonly string[] = [
  ...[".env", ".env.local", ".env.*.local", ".env.dev*", ".env.prod*", ".env.stag*", ".env.test", ".envrc", "*.env"],
  ...["*.pem", "*.key", "*.p12", "*.pfx", "*.keystore", "*.jks", "*.kdbx", "*.ovpn", "*.tfvars", "*.tfstate"],
  ...["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", ".pgpass", ".git-credentials", ".npmrc", ".pypirc"],
  ...["credentials", "credentials.json", "service-account*.json", "secrets.y*ml", ".htpasswd", ".dev.vars"],
];
const KEY_FOLDERS: readonly string[] = [".ssh", ".gnupg", ".aws", ".kube", ".docker", ".azure"];

const GREPS: readonly string[] = ["grep", "egrep", "fgrep"];

const optionsFor = (program: string): readonly string[] => {
  if (GREPS.includes(program))
    return [...KEY_FILES.map((name) => `--exclude=${name}`), ...KEY_FOLDERS.map((name) => `--exclude-dir=${name}`)];
  return program === "rg" ? [...KEY_FILES, ...KEY_FOLDERS].map((name) => `--glob=!${name}`) : [];
};

const FIND_TESTS = [
  ...KEY_FILES.flatMap((name) => ["!", "-name", name]),
  ...KEY_FOLDERS.flatMap((name) => ["!", "-path", `*/${name}/*`]),
];

/** The words of a command that walks; the inner command's where another one runs it. */
export const withoutKeys = (program: string, words: readonly string[]): readonly string[] => {
  if (program === "find") return words.flatMap((word) => (word === "-exec" ? [...FIND_TESTS, word] : [word]));
  const at = program === "xargs" ? words.findIndex((word) => !word.startsWith("-")) : -1;
  if (at >= 0) return [...words.slice(0, at + 1), ...withoutKeys(words[at] ?? "", words.slice(at + 1))];
  const options = optionsFor(program);
  const end = words.indexOf("--");
  return end < 0 ? [...words, ...options] : [...words.slice(0, end), ...options, ...words.slice(end)];
};
