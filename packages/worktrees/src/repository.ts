/** Which repository is this, and can worktrees be created from it now?
 *  Invariant: read-only; during a merge, a rebase or the like it refuses, with the command that helps.
 *  Elsewhere: how git is run (git.ts), reading its state (snapshot.ts). */

import { access, lstat, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { readBounded } from "@prefork/guard/internal";
import { WorktreeError } from "./errors.ts";
import { Git, type StepCallback } from "./git.ts";
import { mustBelongTo, mustBePlain } from "./plain-repository.ts";

export type Repository = {
  /** Runs at the top folder, with everything switched off that could start a program. */
  readonly git: Git;
  /** The checkout's top folder, canonical. */
  readonly top: string;
  /** Of this checkout, and of all checkouts together. */
  readonly gitDir: string;
  readonly commonDir: string;
  readonly index: string;
  /** Undefined before the first commit. */
  readonly head: string | undefined;
  /** The all-zero object name, as long as object names in this repository. */
  readonly noObject: string;
  /** Filters that are switched off, so that their files appear as git stores them. */
  readonly filters: readonly string[];
  /** Git settings of this repository, and those of its user that apply to it. */
  readonly settings: Settings;
  readonly user: Settings;
  /** The text of the configuration files; undefined if it includes other files. */
  readonly configText: string | undefined;
};

/** Keys of git's configuration, with the effective value. */
type Settings = Readonly<Record<string, string>>;

/** Settings may name a file that git would block on. */
const ANSWER_MS = 30_000;

const BARE = "this repository is bare and has no files; start in a checkout of it";
const NONE = "this folder is not in a git repository, which worktrees need (git init)";

/** `environment`: the user's, whose own git settings apply. */
export type RepositoryOptions = {
  readonly step?: StepCallback;
  readonly environment?: Readonly<Record<string, string | undefined>>; // default: the process's
  /** The same repository as read before: what cannot have changed is not read again. */
  readonly before?: Pick<Repository, "user" | "settings" | "configText">;
  /** Ends every git call, also those of the repository's `git`. */
  readonly signal?: AbortSignal | undefined;
};

export const openRepository = async (cwd: string, options: RepositoryOptions = {}): Promise<Repository> => {
  const plain = Git.in(cwd, options.step).until(options.signal);
  const asked = await plain.ask([...PLACES, "--is-bare-repository", "--show-object-format", "HEAD^{commit}"], {
    okCodes: [0, 128], // there may be no commit yet
    limitMs: ANSWER_MS,
  });
  const [top = "", gitDir = "", commonDir = "", index = "", bare, format, head = ""] = asked.out.toString().split("\n");
  if (bare !== "false") throw new WorktreeError("no-repository", refusalText(asked.errorText, bare === "true"));
  if (top !== (await findTop(await realpath(cwd))))
    throw new WorktreeError("not-ready", "the repository sets core.worktree, so its files are elsewhere");
  await mustBePlain({ gitDir, commonDir, index });
  const written = await readConfigText([join(commonDir, "config"), join(gitDir, "config.worktree")]);
  const { before } = options;
  const isKnown = before !== undefined && written !== undefined && written === before.configText;
  const settings = isKnown ? before.settings : await settingsOf(plain);
  await mustBelongTo({ top, gitDir, commonDir, worktree: settings["core.worktree"] });
  const user = before?.user ?? (await userSettings(plain, options));
  return {
    git: plain.configured({ ...effectiveSettings(settings, user), ...disabledPrograms(settings) }).at(top),
    ...{ top, gitDir, commonDir, index, settings, user, configText: written },
    head: /^[0-9a-f]{40,64}$/.test(head) ? head : undefined,
    noObject: "0".repeat(format === "sha256" ? 64 : 40),
    filters: Object.keys(settings).flatMap((key) => /^filter\.(.*)\.(?:clean|smudge|process)$/s.exec(key)?.[1] ?? []),
  };
};

/** Undefined if they include other files, or are not regular files. */
const readConfigText = async (files: readonly string[]): Promise<string | undefined> => {
  const texts = await Promise.all(files.map(plainText));
  return texts.some((text) => text === undefined || /include/i.test(text)) ? undefined : texts.join("\0");
};

const MOST_SETTINGS_BYTES = 4_000_000;

const plainText = async (file: string): Promise<string | undefined> => {
  const facts = await lstat(file).catch(() => undefined);
  if (facts === undefined) return "";
  if (!facts.isFile()) return undefined;
  return (await readBounded(file, MOST_SETTINGS_BYTES))?.toString("latin1"); // otherwise git reports what is wrong
};

/** The top folder as git finds it, whatever the repository's settings say. */
const findTop = async (folder: string): Promise<string | undefined> => {
  const isTop = await lstat(join(folder, ".git")).then(
    () => true,
    () => false,
  );
  if (isTop) return folder;
  return folder === "/" ? undefined : findTop(dirname(folder));
};

const PLACES: readonly string[] = [
  "rev-parse",
  "--path-format=absolute",
  "--show-toplevel",
  "--git-dir",
  "--git-common-dir",
  "--git-path",
  "index",
];

const refusalText = (complaint: string, isBare: boolean): string => {
  if (isBare || /bare repository|must be run in a work tree/.test(complaint)) return BARE;
  if (/not a git repository/.test(complaint)) return NONE;
  return `git cannot read this repository: ${complaint.trim().split("\n")[0]}`;
};

export const settingsOf = async (git: Git): Promise<Settings> => {
  const listed = await git.out(["config", "--list", "-z"], { limitMs: ANSWER_MS });
  return Object.fromEntries(
    textsOf(listed).map((field) => {
      const [key = "", value = ""] = field.split(/\n(.*)/s);
      return [key, value];
    }),
  );
};

/** Fields of a git output with -z, as text: settings are passed back to git in its environment, which is text. */
const textsOf = (out: Buffer): readonly string[] => out.toString().split("\0").slice(0, -1);

/** Could these settings differ in another checkout, or on another branch? Files can be included conditionally, and a
 *  checkout can have its own settings. */
export const dependOnCheckout = (settings: Settings): boolean =>
  Object.keys(settings).some((key) => key === "extensions.worktreeconfig" || /^include(?:if)?\./.test(key));

/** Replaces bytes that are not valid text. */
const NO_TEXT = "\ufffd";

/** An empty command disables a filter, and a merge driver that fails leaves a conflict. A name that cannot be written in
 *  the environment could not be disabled, so it is refused. */
export const disabledPrograms = (settings: Settings): Settings => {
  const off = offIn(settings);
  const unnamed = Object.keys(off).find((key) => key.includes(NO_TEXT));
  if (unnamed !== undefined)
    throw new WorktreeError("not-ready", `the repository configures ${unnamed}, which cannot be switched off by name`);
  return off;
};

const offIn = (settings: Settings): Settings =>
  Object.fromEntries(
    Object.keys(settings).flatMap((key): readonly (readonly [string, string])[] => {
      if (/^filter\..*\.(clean|smudge|process)$/s.test(key)) return [[key, ""]];
      if (/^filter\..*\.required$/s.test(key)) return [[key, "false"]];
      // Newer versions of git run hooks that settings name, in addition to those in the hooks folder.
      const hook = /^(hook\..*)\.[^.]*$/s.exec(key)?.[1];
      if (hook !== undefined) return [[`${hook}.enabled`, "false"]];
      return /^merge\..*\.driver$/s.test(key) ? [[key, "false"]] : [];
    }),
  );

/** The repository's own setting for line endings overrides the user's. */
export const effectiveSettings = (settings: Settings, user: Settings): Settings =>
  Object.fromEntries(
    Object.entries(user).filter(([key]) => !/^core\.(autocrlf|eol|safecrlf)$/.test(key) || !(key in settings)),
  );

/** The user's global settings for line endings and ignored files. None of them starts a program. */
const USERS = /^core\.(autocrlf|eol|safecrlf|excludesfile|attributesfile)$/;

const userSettings = async (git: Git, { environment = process.env }: RepositoryOptions): Promise<Settings> => {
  const { HOME = homedir(), XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL, GIT_CONFIG_SYSTEM, GIT_CONFIG_NOSYSTEM } = environment;
  const own = {
    HOME,
    XDG_CONFIG_HOME,
    GIT_CONFIG_GLOBAL,
    GIT_CONFIG_SYSTEM,
    GIT_CONFIG_NOSYSTEM,
    GIT_DIR: "/dev/null",
  };
  const words = ["config", "--includes", "--list", "--show-scope", "-z"];
  const asked = await git
    .at("/")
    .in(own)
    .ask(words, { okCodes: [0, 1, 128], limitMs: ANSWER_MS });
  const fields = textsOf(asked.out);
  const found: Record<string, string> = {};
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [key = "", value = ""] = (fields[at + 1] ?? "").split(/\n(.*)/s);
    if (fields[at] !== "command" && USERS.test(key)) found[key] = value.replace(/^~(?=\/)/, HOME);
  }
  const folder = join(XDG_CONFIG_HOME ?? join(HOME, ".config"), "git");
  return {
    "core.excludesfile": join(folder, "ignore"),
    "core.attributesfile": join(folder, "attributes"),
    ...found,
  };
};

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const IN_PROGRESS: readonly (readonly [file: string, what: string, command: string])[] = [
  ["rebase-merge", "a rebase", "git rebase --continue or --abort"],
  ["rebase-apply", "a rebase or git am", "git rebase --continue or --abort (git am --abort)"],
  ["MERGE_HEAD", "a merge", "git commit or git merge --abort"],
  ["CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --continue or --abort"],
  ["REVERT_HEAD", "a revert", "git revert --continue or --abort"],
];

/** Throws during a merge, a rebase or the like, which a worktree could not continue. Conflicts are found when the files
 *  are read. */
export const requireReady = async ({ gitDir }: Repository): Promise<void> => {
  for (const [file, what, command] of IN_PROGRESS)
    if (await exists(join(gitDir, file)))
      throw new WorktreeError("not-ready", `${what} is in progress in this checkout; finish it first (${command})`);
};
