/** What does a fork's worktree cost, compared with plain `git worktree add` and a full clone?
 *  Invariant: all three create the same number of copies of the same repository, all at once, in every round; ours include
 *  uncommitted files, the others cannot. Everything is removed between rounds, unmeasured.
 *  Elsewhere: the repository (repository.ts), how to read the table (../README.md). */

import { readFileSync } from "node:fs";
import { appendFile, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { Worktrees } from "@prefork/worktrees";
import { cpuMicros, type Extent, median } from "../measure.ts";
import { makeScratch } from "../scratch.ts";
import type { Finding } from "../table.ts";
import { diskOf, fileName, git, makeRepository } from "./repository.ts";

type Size = { readonly files: number; readonly copies: number; readonly rounds: number };

const FULL: Size = { files: 5_000, copies: 20, rounds: 2 };
const QUICK: Size = { files: 300, copies: 4, rounds: 2 };
const QUICK_ROUNDS = 5;

const CHECK = "git diff --quiet HEAD -- package.json";

type Place = { readonly repository: string; readonly folder: string; readonly state: string };

/** Creates copies in an empty folder. */
type Maker = {
  readonly name: "ours" | "plain" | "clone";
  readonly make: (place: Place, copies: number) => Promise<void>;
};

const each = (copies: number, act: (index: number) => Promise<unknown>): Promise<unknown> =>
  Promise.all(Array.from({ length: copies }, (_, index) => act(index)));

const MAKERS: readonly Maker[] = [
  {
    name: "ours",
    make: async ({ repository, folder, state }, copies) => {
      const worktrees = await Worktrees.open({ cwd: repository, state });
      const snapshot = await worktrees.snapshot();
      await each(copies, (index) => worktrees.create({ task: `t${index}`, label: "copy", snapshot, folder }));
    },
  },
  {
    name: "plain",
    make: async ({ repository, folder }, copies) => {
      await each(copies, (index) => addPlain(repository, `plain-${index}`, join(folder, `t${index}`)));
    },
  },
  {
    name: "clone",
    make: async ({ repository, folder }, copies) => {
      await each(copies, (index) => git(folder, "clone", "-q", "--no-hardlinks", repository, `t${index}`));
    },
  },
];

/** In parallel, git fails on a worktree that another git is just creating, and has to retry. */
const addPlain = async (repository: string, branch: string, path: string): Promise<void> => {
  for (;;) {
    const failed = await git(repository, "worktree", "add", "-q", "-B", branch, path, "HEAD").then(
      () => undefined,
      (error: Error) => error,
    );
    if (!failed) return;
    if (!/commondir/.test(failed.message)) throw failed;
  }
};

type Sample = { readonly ms: number; readonly cpuMs: number; readonly kib: number };

const TICK_MS = 10;

/** CPU of this process and of all processes that it has waited for. */
const cpuMs = (): number => {
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return cpuMicros() / 1_000 + (Number(fields[13]) + Number(fields[14])) * TICK_MS;
};

export const measureWorktree = async (extent: Extent, report: (step: string) => void): Promise<readonly Finding[]> => {
  const size = extent.rounds <= QUICK_ROUNDS ? QUICK : FULL;
  await using scratch = await makeScratch();
  report(`a repository of ${size.files} files`);
  const repository = join(scratch.path, "repository");
  await mkdir(repository);
  await makeRepository(repository, size.files);
  const samples = new Map<Maker["name"], Sample[]>();
  for (let round = 0; round < size.rounds; round += 1) {
    const isLast = round === size.rounds - 1;
    for (const maker of orderOf(round)) {
      report(`${size.copies} copies at once, ${maker.name}: round ${round + 1} of ${size.rounds}`);
      const place = await placeIn(scratch.path);
      const taken = await sample(maker, place, size);
      samples.set(maker.name, [...(samples.get(maker.name) ?? []), taken]);
      // The copies of the last round are used below.
      if (!(isLast && maker.name === "ours")) await forget(place);
    }
  }
  report(`work in ${size.copies} copies, merged in a queue with a check between`);
  return [...creating(samples, size), ...(await merging(scratch.path, size))];
};

/** Ours alternates between first and last. Clones have no limit to meet, and are created once. */
const orderOf = (round: number): readonly Maker[] =>
  (round % 2 === 0 ? MAKERS : MAKERS.toReversed()).filter(({ name }) => name !== "clone" || round === 0);

const folderIn = (scratch: string): Place => ({
  repository: join(scratch, "repository"),
  folder: join(scratch, "copies"),
  state: join(scratch, "state"),
});

const placeIn = async (scratch: string): Promise<Place> => {
  const place = folderIn(scratch);
  for (const path of [place.folder, place.state]) await mkdir(path, { recursive: true, mode: 0o700 });
  return place;
};

const sample = async ({ make }: Maker, place: Place, { copies }: Size): Promise<Sample> => {
  const before = await diskOf(place.repository);
  const [begun, cpu] = [performance.now(), cpuMs()];
  await make(place, copies);
  const [ms, used] = [performance.now() - begun, cpuMs() - cpu];
  const kib = (await diskOf(place.folder)) + (await diskOf(place.repository)) - before;
  return { ms: ms / copies, cpuMs: used / copies, kib: kib / copies };
};

/** Restores the repository: removes our copies, branches and refs. */
const forget = async ({ repository, folder, state }: Place): Promise<void> => {
  for (const path of [folder, state]) await rm(path, { recursive: true, force: true });
  await rm(join(repository, ".git/worktrees"), { recursive: true, force: true });
  const refs = await git(repository, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/prefork");
  for (const ref of refs.split("\n"))
    if (ref !== "" && ref !== "refs/heads/main") await git(repository, "update-ref", "-d", ref);
};

const creating = (samples: ReadonlyMap<Maker["name"], readonly Sample[]>, size: Size): readonly Finding[] => {
  const of = (name: Maker["name"], what: keyof Sample): number =>
    median((samples.get(name) ?? []).map((one) => one[what]));
  const group = `one of ${size.copies} copies made at once, ${size.files} files`;
  const limit = { of: "ratio", is: "at most", value: 1.5 } as const;
  const rows: readonly (readonly [figure: string, what: keyof Sample, unit: "ms" | "MiB"])[] = [
    ["time", "ms", "ms"],
    ["CPU, git's included", "cpuMs", "ms"],
    ["disk", "kib", "MiB"],
  ];
  return rows.flatMap(([figure, what, unit]) => {
    const amount = (name: Maker["name"]) => ({ value: of(name, what) / (unit === "MiB" ? 1_024 : 1), unit });
    return [
      { group, figure, ours: amount("ours"), against: { name: "git worktree add", amount: amount("plain") }, limit },
      { group, figure, ours: amount("ours"), against: { name: "git clone --no-hardlinks", amount: amount("clone") } },
    ];
  });
};

/** Changes two files that no other copy changes. */
const workIn = async (path: string, { index, copies, files }: { readonly index: number } & Size): Promise<void> => {
  const share = Math.floor(files / copies);
  for (const file of [index * share, index * share + 1])
    await appendFile(join(path, fileName(file)), `export const added_${index} = true;\n`);
};

const merging = async (scratch: string, size: Size): Promise<readonly Finding[]> => {
  const place = folderIn(scratch);
  const { repository, folder, state } = place;
  const { copies } = size;
  const worktrees = await Worktrees.open({ cwd: repository, state });
  const tasks = Array.from({ length: copies }, (_, index) => `t${index}`);
  await each(copies, (index) => workIn(join(folder, `t${index}`), { ...size, index }));
  const finished = await timed(() =>
    Promise.all(tasks.map((task) => worktrees.finish(task, { message: "Work\n", end: "reported" }))),
  );
  const merged = await timed(() => worktrees.merge(tasks, { check: worktrees.check(CHECK) }));
  if (merged.result.length !== copies || merged.result.some(({ kind }) => kind !== "merged"))
    throw new Error(`not all work was merged: ${merged.result.map(({ kind }) => kind).join(", ")}`);
  const undone = await timed(() => worktrees.undo("group"));
  const plain = await plainMerges(place, tasks);
  const group = `one of ${copies} copies with two changed files`;
  const amount = (ms: number) => ({ value: ms / copies, unit: "ms" }) as const;
  return [
    { group, figure: "finished: its work committed", ours: amount(finished.ms) },
    {
      group,
      figure: "merged in a queue, with a check",
      ours: amount(merged.ms),
      against: { name: "git merge, with the same", amount: amount(plain.ms) },
    },
    { group, figure: "undone, the whole queue", ours: amount(undone.ms) },
  ];
};

/** The same branches and the same check, in a clean clone: git does not merge into a checkout that has other changes there. */
const plainMerges = async (
  { repository, folder }: Place,
  tasks: readonly string[],
): Promise<{ readonly ms: number }> => {
  await git(folder, "clone", "-q", "--no-hardlinks", repository, "merging");
  const clone = join(folder, "merging");
  return timed(async () => {
    for (const task of tasks) {
      await git(clone, "merge", "-q", "--no-edit", `origin/prefork/${task}`);
      await git(clone, "diff", "--quiet", "HEAD", "--", "package.json");
    }
  });
};

const timed = async <T>(act: () => Promise<T>): Promise<{ readonly ms: number; readonly result: T }> => {
  const begun = performance.now();
  const result = await act();
  return { ms: performance.now() - begun, result };
};
