/** Interpreters and tool chains: only the question for their version.
 *  Invariant: one word, and never the bare word, because an interpreter would run a file of that name. Those that fetch or
 *  start the version a project asks for before they answer (yarn, pnpm) are left out. */

import { Refusal } from "../refusal.ts";
import { type Program, type ProgramTable, program } from "./program.ts";

/** Why anything else is not read-only, and what may be done instead. */
const CODE = "runs code, so it needs approval; read the files with cat, grep or jq";
const PROJECT = "runs what the project says, so it needs approval";
const HOST = "contacts a host, so it needs approval";

type Question = { readonly asks?: string; readonly otherwise?: string };

const versionOnly = (name: string, { asks = "--version", otherwise = CODE }: Question = {}): Program =>
  program({
    read: (words) => {
      const given = words.map(({ text }) => text).join(" ");
      if (words.length === 1 && asks.split(" ").includes(given)) return words;
      throw new Refusal(`${name} ${otherwise}; unasked only ${name} ${asks.split(" ")[0]}`);
    },
  });

/** Without figures about itself, for which it would make a folder. */
const javaVersion = (name: string, quiet: string): Program => {
  const asked = versionOnly(name, { asks: "-version --version" });
  return program({ read: (words, inner) => [{ text: quiet }, ...(asked.read?.(words, inner) ?? [])] });
};

const QUESTIONS: Readonly<Record<string, Question>> = {
  node: { asks: "--version -v" },
  // Not the bare word: it goes on to ask the registry for news.
  npm: {
    asks: "--version -v",
    otherwise: "runs scripts or asks the registry, so it needs approval; read with jq .scripts package.json",
  },
  npx: { otherwise: PROJECT },
  bun: {},
  deno: { asks: "--version -V" },
  tsc: { asks: "--version -v", otherwise: PROJECT },
  // Not -v: it would go on to run what comes from the pipe.
  python: { asks: "--version -V" },
  python3: { asks: "--version -V" },
  ruby: { asks: "--version -v" },
  perl: { asks: "--version -v" },
  php: { asks: "--version -v" },
  go: { asks: "version", otherwise: `${PROJECT}; read with cat go.mod` },
  cargo: { asks: "--version -V version", otherwise: `${PROJECT}; read with cat Cargo.toml` },
  rustc: { asks: "--version -V" },
  gcc: { asks: "--version -v" },
  "g++": { asks: "--version -v" },
  cc: { asks: "--version -v" },
  "c++": { asks: "--version -v" },
  clang: { asks: "--version -v" },
  "clang++": { asks: "--version -v" },
  make: { asks: "--version -v", otherwise: `${PROJECT}; read with cat Makefile` },
  cmake: { otherwise: PROJECT },
  ninja: { otherwise: PROJECT },
  docker: { asks: "--version -v", otherwise: HOST },
  bash: {},
  zsh: {},
  curl: { asks: "--version -V", otherwise: HOST },
  wget: { asks: "--version -V", otherwise: HOST },
  ssh: { asks: "-V", otherwise: HOST },
  openssl: { asks: "version" },
  psql: { asks: "--version -V", otherwise: HOST },
  protoc: {},
};

export const versionPrograms: ProgramTable = {
  ...Object.fromEntries(Object.entries(QUESTIONS).map(([name, question]) => [name, versionOnly(name, question)])),
  java: javaVersion("java", "-XX:-UsePerfData"),
  javac: javaVersion("javac", "-J-XX:-UsePerfData"),
};
