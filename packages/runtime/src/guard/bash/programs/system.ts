/** Programs that tell about the machine, print words, or only ask for a version. */

import { Refusal } from "../refusal.ts";
import { type Program, type ProgramTable, program } from "./program.ts";

const quiet = program({});

/** Whatever it is given it prints; nothing is computed, because words are literal by now. */
const echo = program({ read: (words) => words, harmless: true });

/** Columns of ps; `environ` is none of them. */
const COLUMN =
  "pid|ppid|pgid|sid|tid|lwp|nlwp|user|uid|ruser|group|gid|args|cmd|command|comm|ucmd|stat|state|s|start|stime|lstart|etime|" +
  "etimes|time|cputime|c|cp|pcpu|%cpu|pmem|%mem|rss|rssize|vsz|vsize|sz|size|tty|tt|tname|ni|nice|pri|psr|wchan|cls|rtprio";
const COLUMNS = new RegExp(`^[+-]?(${COLUMN})(:\\d+)?(=[\\w %]*)?([, ][+-]?(${COLUMN})(:\\d+)?(=[\\w %]*)?)*$`);
const isColumns = (text: string): boolean => COLUMNS.test(text);

/** Interpreters and tool chains: only the question for their version. Those that fetch or start the version a project
 *  asks for before they answer (yarn, pnpm) are left out. */
const versionOnly = (...forms: readonly string[]) =>
  program({
    read: (words) => {
      const given = words.map(({ text }) => text).join(" ");
      if (words.length === 1 && forms.includes(given)) return words;
      throw new Refusal(`only its version may be asked for: ${forms[0]}`);
    },
  });

/** Never the bare word: an interpreter would run a file of that name. */
const usual = versionOnly("--version", "-v");
/** Without figures about itself, for which it would make a folder. */
const javaVersion = (quiet: string): Program => {
  const asked = versionOnly("-version", "--version");
  return program({ read: (words, inner) => [{ text: quiet }, ...(asked.read?.(words, inner) ?? [])] });
};
const capital = versionOnly("--version", "-V");
const dashes = versionOnly("--version");

export const systemPrograms: ProgramTable = {
  true: quiet,
  false: quiet,
  ":": quiet,
  echo,
  printf: program({
    least: 1,
    read: (words) => {
      if (!words[0] || words[0].pattern || words[0].text.startsWith("-")) {
        throw new Refusal("printf takes a quoted format first, and no options");
      }
      // bash's own printf stores a count where %n says, and computes the place.
      if (/%[^%a-zA-Z]*n/.test(words[0].text)) throw new Refusal("printf may not use %n");
      return words;
    },
    harmless: true,
  }),
  date: program({
    flags: "uR",
    valued: "dr",
    glued: "I",
    long: "utc universal rfc-email iso-8601? rfc-3339= date= reference= version",
    check: ({ operands }) => {
      if (operands.some(({ text, pattern }) => pattern || !text.startsWith("+")))
        throw new Refusal("date may only print: date +FORMAT", "write");
    },
  }),
  seq: program({
    flags: "w",
    valued: "fs",
    long: "equal-width format= separator= version",
    least: 1,
    most: 3,
    check: ({ operands }) => {
      if (operands.some(({ text }) => !/^-?\d{1,7}(\.\d{1,3})?$/.test(text)))
        throw new Refusal("seq takes numbers of at most seven digits");
    },
  }),
  expr: program({
    read: (words) => {
      if (words.some(({ pattern }) => pattern)) throw new Refusal("quote the * of expr");
      return words;
    },
  }),
  uname: program({
    flags: "asnrvmpio",
    long: "all kernel-name nodename kernel-release kernel-version machine operating-system version",
    most: 0,
  }),
  arch: program({ most: 0 }),
  hostname: program({ flags: "s", long: "short", most: 0 }),
  whoami: program({ long: "version", most: 0 }),
  id: program({ flags: "aGgnruz", long: "group groups name real user zero version", most: 1 }),
  groups: program({ most: 1 }),
  nproc: program({ long: "all ignore= version", most: 0 }),
  uptime: program({ flags: "ps", long: "pretty since version", most: 0 }),
  free: program({
    flags: "bkmghltw",
    long: "bytes kilo mega giga kibi mebi gibi human lohi total wide si version",
    most: 0,
  }),
  lscpu: program({ flags: "aJ", long: "all json version", most: 0 }),
  ps: program({
    flags: "AaefFlHLTjwx",
    valued: "oOpCUuGgst",
    long: "forest no-headers headers sort= pid= ppid= user= version",
    // Without a dash the letters mean other things: `e` would show every program's environment.
    // ps also reads everything again in that way when it cannot make sense of a dash, a name or a mix.
    check: ({ options, operands }) => {
      if (operands.some(({ text, pattern }) => pattern || !/^a?u?xf?w*$/.test(text)))
        throw new Refusal("use ps aux or ps -ef");
      const has = (letters: RegExp): boolean => options.some(({ name }) => letters.test(name));
      if (options.some(({ name, value = "" }) => /^[uU]$/.test(name) && /^[acfghHjlLmMnrsSTuvwxXZ]*e/.test(value)))
        throw new Refusal("use ps aux or ps -ef");
      if (has(/^e$/) && (operands.length > 0 || has(/^[UuGgstax]$/) || (has(/^[fFlj]$/) && has(/^[oO]$/))))
        throw new Refusal("ps -e takes either -f or -o; use ps -ef or ps -eo pid,args");
      if (options.some(({ name, value = "" }) => /^(o|O|sort)$/.test(name) && !isColumns(value)))
        throw new Refusal("ps -o takes plain columns: ps -eo pid,ppid,user,args");
    },
  }),
  top: program({
    read: (words) => {
      if (!/^(-b -n ?[1-5]|-bn ?[1-5]|-n ?[1-5] -b)$/.test(words.map(({ text }) => text).join(" ")))
        throw new Refusal("top may be asked once: top -b -n 1");
      return words;
    },
  }),
  pgrep: program({
    flags: "afilnovwx",
    valued: "uUgGPst",
    long: "list-name list-full full newest oldest exact count",
    least: 0,
    most: 1,
  }),
  which: program({ flags: "a", least: 1 }),
  whereis: program({ flags: "bms", least: 1 }),
  getconf: program({ flags: "a", most: 2 }),
  locale: program({ flags: "ackm", most: 1 }),
  tty: program({ flags: "s", most: 0 }),
  node: usual,
  npm: usual, // not the bare word: it goes on to ask the registry for news
  npx: dashes,
  bun: dashes,
  deno: capital,
  tsc: usual,
  // Not -v: it would go on to run what comes from the pipe.
  python: capital,
  python3: capital,
  ruby: usual,
  perl: versionOnly("--version", "-v"),
  php: versionOnly("--version", "-v"),
  java: javaVersion("-XX:-UsePerfData"),
  javac: javaVersion("-J-XX:-UsePerfData"),
  go: versionOnly("version"),
  cargo: versionOnly("--version", "-V", "version"),
  rustc: capital,
  gcc: versionOnly("--version", "-v"),
  "g++": versionOnly("--version", "-v"),
  clang: versionOnly("--version", "-v"),
  make: versionOnly("--version", "-v"),
  cmake: dashes,
  docker: versionOnly("--version", "-v"),
  bash: dashes,
  zsh: dashes,
  curl: capital,
  wget: capital,
  ssh: versionOnly("-V"),
  openssl: versionOnly("version"),
};
