/** `prefork trust`: which folders may change how we behave here?
 *  Invariant: what is trusted is shown before, and only those bytes are trusted.
 *  Elsewhere: what trust covers and where it is kept (@prefork/runtime). */

import { homedir } from "node:os";
import { resolve } from "node:path";
import { configurationOf, grant, readTrust, revoke, stateFolder, trustOf } from "@prefork/runtime";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";

type TrustFlags = { readonly list?: true; readonly revoke?: true; readonly show?: true };

export const trustCommand = (io: Io): Command =>
  newCommand("trust", io)
    .description("trust a folder: use its settings, hooks, tool servers and agents as they are now")
    .argument("[dir]", "the folder", ".")
    .option("--show", "say what would be trusted, and change nothing")
    .option("--revoke", "trust it no longer")
    .option("--list", "list trusted folders")
    .action(async (dir: string, flags: TrustFlags) => {
      const state = stateFolder(io.env, io.env.HOME || homedir());
      const folder = resolve(dir);
      if (flags.list) return listTrust(state, io);
      if (flags.revoke) {
        const revoked = await revoke(state, folder);
        if (!revoked.ok) throw new Error(revoked.reason);
        io.out(`${folder} is not trusted.\n`);
        return;
      }
      await trust(state, folder, { show: flags.show === true, io });
    });

const listTrust = async (state: string, io: Io): Promise<void> => {
  const read = await readTrust(state);
  if (!read.ok) throw new Error(read.reason);
  for (const { folder } of read.grants) io.out(`${folder}\n`);
  if (read.grants.length === 0) io.out("No folder is trusted.\n");
};

const trust = async (
  state: string,
  folder: string,
  { show, io }: { readonly show: boolean; readonly io: Io },
): Promise<void> => {
  const read = await configurationOf(folder);
  if (!read.ok) throw new UsageError(read.reason);
  const { entries, fingerprint } = read.configuration;
  const names = Object.keys(entries);
  io.out(
    names.length === 0
      ? `${folder} has nothing yet that could change how we behave.\n`
      : `${folder}: ${names.join(", ")}\n`,
  );
  if (show) {
    io.out(`It is ${(await trustOf(state, folder)).kind === "trusted" ? "" : "not "}trusted.\n`);
    return;
  }
  const granted = await grant(state, folder, fingerprint);
  if (!granted.ok) throw new Error(granted.reason);
  io.out("Trusted as it is now; what changes later is asked about again.\n");
};
