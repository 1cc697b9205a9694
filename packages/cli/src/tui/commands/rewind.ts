/** /rewind and /tree: going back to an earlier point of the conversation, and to points that were left.
 *  Invariant: nothing is lost: what is left stays in the tree, and the files as they were before are kept; files change only
 *  after the person has seen which.
 *  Elsewhere: the tree, and going there (@prefork/runtime), the conversation on the screen (../earlier-blocks.ts). */

import type { RewindOptions, RewindResult, SessionControl, TreeNode } from "@prefork/runtime";
import { formatMoney, formatTokens } from "../../numbers.ts";
import type { TerminalContext } from "../context.ts";
import { type ListItem, safeLine } from "../state/index.ts";
import { ageText, lengthText } from "./age.ts";
import { counted, hint, notice, openList, type SlashCommand, showCli, typeNext } from "./command.ts";

/** Until when it is warm, and what it costs to continue there: "warm 3 min · $0.0021". */
const priceText = ({ warmUntil, priceToContinue }: TreeNode, now: number): string => {
  const warm = warmUntil === undefined ? "" : warmUntil > now ? `warm ${lengthText(warmUntil - now)}` : "cold";
  const price =
    priceToContinue === undefined
      ? ""
      : priceToContinue.usd === undefined
        ? `${formatTokens(priceToContinue.read + priceToContinue.written)} tokens`
        : formatMoney(priceToContinue.usd);
  return [warm, price].filter(Boolean).join(" · ");
};

const aboutNode = (node: TreeNode, now: number): string => {
  const { priceToContinue: price, forks } = node;
  const tokens = price
    ? `To continue after it: ${formatTokens(price.read)} tokens read from the cache, ${formatTokens(price.written)} written again${price.usd === undefined ? "" : `, about ${formatMoney(price.usd)}`}.`
    : "";
  const named = forks.map(({ label, state }) => `⑂ ${safeLine(label, 80)} (${safeLine(state)})`);
  return [`${titleOf(node)}\n${ageText(now - node.at)}`, tokens, ...named].filter(Boolean).join("\n");
};

const titleOf = ({ kind, title }: TreeNode): string =>
  kind === "compaction" ? "(summary of what was before)" : safeLine(title, 200) || "(no text)";

const requireStopped = ({ state }: TerminalContext): void => {
  if (state().runningSince !== undefined)
    throw new Error("The agent is working. Wait for it, or stop it with Esc first.");
};

// --- where to go ---------------------------------------------------------------------------------------------------------

const openPrompts = async (context: TerminalContext): Promise<void> => {
  const { control } = await context.session();
  const now = Date.now();
  const prompts = (await control.tree()).filter(({ kind, onLine }) => kind === "prompt" && onLine);
  if (prompts.length === 0) return notice(context, "There is no earlier prompt to go back to.");
  openList(context, {
    title: "Go back to before…",
    command: "rewind",
    hint: "chooses it",
    items: prompts.toReversed().map((node) => ({
      id: `node ${node.id}`,
      label: titleOf(node),
      detail: ageText(now - node.at),
      preview: aboutNode(node, now),
    })),
  });
};

type Branches = ReadonlyMap<string | undefined, readonly TreeNode[]>;

/** Branch nodes say where a line starts; the list shows that by its indentation. */
const withoutBranches = (nodes: readonly TreeNode[]): Branches => {
  const branches = new Map(nodes.flatMap((node) => (node.kind === "branch" ? [[node.id, node] as const] : [])));
  const parentOf = (node: TreeNode): string | undefined => {
    let parent = node.parent;
    for (let branch = branches.get(parent ?? ""); branch; branch = branches.get(parent ?? "")) parent = branch.parent;
    return parent;
  };
  return Map.groupBy(
    nodes.filter(({ kind }) => kind !== "branch"),
    parentOf,
  );
};

/** Lines that continue a node one after another stay in their column; where several do, each is indented. */
export const treeItems = (nodes: readonly TreeNode[], now: number): readonly ListItem[] => {
  const children = withoutBranches(nodes);
  const here = currentIn(nodes);
  const items: ListItem[] = [];
  // A stack, because a conversation may be longer than the call stack.
  const waiting = (children.get(undefined) ?? []).toReversed().map((node) => ({ node, depth: 0 }));
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { node, depth } = next;
    const indent = "  ".repeat(Math.min(depth, 10));
    const isHere = node.id === here;
    items.push({
      id: `point ${node.id}`,
      label: `${indent}${isHere ? "●" : node.onLine ? "│" : "○"} ${titleOf(node)}`,
      detail: isHere ? `you are here${node.priceToContinue ? ` · ${priceText(node, now)}` : ""}` : priceText(node, now),
      preview: aboutNode(node, now),
    });
    for (const { task, label, state } of node.forks)
      items.push({
        id: `task ${task}`,
        label: `${indent}  ⑂ ${safeLine(label, 80)}`,
        detail: safeLine(state),
        preview: `${safeLine(task)}: Enter opens its conversation.`,
      });
    const after = children.get(node.id) ?? [];
    for (const child of after.toReversed()) waiting.push({ node: child, depth: depth + (after.length > 1 ? 1 : 0) });
  }
  return items;
};

/** The conversation may be at a branch, which continues its parent. */
const currentIn = (nodes: readonly TreeNode[]): string | undefined => {
  let here = nodes.find(({ current }) => current);
  while (here?.kind === "branch") here = nodes.find(({ id }) => id === here?.parent);
  return here?.id;
};

// --- what to do there ----------------------------------------------------------------------------------------------------

