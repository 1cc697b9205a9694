/** Programs that agents often try and that are not read-only here: what to run instead, or only their version.
 *  Invariant: a hint refuses whatever arguments it gets. A version row accepts exactly one word. */

import { type ProgramTable, program, readVersion, refusedPrograms, versionPrograms } from "./program.ts";

/** Each row: names, then why they are refused. `NAME` stands for the program. */
export const hintedPrograms: ProgramTable = {
  ...refusedPrograms([
    ["env printenv", "NAME shows the environment, including secrets, so it needs approval"],
    ["less more most bat batcat", "NAME is a pager; use cat FILE or head -n 50 FILE"],
    ["man info", "NAME opens a pager; use PROGRAM --help"],
    ["zgrep zegrep zfgrep", "NAME is a shell script; use zcat FILE | grep TEXT"],
    ["zless zmore", "NAME is a pager; use zcat FILE | head"],
    ["ldd", "ldd runs the file; use readelf -d FILE | grep NEEDED"],
    ["jar", "jar starts a Java virtual machine; use unzip -l FILE"],
    ["apt-cache", "apt-cache writes its cache; use dpkg -l, dpkg -s PACKAGE"],
    ["systemctl service", "NAME talks to services, so it needs approval; ps aux runs without it"],
    ["journalctl", "journalctl may show secrets, so it needs approval"],
    ["netstat ifconfig", "NAME may resolve host names; use ss -tlnp, ip addr, ip route"],
    ["lsof", "lsof lists the files of all programs, so it needs approval; use ss -tlnp or ps aux"],
    [
      "pytest tox nox jest vitest mocha eslint prettier ruff black mypy",
      "NAME runs the project's code or settings, so it needs approval",
    ],
    [
      "yarn pnpm mvn gradle bundle rake dotnet",
      "NAME runs what the project defines, so it needs approval; read its files with cat or jq",
    ],
    ["pip pip3 uv poetry", "NAME needs approval; read the requirements with cat requirements.txt pyproject.toml"],
    ["gh glab", "NAME contacts a host, so it needs approval; git log and git branch -a run without it"],
    ["kubectl helm terraform aws gcloud az", "NAME contacts a host, so it needs approval"],
    ["yq", "yq is not a known read-only program; use cat FILE, or grep -n KEY FILE"],
    ["watch", "watch never ends; run the command once"],
    ["sleep", "sleep only waits; leave it out"],
  ]),
  ...refusedPrograms([["apt apt-get", "NAME changes packages and its cache; use dpkg -l, dpkg -s PACKAGE"]], "write"),
};

// --- interpreters and tool chains: only their version ---------------------------------------------------------------
// Exactly one word, and never the bare word `version` where an interpreter would run a file of that name. Programs that
// fetch or start the version a project asks for before they answer (yarn, pnpm) are not listed.

/** Why any other use needs approval, and what runs without it. */
const CODE = "runs code, so it needs approval; read the files with cat, grep or jq";
const PROJECT = "runs what the project defines, so it needs approval";
const HOST = "contacts a host, so it needs approval";

const JAVA = { accepts: "-version --version", otherwise: CODE };

export const versionedPrograms: ProgramTable = {
  ...versionPrograms(CODE, {
    node: { accepts: "--version -v" },
    // Not the bare word: after answering, npm asks the registry for updates.
    npm: {
      accepts: "--version -v",
      otherwise: "runs scripts or contacts the registry, so it needs approval; read with jq .scripts package.json",
    },
    npx: { otherwise: PROJECT },
    bun: {},
    deno: { accepts: "--version -V" },
    tsc: { accepts: "--version -v", otherwise: PROJECT },
    // Not -v: it would then run what comes through the pipe.
    python: { accepts: "--version -V" },
    python3: { accepts: "--version -V" },
    ruby: { accepts: "--version -v" },
    perl: { accepts: "--version -v" },
    php: { accepts: "--version -v" },
    go: { accepts: "version", otherwise: `${PROJECT}; read with cat go.mod` },
    cargo: { accepts: "--version -V version", otherwise: `${PROJECT}; read with cat Cargo.toml` },
    rustc: { accepts: "--version -V" },
    gcc: { accepts: "--version -v" },
    "g++": { accepts: "--version -v" },
    cc: { accepts: "--version -v" },
    "c++": { accepts: "--version -v" },
    clang: { accepts: "--version -v" },
    "clang++": { accepts: "--version -v" },
    make: { accepts: "--version -v", otherwise: `${PROJECT}; read with cat Makefile` },
    cmake: { otherwise: PROJECT },
    ninja: { otherwise: PROJECT },
    docker: { accepts: "--version -v", otherwise: HOST },
    bash: {},
    zsh: {},
    curl: { accepts: "--version -V", otherwise: HOST },
    wget: { accepts: "--version -V", otherwise: HOST },
    ssh: { accepts: "-V", otherwise: HOST },
    openssl: { accepts: "version" },
    psql: { accepts: "--version -V", otherwise: HOST },
    protoc: {},
  }),
  // The added option keeps Java from creating a folder for performance data.
  java: program({ read: (words) => [{ text: "-XX:-UsePerfData" }, ...readVersion("java", words, JAVA)] }),
  javac: program({ read: (words) => [{ text: "-J-XX:-UsePerfData" }, ...readVersion("javac", words, JAVA)] }),
};
