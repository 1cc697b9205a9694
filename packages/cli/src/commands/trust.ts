/** `prefork trust`: which folders may change how prefork behaves in them?
 *  Invariant: everything that becomes trusted is shown first, and only those exact bytes are trusted; an allow rule of the
 *  folder applies only if the user accepted that rule.
 *  Elsewhere: what trust covers and where it is stored (@prefork/guard). */

import { homedir } from "node:os";
import { resolve } from "node:path";
import {
  type AcceptedRule,
  configurationOf,
  grant,
  type ProjectRules,
  projectRules,
  readTrust,
  revoke,
  stateFolder,
  trustOf,
} from "@prefork/guard";
import type { Command } from "commander";
import { collect, type Io, newCommand, UsageError } from "../io.ts";
import { visible } from "../visible.ts";

type TrustFlags = {
  readonly list?: true;
  readonly revoke?: true;
  readonly show?: true;
  readonly accept?: readonly string[];
  readonly acceptAll?: true;
  readonly acceptNone?: true;
};

export const trustCommand = (io: Io): Command =>
  newCommand("trust", io)
    .description("trust a folder: use its settings, skills, extensions and tool servers in their present form")
    .argument("[dir]", "the folder", ".")
    .option("--show", "show what would be trusted, and change nothing")
    .option("--accept <rule>", "accept this allow rule of the folder (repeatable)", collect)
    .option("--accept-all", "accept every allow rule of the folder")
    .option("--accept-none", "accept no allow rule, and do not ask")
    .option("--revoke", "stop trusting the folder")
    .option("--list", "list trusted folders")
    .action(async (dir: string, flags: TrustFlags) => {
      const home = io.env.HOME || homedir();
      const state = stateFolder(io.env, home);
      const folder = resolve(dir);
      if (flags.list) return listTrust(state, io);
      if (flags.revoke) {
        const revoked = await revoke(state, folder);
        if (!revoked.ok) throw new Error(`trust cannot be revoked in ${state}: ${revoked.reason}`);
        io.out(`${folder} is no longer trusted.\n`);
        return;
      }
      await trust({ state, folder, home, flags }, io);
    });

const listTrust = async (state: string, io: Io): Promise<void> => {
  const read = await readTrust(state);
  if (!read.ok) throw new Error(`trust cannot be read from ${state}: ${read.reason}`);
  for (const { folder } of read.grants) io.out(`${folder}\n`);
  if (read.grants.length === 0) io.out("No folder is trusted.\n");
};

type TrustRequest = {
  readonly state: string;
  readonly folder: string;
  readonly home: string;
  readonly flags: TrustFlags;
};

const trust = async ({ state, folder, home, flags }: TrustRequest, io: Io): Promise<void> => {
  const read = await configurationOf(folder);
  if (!read.ok) throw new UsageError(read.reason);
  const { entries, fingerprint } = read.configuration;
  const names = Object.keys(entries);
  io.out(
    names.length === 0
      ? `${folder} has no settings, skills, extensions or tool servers yet.\n`
      : `${folder}: ${visible(names.join(", "))}\n`,
  );
  const rules = await projectRules(folder, home);
  showRules(rules, io);
  showUnused(names, io);
  if (names.some((name) => name.startsWith(".prefork/extensions/")))
    io.out("  .prefork/extensions contains code that runs inside prefork, with all your rights\n");
  if (names.includes(".prefork/extensions"))
    io.out("  .prefork/extensions is a symbolic link, or behind one, so nothing in it runs\n");
  if (flags.show) {
    const now = await trustOf(state, folder);
    io.out(`It is ${now.kind === "trusted" ? "" : "not "}trusted.\n`);
    for (const { file, rule } of now.kind === "trusted" ? (now.accepted ?? []) : [])
      io.out(`Accepted: ${visible(rule)} (${file})\n`);
    return;
  }
  const accepted = await acceptedOf(rules, flags, io);
  const granted = await grant(state, folder, { fingerprint, accepted });
  if (!granted.ok) throw new Error(`trust cannot be stored in ${state}: ${granted.reason}`);
  io.out("Trusted in its present form. If it changes, trust it again.\n");
};

const showRules = (rules: readonly ProjectRules[], io: Io): void => {
  for (const { file, ask, deny, allow, notices } of rules) {
    for (const rule of deny) io.out(`  ${file} denies ${visible(rule)}\n`);
    for (const rule of ask) io.out(`  ${file} asks before ${visible(rule)}\n`);
    for (const rule of allow) io.out(`  ${file} would allow ${visible(rule)}\n`);
    for (const notice of notices) io.out(`  ${visible(notice)}\n`);
  }
};

/** Trust covers these, because other programs use them; prefork does not. */
const NOT_USED = /^(?:\.(?:prefork|claude)\/(?:agents|hooks|commands)|\.envrc)(?=\/|$)/;

const showUnused = (names: readonly string[], io: Io): void => {
  const unused = [...new Set(names.flatMap((name) => NOT_USED.exec(name)?.[0] ?? []))];
  if (unused.length > 0) io.out(`  not used: ${unused.join(", ")}\n`);
};

const acceptedOf = async (
  rules: readonly ProjectRules[],
  flags: TrustFlags,
  io: Io,
): Promise<readonly AcceptedRule[]> => {
  const offered = rules.flatMap(({ file, allow }) => allow.map((rule): AcceptedRule => ({ file, rule })));
  const { accept, acceptAll, acceptNone } = flags;
  if ([accept, acceptAll, acceptNone].filter((flag) => flag !== undefined).length > 1)
    throw new UsageError("--accept, --accept-all and --accept-none exclude each other");
  const missing = accept?.find((rule) => !offered.some((one) => one.rule === rule));
  if (missing !== undefined)
    throw new UsageError(`--accept ${missing}: the folder has no such rule (prefork trust --show lists them)`);
  if (acceptAll) return offered;
  if (accept) return offered.filter(({ rule }) => accept.includes(rule));
  if (acceptNone || offered.length === 0) return [];
  if (io.inputIsTerminal && io.isTerminal) return askAboutEach(offered, io);
  io.out("No allow rule was accepted, because there is no terminal to ask on (use --accept or --accept-all).\n");
  return [];
};

/** Only a plain yes counts as yes. */
const askAboutEach = async (offered: readonly AcceptedRule[], io: Io): Promise<readonly AcceptedRule[]> => {
  const answers = io.input()[Symbol.asyncIterator]();
  const accepted: AcceptedRule[] = [];
  for (const one of offered) {
    io.out(`Allow ${visible(one.rule)} without asking (${one.file})? [y/N] `);
    const { value, done } = await answers.next();
    if (/^\s*y(?:es)?\s*$/i.test(done ? "" : value)) accepted.push(one);
  }
  await answers.return?.();
  return accepted;
};