type RestoredFiles = NonNullable<RewindResult["files"]>;

const filesText = ({ restored, removed, skipped }: RestoredFiles): string => {
  const line = (sign: string, { path, added, deleted }: RestoredFiles["restored"][number]): string =>
    `  ${sign} ${safeLine(path)}${added === undefined ? "" : ` +${added} −${deleted ?? 0}`}`;
  if (restored.length + removed.length + skipped.length === 0) return "No file would change.";
  return [
    `${counted(restored.length, "file")} would be restored, ${counted(removed.length, "file")} removed:`,
    ...restored.slice(0, 100).map((file) => line("M", file)),
    ...removed.slice(0, 100).map((file) => line("D", file)),
    ...skipped.slice(0, 20).map((why) => `  ! ${safeLine(why)}`),
  ].join("\n");
};

const previewFiles = async (control: SessionControl, to: string): Promise<string> => {
  try {
    const { files } = await control.rewind({ to, restore: "files", preview: true });
    return files ? filesText(files) : "No file would change.";
  } catch (error) {
    return safeLine(error instanceof Error ? error.message : String(error), 500);
  }
};

const openChoices = async (id: string, context: TerminalContext, canContinue: boolean): Promise<void> => {
  requireStopped(context);
  const { control } = await context.session();
  const nodes = await control.tree();
  const node = nodes.find((one) => one.id === id);
  if (!node) throw new Error("That point is not in the tree any more.");
  const talk = "What comes after it stays in /tree, and can be continued.";
  const files = node.files ? await previewFiles(control, id) : "";
  openList(context, {
    title: titleOf(node),
    command: "rewind",
    hint: "does it",
    items: [
      ...(canContinue && currentIn(nodes) !== id
        ? [{ id: `go after conversation ${id}`, label: "Continue after it", preview: aboutNode(node, Date.now()) }]
        : []),
      ...(node.kind === "prompt"
        ? [
            {
              id: `go before conversation ${id}`,
              label: "Go back to before it: the conversation",
              preview: `The prompt comes back to the input line, to be changed and sent again. ${talk} Files stay as they are.`,
            },
          ]
        : []),
      ...(node.files
        ? [
            {
              id: `go before both ${id}`,
              label: "Go back to before it: conversation and files",
              preview: `${talk}\n${files}`,
            },
            { id: `go before files ${id}`, label: "Restore the files only", preview: files },
          ]
        : []),
      { id: "nothing", label: "Do nothing" },
    ],
  });
};

const isPlace = (word: string | undefined): word is "before" | "after" => word === "before" || word === "after";
const isRestore = (word: string | undefined): word is NonNullable<RewindOptions["restore"]> =>
  word === "conversation" || word === "files" || word === "both";

const go = async (words: readonly string[], context: TerminalContext): Promise<void> => {
  const [place, restore, to] = words;
  if (!isPlace(place) || !isRestore(restore) || to === undefined) return;
  requireStopped(context);
  const { control } = await context.session();
  const { prompt, files } = await context.work("Going back…", () => control.rewind({ to, place, restore }));
  if (prompt !== undefined && restore !== "files" && place === "before" && context.screen.input.facts.isEmpty)
    typeNext(context, prompt);
  const restored = files ? ` ${counted(files.restored.length + files.removed.length, "file")} restored.` : "";
  hint(context, `Done; /rewind undo takes it back.${restored}`);
};

/** Going back to before the last branch undoes it. */
const undoLast = async (context: TerminalContext): Promise<void> => {
  requireStopped(context);
  const { control } = await context.session();
  const last = (await control.tree()).findLast(({ kind }) => kind === "branch");
  if (!last) throw new Error("Nothing was rewound in this conversation.");
  const restore = last.files ? "both" : "conversation";
  await context.work("Going forward again…", () => control.rewind({ to: last.id, place: "before", restore }));
  hint(context, "The conversation is where it was before.");
};

const choose = async (id: string, context: TerminalContext): Promise<void> => {
  const [what, ...words] = id.split(" ");
  if (what === "go") return go(words, context);
  if (what === "node") return openChoices(words[0] ?? "", context, false);
  if (what === "point") return openChoices(words[0] ?? "", context, true);
  if (what !== "task") return undefined;
  const [task = ""] = words;
  if (!context.state().children.has(task)) return showCli(context, "Task", ["tasks", "show", task]);
  return context.dispatch({
    type: "pageOpened",
    page: { kind: "conversation", agent: task, scroll: 0, isExpanded: false },
  });
};

const rewind: SlashCommand = {
  name: "rewind",
  args: "[undo]",
  summary: "go back to before an earlier prompt (also: Esc twice)",
  group: "Session",
  complete: () => [{ value: "undo", about: "go forward again to where the conversation was" }],
  run: (args, context) => (args.trim() === "undo" ? undoLast(context) : openPrompts(context)),
  chosen: choose,
};

const tree: SlashCommand = {
  name: "tree",
  summary: "the conversation with its forks and branches; any point can be continued",
  group: "Session",
  run: async (_args, context) => {
    const { control } = await context.session();
    const items = treeItems(await control.tree(), Date.now());
    if (items.length === 0) return notice(context, "Nothing was said yet.");
    const here = items.findIndex(({ detail = "" }) => detail.startsWith("you are here"));
    openList(context, { title: "Tree", command: "tree", hint: "chooses it", items, selected: Math.max(0, here) });
  },
  chosen: choose,
};

export const rewindCommands: readonly SlashCommand[] = [rewind, tree];
