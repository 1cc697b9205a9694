/** Programs that agents often try and that are not read-only here: what to run instead, or only their version.
 *  Invariant: a hint refuses whatever arguments it gets. A version row accepts exactly one word. */

import { Refusal } from "../refusal.ts";
import { type Program, type ProgramTable, program } from "./program.ts";

const refused = (hint: string, verdict: "write" | "unknown" = "unknown"): Program =>
  program({
    read: () => {
      throw new Refusal(hint, verdict);
    },
  });

const all = (names: string, hint: (name: string) => string, verdict?: "write"): ProgramTable =>
  Object.fromEntries(names.split(" ").map((name) => [name, refused(hint(name), verdict)]));

export const hintedPrograms: ProgramTable = {
  ...all("env printenv", (name) => `${name} shows the environment, keys too; ask for it`),
  ...all("less more most bat batcat", (name) => `${name} is a pager; use cat FILE or head -n 50 FILE`),
  ...all("man info", (name) => `${name} opens a pager; use PROGRAM --help`),
  ...all("zgrep zegrep zfgrep", (name) => `${name} is a script; use zcat FILE | grep TEXT`),
  ...all("zless zmore", (name) => `${name} is a pager; use zcat FILE | head`),
  ldd: refused("ldd runs the file; use readelf -d FILE | grep NEEDED"),
  jar: refused("jar starts a machine of its own; use unzip -l FILE"),
  ...all("apt apt-get", (name) => `${name} changes packages and its cache; use dpkg -l, dpkg -s PACKAGE`, "write"),
  "apt-cache": refused("apt-cache writes its cache; use dpkg -l, dpkg -s PACKAGE"),
  ...all("systemctl service", (name) => `${name} talks to services and needs approval; ps aux passes`),
  journalctl: refused("journalctl may show keys and needs approval"),
  ...all("netstat ifconfig", (name) => `${name} may look names up; use ss -tlnp, ip addr, ip route`),
  lsof: refused("lsof lists the files of all programs and needs approval; use ss -tlnp or ps aux"),
  ...all(
    "pytest tox nox jest vitest mocha eslint prettier ruff black mypy",
    (name) => `${name} runs code or settings of the project and needs approval`,
  ),
  ...all(
    "yarn pnpm mvn gradle bundle rake dotnet",
    (name) => `${name} runs what the project says and needs approval; read its files with cat or jq`,
  ),
  ...all(
    "pip pip3 uv poetry",
    (name) => `${name} needs approval; see what is asked for with cat requirements.txt pyproject.toml`,
  ),
  ...all("gh glab", (name) => `${name} contacts a host and needs approval; git log and git branch -a pass`),
  ...all("kubectl helm terraform aws gcloud az", (name) => `${name} contacts a host and needs approval`),
  yq: refused("yq is not read; use cat FILE, or grep -n KEY FILE"),
  watch: refused("watch never ends; run the command once"),
  sleep: refused("sleep only waits; leave it out"),
};

/** Interpreters and tool chains: only the question for their version.
 *  Invariant: one word, and never the bare word, because an interpreter would run a file of that name. Those that fetch or
 *  start the version a project asks for before they answer (yarn, pnpm) are left out. */

/** Why anything else is not read-only, and what may be done instead. */
const CODE = "runs code, so it needs approval; read the files with cat, grep or jq";
const PROJECT = "runs what the project says, so it needs approval";
const HOST = "contacts a host, so it needs approval";

type VersionRule = { readonly versionArguments?: string; readonly otherwise?: string };

const versionOnly = (
  name: string,
  { versionArguments: asks = "--version", otherwise = CODE }: VersionRule = {},
): Program =>
  program({
    read: (words) => {
      const given = words.map(({ text }) => text).join(" ");
      if (words.length === 1 && asks.split(" ").includes(given)) return words;
      throw new Refusal(`${name} ${otherwise}; unasked only ${name} ${asks.split(" ")[0]}`);
    },
  });

/** Without figures about itself, for which it would make a folder. */
const javaVersion = (name: string, quiet: string): Program => {
  const asked = versionOnly(name, { versionArguments: "-version --version" });
  return program({ read: (words, inner) => [{ text: quiet }, ...(asked.read?.(words, inner) ?? [])] });
};

const VERSION_RULES: Readonly<Record<string, VersionRule>> = {
  node: { versionArguments: "--version -v" },
  // Not the bare word: it goes on to ask the registry for news.
  npm: {
    versionArguments: "--version -v",
    otherwise: "runs scripts or asks the registry, so it needs approval; read with jq .scripts package.json",
  },
  npx: { otherwise: PROJECT },
  bun: {},
  deno: { versionArguments: "--version -V" },
  tsc: { versionArguments: "--version -v", otherwise: PROJECT },
  // Not -v: it would go on to run what comes from the pipe.
  python: { versionArguments: "--version -V" },
  python3: { versionArguments: "--version -V" },
  ruby: { versionArguments: "--version -v" },
  perl: { versionArguments: "--version -v" },
  php: { versionArguments: "--version -v" },
  go: { versionArguments: "version", otherwise: `${PROJECT}; read with cat go.mod` },
  cargo: { versionArguments: "--version -V version", otherwise: `${PROJECT}; read with cat Cargo.toml` },
  rustc: { versionArguments: "--version -V" },
  gcc: { versionArguments: "--version -v" },
  "g++": { versionArguments: "--version -v" },
  cc: { versionArguments: "--version -v" },
  "c++": { versionArguments: "--version -v" },
  clang: { versionArguments: "--version -v" },
  "clang++": { versionArguments: "--version -v" },
  make: { versionArguments: "--version -v", otherwise: `${PROJECT}; read with cat Makefile` },
  cmake: { otherwise: PROJECT },
  ninja: { otherwise: PROJECT },
  docker: { versionArguments: "--version -v", otherwise: HOST },
  bash: {},
  zsh: {},
  curl: { versionArguments: "--version -V", otherwise: HOST },
  wget: { versionArguments: "--version -V", otherwise: HOST },
  ssh: { versionArguments: "-V", otherwise: HOST },
  openssl: { versionArguments: "version" },
  psql: { versionArguments: "--version -V", otherwise: HOST },
  protoc: {},
};

export const versionPrograms: ProgramTable = {
  ...Object.fromEntries(Object.entries(VERSION_RULES).map(([name, question]) => [name, versionOnly(name, question)])),
  java: javaVersion("java", "-XX:-UsePerfData"),
  javac: javaVersion("javac", "-J-XX:-UsePerfData"),
};
