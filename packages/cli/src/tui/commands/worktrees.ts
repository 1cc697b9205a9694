/** /worktrees, /merge, /undo: the work of forks that have a worktree.
 *  Invariant: nothing is merged before the person has seen which files would change; merging and undoing go through the same
 *  functions as `prefork merge`, so the same settings, locks and records apply.
 *  Elsewhere: merging (@prefork/worktrees), conflicts that go back to a fork (@prefork/runtime). */

import { homedir } from "node:os";
import { type Policy, stateFolder } from "@prefork/guard";
import {
  type ChangedFile,
  familyOf,
  isUnmerged,
  type MergeOutcome,
  type MergePoint,
  type Worktree,
  Worktrees,
} from "@prefork/worktrees";
import { planSession } from "../../print/index.ts";
import type { TerminalContext } from "../context.ts";
import { type ListItem, safeLine, safeText } from "../state/index.ts";
import { type ArgumentChoice, counted, notice, openList, openPage, type SlashCommand } from "./command.ts";

const MAX_LISTED = 200;

const openWorktrees = async (context: TerminalContext): Promise<Worktrees> => {
  const { own } = await context.session();
  if (own) return own.worktrees();
  const { env } = context.io;
  const { cwd } = context.state();
  return Worktrees.open({ cwd, state: stateFolder(env, env.HOME || homedir()), environment: env });
};

const mergeRules = async (context: TerminalContext): Promise<Policy["worktrees"]> => {
  const { own } = await context.session();
  if (own) return own.setup.policy().worktrees;
  return (await planSession({ cwd: context.state().cwd }, context.io)).policy.worktrees;
};

const isPresent = ({ state }: Worktree): boolean => state.kind !== "gone";

const nameOf = ({ task, label }: { readonly task: string; readonly label: string }): string =>
  label === "" ? safeLine(task) : safeLine(label, 80);

// --- /worktrees ----------------------------------------------------------------------------------------------------------

const stateText = (worktree: Worktree): string => {
  const { state, files, mergedTip, tip } = worktree;
  if (state.kind !== "finished") return state.kind === "working" ? "in use" : state.kind;
  if (mergedTip !== undefined && mergedTip === tip) return "merged";
  return files === 0 ? "no changes" : `${counted(files, "file")} to merge`;
};

const worktreeItem = (worktree: Worktree): ListItem => ({
  id: worktree.task,
  label: nameOf(worktree),
  detail: stateText(worktree),
  preview: `${safeLine(worktree.task)} · branch ${safeLine(worktree.branch)}\n${safeLine(worktree.path)}`,
});

const worktrees: SlashCommand = {
  name: "worktrees",
  summary: "worktrees of forks and what is in them; Enter shows what a merge would do",
  group: "Forks",
  run: async (_args, context) => {
    const table = await (await openWorktrees(context)).table();
    const items = [...table.worktrees.values()].filter(isPresent).toReversed().slice(0, MAX_LISTED).map(worktreeItem);
    if (items.length === 0)
      return notice(context, "There are no worktrees. /fork --worktree starts a fork in one of its own.");
    openList(context, { title: "Worktrees", command: "worktrees", hint: "previews its merge", items });
  },
  chosen: (id, context) => previewMerge([id], context),
};

// --- /merge --------------------------------------------------------------------------------------------------------------

/** By its id, with or without `task-`, or by the first letters of either. */
const findTask = (all: readonly Worktree[], given: string): string => {
  const found = all.filter(({ task }) => task === given || task === `task-${given}`);
  const starting =
    found.length > 0 ? found : all.filter(({ task }) => task.startsWith(given) || task.startsWith(`task-${given}`));
  const [first, second] = starting;
  if (!first) throw new Error(`There is no worktree of ${safeLine(given, 60)}. /worktrees lists them.`);
  if (second) throw new Error(`${safeLine(given, 60)} is ambiguous. /worktrees lists all worktrees.`);
  return first.task;
};

const tasksToMerge = async (given: readonly string[], open: Worktrees): Promise<readonly string[]> => {
  const table = await open.table();
  if (given.length > 0)
    return [...new Set(given.map((task) => findTask([...table.worktrees.values()].filter(isPresent), task)))];
  const family = await familyOf(open);
  if (family.length === 0) throw new Error("There is nothing to merge. /worktrees lists all worktrees.");
  return family;
};

const HOW = { added: "A", changed: "M", deleted: "D" } as const;

const fileLine = ({ path, how, added, removed }: ChangedFile): string =>
  `  ${HOW[how]} ${safeLine(path)}${added === undefined ? " (binary)" : ` +${added} −${removed ?? 0}`}`;

const MAX_FILES = 200;

