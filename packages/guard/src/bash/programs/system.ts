/** Programs that describe the machine, print their words, or tell where another program is. */

import { readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { checkWidth, checkZone, limitWidths, type ProgramTable, program } from "./program.ts";

const noOptions = program({});

/** Prints its words. Nothing is computed, because words are literal by now. */
const echo = program({ read: (words) => words, harmless: true });

const seqRule = program({ flags: "w", valued: "fs", long: "equal-width format= separator= version" }).rule;

/** Negative numbers look like options, so numbers are taken out first. */
const readSeq = (words: readonly PlanWord[]): readonly PlanWord[] => {
  const isNumber = ({ text }: PlanWord): boolean => /^-?\d{1,7}(\.\d{1,3})?$/.test(text);
  const given = readOptions(
    "seq",
    words.filter((word) => !isNumber(word)),
    seqRule,
  );
  limitWidths("seq", "f", "format")(given);
  const numbers = words.filter(isNumber).map(({ text }) => Number(text));
  const asksVersion = given.options.some(({ name }) => name === "version");
  if (given.operands.length > 0 || numbers.length > 3 || (numbers.length === 0 && !asksVersion))
    throw new Refusal("seq takes one to three numbers of at most seven digits: seq 1 10");
  const [first = 1, step = 1, last = 1] =
    numbers.length === 3 ? numbers : [numbers.length === 2 ? numbers[0] : 1, 1, numbers.at(-1)];
  if (step === 0 || Math.abs((last - first) / step) > 10_000_000)
    throw new Refusal("seq may print at most ten million numbers; use a smaller range");
  return words;
};

const IP = /^(a|ad|add|addr|addre|addres|address|l|li|lin|link|r|ro|rou|rout|route|n|ne|nei|neigh)$/;

/** Shows addresses, links, routes and neighbours; every other verb changes them. */
const readIp = (words: readonly PlanWord[]): readonly PlanWord[] => {
  const plain = words.filter(({ text }) => !/^-(4|6|o|br|brief|s|d|j|json|p|c|color)$/.test(text));
  const [object, verb, ...more] = plain;
  const shows = verb === undefined || /^(show|list|ls)$/.test(verb.text);
  const named = more.every(({ text, pattern }) => !pattern && /^[\w.@:-]+$/.test(text) && !text.startsWith("-"));
  if (!object || !IP.test(object.text) || !shows || !named || more.length > 2)
    throw new Refusal("ip may only show state: ip addr, ip link, ip route show");
  return words;
};

export const systemPrograms: ProgramTable = {
  // Without -K, which kills connections, and without options that resolve host names.
  ss: program({
    flags: "tulnpa46xseoimHO",
    long: "tcp udp listening numeric processes all ipv4 ipv6 summary",
    maxOperands: 0,
  }),
  ip: program({ read: readIp }),
  true: noOptions,
  false: noOptions,
  ":": noOptions,
  echo,
  printf: program({
    minOperands: 1,
    read: (words) => {
      if (!words[0] || words[0].pattern || words[0].text.startsWith("-")) {
        throw new Refusal("printf takes a quoted format as its first word, and no options");
      }
      // bash's built-in printf stores a count where %n says, and evaluates the target as an expression.
      if (/%[^%a-zA-Z]*n/.test(words[0].text)) throw new Refusal("printf may not use %n, which assigns a variable");
      checkWidth("printf", words[0].text);
      return words;
    },
    harmless: true,
  }),
  date: program({
    flags: "uR",
    valued: "dr",
    glued: "I",
    long: "utc universal rfc-email iso-8601? rfc-3339= date= reference= version",
    check: ({ operands, options }) => {
      for (const { name, value = "" } of options) if (name === "d" || name === "date") checkZone("date", value);
      if (operands.some(({ text, pattern }) => pattern || !text.startsWith("+")))
        throw new Refusal("date may only print the time: date +FORMAT", "write");
      for (const { text } of operands) checkWidth("date", text);
    },
  }),
  seq: program({ read: readSeq }),
  expr: program({
    read: (words) => {
      if (words.some(({ pattern }) => pattern)) throw new Refusal("expr: quote the *, or the shell expands it");
      return words;
    },
  }),
  uname: program({
    flags: "asnrvmpio",
    long: "all kernel-name nodename kernel-release kernel-version machine operating-system version",
    maxOperands: 0,
  }),
  arch: program({ maxOperands: 0 }),
  hostname: program({ flags: "s", long: "short", maxOperands: 0 }),
  whoami: program({ long: "version", maxOperands: 0 }),
  id: program({ flags: "aGgnruz", long: "group groups name real user zero version", maxOperands: 1 }),
  groups: program({ maxOperands: 1 }),
  nproc: program({ long: "all ignore= version", maxOperands: 0 }),
  uptime: program({ flags: "ps", long: "pretty since version", maxOperands: 0 }),
  free: program({
    flags: "bkmghltw",
    long: "bytes kilo mega giga kibi mebi gibi human lohi total wide si version",
    maxOperands: 0,
  }),
  lscpu: program({ flags: "aJ", glued: "ep", long: "all json extended? parse? version", maxOperands: 0 }),
  lsblk: program({
    flags: "abdfilmnpPrstSJOTz",
    valued: "oeIx",
    long: "all bytes nodeps fs ascii inverse list perms noheadings paths pairs raw scsi topology json output= output-all sort= version",
  }),
  findmnt: program({
    flags: "aADJlnruvR",
    valued: "toTSM",
    long: "all df json list noheadings raw notruncate types= output= target= source= mountpoint= submounts version",
    maxOperands: 2,
  }),
  // With any argument it mounts.
  mount: program({
    read: (words) => {
      if (words.length === 0) return words;
      throw new Refusal("mount may only list mounts: run mount without arguments, or findmnt", "write");
    },
  }),
  // Without --lookup, which resolves the names of other machines.
  who: program({ flags: "abdHlmpqrstTuw", long: "all boot count heading users version", maxOperands: 0 }),
  w: program({ flags: "hsufoi", long: "no-header short from version", maxOperands: 1 }),
  last: program({ flags: "aFiRwx", valued: "n", count: true, long: "limit= fullnames fulltimes system" }),
  vmstat: program({
    flags: "adfnstwD",
    valued: "S",
    long: "active disk stats timestamp wide unit= version",
    maxOperands: 2,
    // With a delay and no count it never ends.
    check: ({ operands: [delay, count] }) => {
      if (delay && !(/^[1-5]$/.test(delay.text) && /^[1-5]$/.test(count?.text ?? "")))
        throw new Refusal("vmstat needs a small delay and a count: vmstat 1 3");
    },
  }),
  pstree: program({
    flags: "aAcghlnpsStTuUZ",
    long: "arguments ascii show-pids show-parents numeric-sort long",
    maxOperands: 1,
  }),
  top: program({
    read: (words) => {
      if (!/^(-b -n ?[1-5]|-bn ?[1-5]|-n ?[1-5] -b)$/.test(words.map(({ text }) => text).join(" ")))
        throw new Refusal("top may only print a few snapshots: top -b -n 1");
      return words;
    },
  }),
  pgrep: program({
    flags: "afilnovwx",
    valued: "uUgGPst",
    long: "list-name list-full full newest oldest exact count",
    minOperands: 0,
    maxOperands: 1,
  }),
  which: program({ flags: "a", minOperands: 1 }),
  whereis: program({ flags: "bms", minOperands: 1 }),
  getconf: program({ flags: "a", maxOperands: 2 }),
  locale: program({ flags: "ackm", maxOperands: 1 }),
  tty: program({ flags: "s", maxOperands: 0 }),
};

// --- where a program is -------------------------------------------------------------------------------------------

/** `command -v NAME` and `type NAME` tell where a program is; they run as `which`. */
const readLookup = (words: readonly PlanWord[], option: RegExp): readonly PlanWord[] => {
  const names = words.filter(({ text }) => !option.test(text));
  if (
    names.length === 0 ||
    names.some(({ text, pattern }) => pattern || !/^[\w.+-]+$/.test(text) || text.startsWith("-"))
  ) {
    throw new Refusal("look up programs by plain names: command -v NAME");
  }
  return names;
};

export const lookupPrograms: ProgramTable = {
  command: program({
    read: (words) => {
      if (words[0]?.text !== "-v" && words[0]?.text !== "-V")
        throw new Refusal("command may only look up programs: command -v NAME");
      return readLookup(words, /^-[vV]$/);
    },
  }),
  type: program({ read: (words) => readLookup(words, /^-[apPt]$/) }),
};

/** Shell builtins and aliases, and the program that runs in their place. */
export const PROGRAM_ALIASES: Readonly<Record<string, string>> = {
  command: "which",
  type: "which",
  ":": "true",
  hd: "hexdump",
};
