/** Which folders does the user trust, with which executable configuration?
 *  Invariant: the answer is stored outside every workspace, keyed by real path, and covers hashes: changed bytes ask again. A folder
 *  that nobody trusted is not read at all. Restrictions from trusted settings apply until trust is renewed or revoked, whatever
 *  happens to the files.
 *  Elsewhere: what is hashed (configuration.ts), work trees (work-tree.ts), the folder it is kept in (../files). */

import { createHash } from "node:crypto";
import { isAbsolute, join } from "node:path";
import * as z from "zod";
import { inspectPrivateFolder, openPrivateFolder, openRoot, type Root, RootError } from "../files/index.ts";
import type { Refused } from "../paths/index.ts";
import {
  type Configuration,
  changedNames,
  entryOf,
  fingerprintOf,
  isIncluded,
  readConfiguration,
} from "./configuration.ts";
import { type KeptSettings, keptSettings } from "./kept-settings.ts";
import { mainRepositoryOf } from "./work-tree.ts";

export type Trust =
  /** `through`: the folder that was trusted; for a work tree, it differs from `folder`. */
  | {
      readonly kind: "trusted";
      readonly folder: string;
      readonly through: string;
      /** The trusted entries that exist, by name. Code that reads a file later compares it (isEntryOf). */
      readonly entries: Grant["entries"];
      /** Absent if there are none. */
      readonly accepted?: readonly AcceptedRule[];
    }
  | { readonly kind: "unknown"; readonly folder: string }
  /** `kept`: restrictions from the settings as they were trusted; absent if there are none. */
  | {
      readonly kind: "changed";
      readonly folder: string;
      readonly changed: readonly string[];
      readonly kept?: readonly KeptSettings[];
    }
  /** Not trusted, and the user cannot be asked until this is repaired. */
  | {
      readonly kind: "refused";
      readonly folder: string;
      readonly reason: string;
      readonly kept?: readonly KeptSettings[];
    };

/** An allow rule of the project that the user accepted when trusting it. */
export type AcceptedRule = {
  /** Its settings file, relative to the folder. */
  readonly file: string;
  readonly rule: string;
};

export type Grant = {
  readonly folder: string;
  readonly entries: Readonly<Record<string, string>>;
  readonly accepted?: readonly AcceptedRule[];
  /** Restrictions from its settings, in case the files change. */
  readonly kept?: readonly KeptSettings[];
};

/** What the user agreed to. */
export type Agreement = { readonly fingerprint: string; readonly accepted?: readonly AcceptedRule[] };

const isTexts = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((text) => typeof text === "string");

const grantSchema = z.strictObject({
  version: z.literal(1),
  folder: z.string().min(1),
  entries: z.custom<Grant["entries"]>(isTexts), // z.record drops `__proto__`
  accepted: z.array(z.strictObject({ file: z.string(), rule: z.string() })).exactOptional(),
  kept: z.array(z.strictObject({ file: z.string(), text: z.string() })).exactOptional(),
});

/** `$XDG_STATE_HOME/prefork`, or `.local/state/prefork` in the home folder. A relative value is ignored. */
export const stateFolder = (env: Readonly<Record<string, string | undefined>>, home: string): string => {
  const { XDG_STATE_HOME: base } = env;
  return join(base !== undefined && isAbsolute(base) ? base : join(home, ".local", "state"), "prefork");
};

/** Where files in the middle of a write are noted, so that those of a dead process are removed. */
export const draftsIn = (state: string): string => join(state, "drafts");

const refuse = (reason: string): Refused => ({ ok: false, reason });

const keyOf = (folder: string): string => `${createHash("sha256").update(folder).digest("hex")}.json`;

const self = (): number => process.getuid?.() ?? -1;