const outcomeLines = (outcome: MergeOutcome, changed: readonly ChangedFile[]): readonly string[] => {
  const name = nameOf(outcome);
  if (outcome.kind === "failed") return [`✗ ${name}: ${safeLine(outcome.reason, 1_000)}`];
  const stats = new Map(changed.map((file) => [file.path, file]));
  const added = changed.reduce((sum, file) => sum + (file.added ?? 0), 0);
  const removed = changed.reduce((sum, file) => sum + (file.removed ?? 0), 0);
  const conflicts = outcome.conflicts.map(({ path, kind }) => `  ! ${safeLine(path)}: conflict (${safeLine(kind)})`);
  const clean = outcome.files.filter((file) => !outcome.conflicts.some(({ path }) => path === file));
  const sign = conflicts.length === 0 ? "✓" : "!";
  const about =
    outcome.files.length + conflicts.length === 0
      ? "nothing new"
      : `${counted(outcome.files.length, "file")}, +${added} −${removed}${conflicts.length === 0 ? "" : `, ${counted(conflicts.length, "conflict")}`}`;
  return [
    `${sign} ${name}: ${about}`,
    ...conflicts,
    ...clean.slice(0, MAX_FILES).map((path) => {
      const file = stats.get(path);
      return file ? fileLine(file) : `  M ${safeLine(path)}`;
    }),
    ...(clean.length > MAX_FILES ? [`  and ${clean.length - MAX_FILES} more`] : []),
  ];
};

const previewMerge = async (tasks: readonly string[], context: TerminalContext): Promise<void> => {
  const open = await openWorktrees(context);
  const { onConflict = "stop", check } = await mergeRules(context);
  const { outcomes, lines } = await context.work("Looking what the merge would do…", async (signal) => {
    const choice = onConflict === "hand-back" ? "stop" : onConflict;
    const found = await open.merge(tasks, { isPreview: true, onConflict: choice, signal });
    const texts: string[] = [];
    for (const outcome of found) {
      const { files } = await open.inspect(outcome.task).catch(() => ({ files: [] }));
      texts.push(...outcomeLines(outcome, files));
    }
    return { outcomes: found, lines: texts };
  });
  const left = tasks.length - outcomes.length;
  const preview = [
    ...lines,
    ...(left > 0 ? [`The merge would stop there; ${counted(left, "more fork")} would not be merged.`] : []),
    ...(check === undefined ? [] : [`After each merge runs: ${safeLine(check)}; if it fails, that merge is undone.`]),
  ].join("\n");
  const { own } = await context.session();
  openList(context, {
    title:
      tasks.length === 1
        ? `Merge ${nameOf(outcomes[0] ?? { task: tasks[0] ?? "", label: "" })}`
        : `Merge ${counted(tasks.length, "fork")}`,
    command: "merge",
    hint: "does it",
    items: mergeChoices(outcomes, { tasks, canHandBack: own !== undefined }).map((item) => ({ ...item, preview })),
  });
};

type ChoiceContext = { readonly tasks: readonly string[]; readonly canHandBack: boolean };

const mergeChoices = (
  outcomes: readonly MergeOutcome[],
  { tasks, canHandBack }: ChoiceContext,
): readonly Pick<ListItem, "id" | "label">[] => {
  const ids = tasks.join(" ");
  const hasConflicts = outcomes.some(({ kind }) => kind === "conflicts");
  const mergeable = outcomes.filter(({ kind }) => kind === "would-merge").length;
  return [
    ...(mergeable > 0 && !hasConflicts ? [{ id: `merge ${ids}`, label: "Merge into this checkout" }] : []),
    ...(hasConflicts && canHandBack
      ? [{ id: `hand-back ${ids}`, label: "Let the fork resolve the conflicts, then merge" }]
      : []),
    ...(hasConflicts ? [{ id: `markers ${ids}`, label: "Merge, with conflict markers in the files" }] : []),
    { id: `diff ${ids}`, label: "Show the whole diff" },
    { id: "nothing", label: "Do nothing" },
  ];
};

const MERGED: readonly MergeOutcome["kind"][] = ["merged", "nothing-new"];

const reportOutcome = (outcome: MergeOutcome, context: TerminalContext): void => {
  const { task, kind, unresolved = [] } = outcome;
  if (MERGED.includes(kind)) context.dispatch({ type: "worktreeChanged", task, state: "merged" });
  const isFine = MERGED.includes(kind) && unresolved.length === 0;
  notice(context, describeOutcome(outcome), isFine ? "info" : "warn");
};

const describeOutcome = (outcome: MergeOutcome): string => {
  const { files, conflicts, unresolved = [] } = outcome;
  const name = nameOf(outcome);
  const named = (paths: readonly string[]): string => paths.map((path) => safeLine(path)).join(", ");
  switch (outcome.kind) {
    case "merged": {
      const left =
        unresolved.length === 0 ? "" : ` Conflicts are left in ${named(unresolved)}; resolve them before you continue.`;
      return `Merged ${name}: ${counted(files.length, "file")} (/undo takes it back).${left}`;
    }
    case "nothing-new":
    case "would-merge":
      return `${name}: this checkout already had all of its work.`;
    case "conflicts":
      return `${name} was not merged: conflicts in ${named(conflicts.map(({ path }) => path))}. /merge offers what can be done.`;
    case "check-failed": {
      const output = safeText(outcome.output).trimEnd().split("\n").slice(-8).join("\n");
      return `${name} was ${outcome.isKept ? "merged, but" : "not merged:"} the check failed:\n${output}`;
    }
    case "failed":
      return `${name} was not merged: ${safeLine(outcome.reason, 1_000)}`;
  }
};

