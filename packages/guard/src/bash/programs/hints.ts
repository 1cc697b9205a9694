/** Programs that agents try and that are never read-only here: what to do instead.
 *  Invariant: each of these rows refuses whatever it is given. */

import { Refusal } from "../refusal.ts";
import { type Program, type ProgramTable, program } from "./program.ts";

const never = (hint: string, verdict: "write" | "unknown" = "unknown"): Program =>
  program({
    read: () => {
      throw new Refusal(hint, verdict);
    },
  });

const all = (names: string, hint: (name: string) => string, verdict?: "write"): ProgramTable =>
  Object.fromEntries(names.split(" ").map((name) => [name, never(hint(name), verdict)]));

export const hintedPrograms: ProgramTable = {
  ...all("env printenv", (name) => `${name} shows the environment, keys too; ask for it`),
  ...all("less more most bat batcat", (name) => `${name} is a pager; use cat FILE or head -n 50 FILE`),
  ...all("man info", (name) => `${name} opens a pager; use PROGRAM --help`),
  ...all("zgrep zegrep zfgrep", (name) => `${name} is a script; use zcat FILE | grep TEXT`),
  ...all("zless zmore", (name) => `${name} is a pager; use zcat FILE | head`),
  ldd: never("ldd runs the file; use readelf -d FILE | grep NEEDED"),
  jar: never("jar starts a machine of its own; use unzip -l FILE"),
  ...all("apt apt-get", (name) => `${name} changes packages and its cache; use dpkg -l, dpkg -s PACKAGE`, "write"),
  "apt-cache": never("apt-cache writes its cache; use dpkg -l, dpkg -s PACKAGE"),
  ...all("systemctl service", (name) => `${name} talks to services and needs approval; ps aux passes`),
  journalctl: never("journalctl may show keys and needs approval"),
  ...all("netstat ifconfig", (name) => `${name} may look names up; use ss -tlnp, ip addr, ip route`),
  lsof: never("lsof lists the files of all programs and needs approval; use ss -tlnp or ps aux"),
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
  yq: never("yq is not read; use cat FILE, or grep -n KEY FILE"),
  watch: never("watch never ends; run the command once"),
  sleep: never("sleep only waits; leave it out"),
};