const parseGrant = (text: string): Grant | undefined => {
  try {
    const parsed = grantSchema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
};

/** A record is used only if nobody else could have written it. */
const readGrant = async (
  store: Root,
  name: string,
): Promise<{ readonly ok: true; readonly grant: Grant | undefined } | Refused> => {
  const path = join(store.path, name);
  const looked = await store.look(path);
  if (!looked.ok) return refuse(`${path}: ${looked.reason}`);
  if (looked.facts === undefined) return { ok: true, grant: undefined };
  const read = await store.read(path, { maxBytes: 4 * 1024 * 1024 });
  if (!read.ok) return refuse(`${path}: ${read.reason}`);
  const { owner, mode, links } = read.facts;
  if (owner !== self()) return refuse(`${path} belongs to another user (${owner})`);
  if (mode & 0o022) return refuse(`${path} can be changed by others (mode ${mode.toString(8).padStart(4, "0")})`);
  if (links !== 1) return refuse(`${path} has other names (hard links)`);
  const grant = parseGrant(read.bytes.toString("utf8"));
  if (grant === undefined || keyOf(grant.folder) !== name)
    return refuse(`${path} is damaged; remove it to be asked again`);
  return { ok: true, grant };
};

/** Opens the store and the folder, and closes both. If one cannot be opened, the result is a refusal. */
const withStore = async <T>(state: string, use: (store: Root) => Promise<T>): Promise<T | Refused> => {
  const above = await openPrivateFolder(state);
  if (!above.ok) return above;
  await above.root.close();
  const opened = await openPrivateFolder(join(above.root.path, "trust"), { drafts: draftsIn(above.root.path) });
  if (!opened.ok) return opened;
  await using store = opened.root;
  return await use(store);
};

const withFolder = async <T>(folder: string, use: (root: Root) => Promise<T>): Promise<T | Refused> => {
  try {
    await using root = await openRoot(folder);
    return await use(root);
  } catch (error) {
    if (error instanceof RootError) return refuse(error.message);
    throw error;
  }
};

/** What the user is asked to trust: read and hashed, not interpreted. */
export const configurationOf = (
  folder: string,
): Promise<{ readonly ok: true; readonly configuration: Configuration } | Refused> =>
  withFolder(folder, readConfiguration);

/** Every folder that was ever trusted and not revoked. */
export const readTrust = (state: string): Promise<{ readonly ok: true; readonly grants: readonly Grant[] } | Refused> =>
  withStore(state, async (store) => {
    const listed = await store.list(store.path);
    if (!listed.ok) return listed;
    const grants: Grant[] = [];
    for (const { name } of listed.entries.filter(({ name }) => /^[0-9a-f]{64}\.json$/.test(name))) {
      const read = await readGrant(store, name);
      if (!read.ok) return read;
      if (read.grant !== undefined) grants.push(read.grant);
    }
    return { ok: true, grants: grants.sort((a, b) => (a.folder < b.folder ? -1 : 1)) };
  });

/** A work tree has its own files, perhaps of another branch: each must be a trusted one. What is kept with the main work tree is
 *  compared there, except for settings of this work tree alone, which may repeat those of the main one. */
const inheritedBy = (entries: Readonly<Record<string, string>>, granted: Grant, main: string): readonly string[] =>
  Object.keys(entries).filter((name) => {
    if (isGits(name)) return false;
    if (!name.startsWith(`${main}/`)) return entryOf(entries, name) !== entryOf(granted.entries, name);
    if (!/\/config\.worktree$/.test(name)) return false;
    return hashIn(entryOf(entries, name)) !== hashIn(granted.entries[".git/config.worktree"]);
  });

/** Entries of git's own folder. `.githooks` belongs to the project. */
const isGits = (name: string): boolean => name === ".git" || name.startsWith(".git/");

const hashIn = (entry: string | undefined): string | undefined => entry?.split(" ").at(-1);

/** git's settings and hooks apply in every work tree, and are kept with the main one. */
const sharedChanges = async (main: string, granted: Grant): Promise<readonly string[]> => {
  const now = await withFolder(main, readConfiguration);
  if (!now.ok) return [".git"];
  const { entries } = now.configuration;
  return changedNames(granted.entries, entries).filter(
    (name) => isGits(name) || isIncluded(entryOf(granted.entries, name)) || isIncluded(entryOf(entries, name)),
  );
};

const judge = async (store: Root, root: Root): Promise<Trust> => {
  const folder = root.path;
  const own = await readGrant(store, keyOf(folder));
  if (!own.ok) return { kind: "refused", folder, reason: own.reason };
  const main = own.grant === undefined ? await mainRepositoryOf(root) : undefined;
  const read = main === undefined ? own : await readGrant(store, keyOf(main));
  if (!read.ok) return { kind: "refused", folder, reason: read.reason };
  const { grant } = read;
  if (grant === undefined) return { kind: "unknown", folder };
  const now = await readConfiguration(root);
  const { accepted } = grant;
  const kept = grant.kept === undefined ? {} : { kept: grant.kept };
  if (!now.ok) return { kind: "refused", folder, reason: now.reason, ...kept };
  const { entries } = now.configuration;
  const changed =
    main === undefined
      ? changedNames(grant.entries, entries)
      : [...(await sharedChanges(main, grant)), ...inheritedBy(entries, grant, main)];
  if (changed.length > 0) return { kind: "changed", folder, changed, ...kept };
  const trusted = { kind: "trusted", folder, through: grant.folder, entries } as const;
  return { ...trusted, ...(accepted === undefined ? {} : { accepted }) };
};

/** Whether this folder is trusted in its current state. */
export const trustOf = async (state: string, folder: string): Promise<Trust> => {
  const found = await inspectPrivateFolder(join(state, "trust"));
  const isEmpty = found.ok && found.mode === undefined; // inspecting creates no folders
  const answer = isEmpty
    ? await withFolder(folder, async ({ path }): Promise<Trust> => ({ kind: "unknown", folder: path }))
    : await withStore(state, (store) => withFolder(folder, (root) => judge(store, root)));
  return "kind" in answer ? answer : { kind: "refused", folder, reason: answer.reason };
};

/** Trusts a folder with the configuration that was shown; refused if the bytes have changed since. */
export const grant = (
  state: string,
  folder: string,
  agreed: string | Agreement,
): Promise<{ readonly ok: true } | Refused> => {
  const { fingerprint, accepted = [] } = typeof agreed === "string" ? { fingerprint: agreed } : agreed;
  return withStore(state, (store) =>
    withFolder(folder, async (root) => {
      const now = await readConfiguration(root);
      if (!now.ok) return now;
      const { entries } = now.configuration;
      if (fingerprintOf(entries) !== fingerprint)
        return refuse("the configuration was changed since it was shown; look again");
      const kept = await keptSettings(root, entries);
      const record = {
        ...{ version: 1, folder: root.path, entries },
        ...(accepted.length === 0 ? {} : { accepted }),
        ...(kept.length === 0 ? {} : { kept }),
      };
      const written = await store.write(join(store.path, keyOf(root.path)), `${JSON.stringify(record)}\n`);
      return written.ok ? ({ ok: true } as const) : written;
    }),
  );
};

/** Forgets a folder. A folder that was not trusted or no longer exists is not an error. */
export const revoke = (state: string, folder: string): Promise<{ readonly ok: true } | Refused> =>
  withStore(state, async (store) => {
    const real = await withFolder(folder, async (root) => ({ ok: true as const, path: root.path }));
    const path = join(store.path, keyOf(real.ok ? real.path : folder));
    const looked = await store.look(path);
    if (!looked.ok) return looked;
    return looked.facts === undefined ? ({ ok: true } as const) : store.remove(path);
  });