type ConflictAnswer = "stop" | "markers" | "hand-back" | undefined;

const mergeTasks = async (
  tasks: readonly string[],
  chosen: ConflictAnswer,
  context: TerminalContext,
): Promise<void> => {
  const { check, onConflict: usual } = await mergeRules(context);
  const onConflict = chosen ?? usual ?? "stop";
  const { own } = await context.session();
  await context.work(check === undefined ? "Merging…" : `Merging, then ${check}…`, async (signal) => {
    if (own) {
      const checking = check === undefined ? {} : { check };
      const outcomes = await own.merge(tasks, { ...checking, onConflict, signal });
      for (const outcome of outcomes) reportOutcome(outcome, context);
      return;
    }
    const open = await openWorktrees(context);
    const checking = check === undefined ? {} : { check: open.check(check, signal) };
    const choice = onConflict === "hand-back" ? "stop" : onConflict;
    const onOutcome = (outcome: MergeOutcome): void => reportOutcome(outcome, context);
    await open.merge(tasks, { ...checking, onConflict: choice, signal, onOutcome });
  });
};

const showDiff = async (tasks: readonly string[], context: TerminalContext): Promise<void> => {
  const open = await openWorktrees(context);
  const diffs = await Promise.all(tasks.map((task) => open.diff(task)));
  openPage(context, { title: "Diff", text: safeText(diffs.join("\n")) });
};

const merge: SlashCommand = {
  name: "merge",
  args: "[fork]",
  summary: "merge the last forks' worktrees, or one; shows what would change first",
  group: "Forks",
  complete: ({ state }) => mergeableChoices([...state().children.values()]),
  run: async (args, context) => {
    const given = args.split(/\s+/).filter(Boolean);
    await previewMerge(await tasksToMerge(given, await openWorktrees(context)), context);
  },
  chosen: async (id, context) => {
    const [what, ...tasks] = id.split(" ");
    if (what === "diff") return showDiff(tasks, context);
    if (what === "markers" || what === "hand-back") return mergeTasks(tasks, what, context);
    if (what === "merge") return mergeTasks(tasks, undefined, context);
    notice(context, "Nothing was merged.");
  },
};

type Mergeable = { readonly id: string; readonly label: string; readonly worktree?: { readonly state: string } };

const mergeableChoices = (children: readonly Mergeable[]): readonly ArgumentChoice[] =>
  children.filter(({ worktree }) => worktree?.state === "ready").map(({ id, label }) => ({ value: id, about: label }));

// --- /undo ---------------------------------------------------------------------------------------------------------------

const undo: SlashCommand = {
  name: "undo",
  summary: "undo the last merge, or all merges of the last command",
  group: "Forks",
  run: async (_args, context) => {
    const open = await openWorktrees(context);
    const { points, worktrees: all } = await open.table();
    const here = points.filter(({ state, top }) => state === "merged" && top === open.top);
    const last = here.at(-1);
    if (!last) throw new Error("There is no merge to undo in this checkout.");
    const group = here.filter((point) => point.group === last.group);
    const describe = ({ point, task, files }: MergePoint): string =>
      `merge ${point}: ${nameOf(all.get(task) ?? { task, label: "" })}, ${counted(files, "file")}`;
    const restores = "Files that changed since are not overwritten: then nothing is undone, and a message says which.";
    openList(context, {
      title: "Undo",
      command: "undo",
      hint: "does it",
      items: [
        { id: "1", label: "Undo the last merge", preview: `${describe(last)}\n${restores}` },
        ...(group.length > 1
          ? [
              {
                id: "group",
                label: `Undo all ${group.length} merges of the last command`,
                preview: `${group.map(describe).join("\n")}\n${restores}`,
              },
            ]
          : []),
        { id: "nothing", label: "Do nothing" },
      ],
    });
  },
  chosen: async (id, context) => {
    if (id === "nothing") return notice(context, "Nothing was undone.");
    const open = await openWorktrees(context);
    const undone = await open.undo(id === "group" ? "group" : 1);
    const { worktrees: all } = await open.table();
    for (const { point, task, files } of undone) {
      const worktree = all.get(task);
      if (worktree && isUnmerged(worktree)) context.dispatch({ type: "worktreeChanged", task, state: "ready" });
      notice(
        context,
        `Undone: merge ${point} (${nameOf(worktree ?? { task, label: "" })}), ${counted(files.length, "file")} restored.`,
      );
    }
  },
};

export const worktreeCommands: readonly SlashCommand[] = [worktrees, merge, undo];
