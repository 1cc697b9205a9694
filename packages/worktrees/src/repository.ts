/** Which repository is this, and can work branch off from it now?
 *  Invariant: asks and changes nothing; a repository that is in the middle of something is refused with the way out.
 *  Elsewhere: how git is run (git.ts), what is taken from it (snapshot.ts). */

import { access, lstat, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { readBounded } from "@prefork/guard/internal";
import { WorktreeError } from "./errors.ts";
import { Git, type Steps } from "./git.ts";
import { mustBePlain } from "./plain-repository.ts";

export type Repository = {
  /** Runs at the top, with everything switched off that could start a program. */
  readonly git: Git;
  /** The checkout's top folder, canonical. */
  readonly top: string;
  /** Of this checkout, and of all checkouts together. */
  readonly gitDir: string;
  readonly commonDir: string;
  readonly index: string;
  /** Undefined before the first commit. */
  readonly head: string | undefined;
  /** The name of no object, as long as names are here. */
  readonly noObject: string;
  /** Contents that a filter would change, were it run: told, because those files stand as they are stored. */
  readonly filters: readonly string[];
  /** Of git: those of this repository, and those of its user that count in it. */
  readonly settings: Settings;
  readonly user: Settings;
  /** The text that the settings were read from; undefined where it names other files. */
  readonly written: string | undefined;
};

/** Keys of git's configuration, with the value that counts. */
type Settings = Readonly<Record<string, string>>;

/** Settings may name a file that git would wait for. */
const ANSWER_MS = 30_000;

const BARE = "this repository is bare: it has no files to work on; start in a checkout of it";
const NONE = "this folder is in no git repository; worktrees need one (git init)";

/** `environment`: of the user, whose own settings of git count. */
export type RepositoryOptions = {
  readonly step?: Steps;
  readonly environment?: Readonly<Record<string, string | undefined>>; // default: the process's
  /** The same repository as it was read before: what cannot have changed since is not asked again. */
  readonly before?: Pick<Repository, "user" | "settings" | "written">;
};

export const openRepository = async (cwd: string, options: RepositoryOptions = {}): Promise<Repository> => {
  const plain = Git.in(cwd, options.step);
  const asked = await plain.ask([...PLACES, "--is-bare-repository", "--show-object-format", "HEAD^{commit}"], {
    may: [0, 128], // there may be no commit yet
    limitMs: ANSWER_MS,
  });
  const [top = "", gitDir = "", commonDir = "", index = "", bare, format, head = ""] = asked.out.toString().split("\n");
  if (bare !== "false") throw new WorktreeError("no-repository", refusalOf(asked.complaint, bare === "true"));
  if (top !== (await topAbove(await realpath(cwd))))
    throw new WorktreeError("not-ready", "the repository says that its files lie elsewhere (core.worktree)");
  await mustBePlain({ gitDir, commonDir, index });
  const written = await writtenIn([join(commonDir, "config"), join(gitDir, "config.worktree")]);
  const { before } = options;
  const isKnown = before !== undefined && written !== undefined && written === before.written;
  const settings = isKnown ? before.settings : await settingsOf(plain);
  const user = before?.user ?? (await userSettings(plain, options));
  return {
    git: plain.configured({ ...countingIn(settings, user), ...switchedOff(settings) }).at(top),
    ...{ top, gitDir, commonDir, index, settings, user, written },
    head: /^[0-9a-f]{40,64}$/.test(head) ? head : undefined,
    noObject: "0".repeat(format === "sha256" ? 64 : 40),
    filters: Object.keys(settings).flatMap((key) => /^filter\.(.*)\.(?:clean|smudge|process)$/s.exec(key)?.[1] ?? []),
  };
};

/** Undefined where they include other files, or are no plain files. */
const writtenIn = async (files: readonly string[]): Promise<string | undefined> => {
  const texts = await Promise.all(files.map(plainText));
  return texts.some((text) => text === undefined || /include/i.test(text)) ? undefined : texts.join("\0");
};

const MOST_SETTINGS_BYTES = 4_000_000;

const plainText = async (file: string): Promise<string | undefined> => {
  const facts = await lstat(file).catch(() => undefined);
  if (facts === undefined) return "";
  if (!facts.isFile()) return undefined;
  return (await readBounded(file, MOST_SETTINGS_BYTES))?.toString("latin1"); // else git says what is wrong with it
};

/** Where git begins to look, whatever a repository says of itself. */
const topAbove = async (folder: string): Promise<string | undefined> => {
  const isTop = await lstat(join(folder, ".git")).then(
    () => true,
    () => false,
  );
  if (isTop) return folder;
  return folder === "/" ? undefined : topAbove(dirname(folder));
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

const refusalOf = (complaint: string, isBare: boolean): string => {
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

/** Of an answer with -z, as text: settings are handed to git again in its environment, which is text. */
const textsOf = (out: Buffer): readonly string[] => out.toString().split("\0").slice(0, -1);

/** Do these settings say other things in another checkout, or on another branch? Files may be included under conditions,
 *  and single checkouts have settings of their own where the repository says so. */
export const dependOnCheckout = (settings: Settings): boolean =>
  Object.keys(settings).some((key) => key === "extensions.worktreeconfig" || /^include(?:if)?\./.test(key));

/** Stands for bytes that are no text. */
const NO_TEXT = "\ufffd";

/** An empty command is no filter, and a driver that fails leaves a conflict. What cannot be named in the environment as it
 *  is named in the file would stay as it is. */
export const switchedOff = (settings: Settings): Settings => {
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
      // Later gits run hooks that settings name, wherever the folder of hooks is.
      const hook = /^(hook\..*)\.[^.]*$/s.exec(key)?.[1];
      if (hook !== undefined) return [[`${hook}.enabled`, "false"]];
      return /^merge\..*\.driver$/s.test(key) ? [[key, "false"]] : [];
    }),
  );

/** How lines end is for the repository to say, where it does. */
export const countingIn = (settings: Settings, user: Settings): Settings =>
  Object.fromEntries(
    Object.entries(user).filter(([key]) => !/^core\.(autocrlf|eol|safecrlf)$/.test(key) || !(key in settings)),
  );

/** What a person has said for all repositories about line ends and about files to leave out: none of it starts anything. */
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
    .ask(words, { may: [0, 1, 128], limitMs: ANSWER_MS });
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

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const UNDER_WAY: readonly (readonly [file: string, what: string, out: string])[] = [
  ["rebase-merge", "a rebase", "git rebase --continue or --abort"],
  ["rebase-apply", "a rebase or git am", "git rebase --continue or --abort (git am --abort)"],
  ["MERGE_HEAD", "a merge", "git commit or git merge --abort"],
  ["CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --continue or --abort"],
  ["REVERT_HEAD", "a revert", "git revert --continue or --abort"],
];

/** Throws while something is under way in the checkout that a copy could not go on with. Conflicts are seen when its files
 *  are read. */
export const mustBeReady = async ({ gitDir }: Repository): Promise<void> => {
  for (const [file, what, out] of UNDER_WAY)
    if (await isThere(join(gitDir, file)))
      throw new WorktreeError("not-ready", `${what} is under way in this checkout; end it first (${out})`);
};
