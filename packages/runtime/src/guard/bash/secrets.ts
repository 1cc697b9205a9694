/** Files whose contents are keys, and files that are no files: reading them is not harmless.
 *  Invariant: judged by name alone, here as it is written and again by the runner as it is reached.
 *  Elsewhere: what patterns stand for and where a relative name leads (../../workspace). */

import { couldStandFor } from "./glob.ts";
import type { PlanWord } from "./plan.ts";
import { Refusal } from "./refusal.ts";

const FOLDERS =
  "\\.ssh|\\.gnupg|\\.aws|\\.azure|\\.kube|\\.docker|\\.password-store|\\.config/(gh|hub|gcloud|op|fly|configstore)|run/secrets|" +
  "ssl/private|share/keyrings|\\.mozilla|\\.config/(rclone|google-chrome|chromium)|\\.wrangler|\\.huggingface|\\.terraform\\.d|\\.fly|\\.netlify";
const NAMES =
  "\\.netrc|_netrc|\\.pgpass|\\.my\\.cnf|\\.pypirc|\\.git-credentials|\\.htpasswd|id_(rsa|dsa|ecdsa|ed25519)(_sk)?|\\.?credentials\\.json|" +
  "shadow-?|gshadow-?|sudoers|keyring|\\.vault-token|\\.envrc|\\.cargo/credentials|\\.npmrc|\\.yarnrc|\\.curlrc|\\.wgetrc|\\.boto|\\.s3cfg|" +
  "\\.codex/auth|\\.claude\\.json|git/credentials|\\.gem/credentials|huggingface/token|composer/auth|\\.m2/settings|" +
  "ssh_host_\\w+_key|rclone\\.conf|\\.dev\\.vars|service-account|secrets?\\.ya?ml|terraform\\.tfstate|\\.dockerconfigjson|\\.?htpasswd|" +
  "credentials|\\.composer/auth|\\.gradle/gradle|pip/pip\\.conf|NuGet\\.Config|\\.(bash|zsh|python|psql|mysql|node_repl)_history";
const ENDINGS = "env|tfvars|pem|p12|pfx|key|keystore|jks|kdbx|ovpn";
const SECRET = new RegExp(
  `(^|[/:])(${FOLDERS})(/|$)|(^|[/:])(${NAMES})(\\.\\w+)?$|[\\w*?-]\\.(${ENDINGS})$|` +
    "(^|[/:])\\.env(\\.(?!example$|sample$|template$|dist$|defaults?$|schema$)[\\w.-]+)?$",
  "i",
);
/** Links stand there: what follows `..` is another folder than the text says. */
const leadsThroughLinks = (path: string): boolean => {
  const parts = path.split("/");
  const linked = parts.findIndex((part) => part === "dev" || part === "proc" || part === "sys");
  return linked >= 0 && parts.includes("..", linked);
};

const PUBLIC_KEY = /\.pub$/i;

const NO_FILE =
  /^\/dev(\/(?!null$|stdin$|fd\/0$)|$)|^\/proc(\/(?!cpuinfo$|meminfo$|version$|loadavg$|uptime$|filesystems$|mounts$|stat$)|$)|^\/sys\/kernel\/(debug|tracing|security)|(^|\/)(dev\/(tcp|udp)|proc\/(self|thread-self|\d+))(\/|$)/;

/** Hidden names of keys, to try patterns on. */
const HIDDEN: readonly string[] = [
  ".env",
  ".env.local",
  ".ssh",
  ".gnupg",
  ".aws",
  ".kube",
  ".netrc",
  ".pgpass",
  ".git-credentials",
];

export const isSecret = (path: string): boolean => SECRET.test(path) && !PUBLIC_KEY.test(path);

/** Why a path may not be read; undefined if it may. */
export const pathProblem = (path: string): string | undefined => {
  const plain = folded(path);
  if (isSecret(plain)) return `${path} may hold keys; ask for it`;
  return noFileProblem(path);
};

/** Why a path is nothing to read from: devices, connections, and what the system tells of running programs. */
export const noFileProblem = (path: string): string | undefined =>
  NO_FILE.test(folded(path)) || leadsThroughLinks(path) ? `${path} is no plain file` : undefined;

/** Without doubled slashes, `.`, and `..` after a name. */
export const folded = (path: string): string => {
  if (!path.includes("/")) return path === "." ? "" : path;
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part === ".." && parts.length > 0 && parts.at(-1) !== "..") parts.pop();
    else if (part !== ".." || !path.startsWith("/")) parts.push(part);
  }
  return (path.startsWith("/") ? "/" : "") + parts.join("/");
};

/** A word as the paths it may hold: itself, the value of an option, what follows some letters. */
const pathsIn = (text: string): readonly string[] => {
  if (!text.startsWith("-")) return [text];
  const value = /^--?[\w-]+=(.*)$/s.exec(text)?.[1];
  return value === undefined ? [text, ...[2, 3, 4, 5].map((letters) => text.slice(letters))] : [value];
};

/** Folders that a command may be in, as far as the text says: `""` is where it started. */
export type Ways = readonly string[];

/** `ways`: a name counts from each of these folders. */
export const checkSecrets = (words: readonly PlanWord[], ways: Ways = [""]): void => {
  for (const { text, pattern, home } of words) {
    for (const path of pathsIn(text).flatMap((one) => (home ? [one] : ways.map((way) => joined(way, one))))) {
      const problem = pathProblem(path) ?? (pattern ? patternProblem(path) : undefined);
      if (problem !== undefined) throw new Refusal(problem);
    }
  }
};

/** A name as it is reached from a folder. */
export const joined = (folder: string, name: string): string =>
  folder === "" || name.startsWith("/") || name.startsWith("~")
    ? name
    : `${folder}${folder.endsWith("/") ? "" : "/"}${name}`;

/** A pattern written so that it hits keys or `/proc`; those that only happen to are found when they are expanded. */
const patternProblem = (path: string): string | undefined => {
  const parts = path.split("/");
  const hidden = parts.some((part) => /^\.\W*\w/.test(part) && couldStandFor(part, HIDDEN));
  const system = parts[0] === "" && parts.length > 2 && couldStandFor(parts[1] ?? "", ["proc", "dev"]);
  return hidden || system ? `${path} may stand for keys or for no plain file; name the files` : undefined;
};
