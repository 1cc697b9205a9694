/** `prefork rewind` and `prefork sessions tree`: the points of a saved session, and going back to one of them.
 *  Invariant: a session that a process has open is not rewound here; nothing is lost, and the answer says how to undo it.
 *  Elsewhere: what a rewind does (@prefork/runtime), a running session (its control). */

import type { RewindOptions, RewindResult, TreeNode } from "@prefork/runtime";
import { rewindClosed } from "@prefork/runtime/internal";
import { findSession, sessionTree } from "@prefork/runtime/observe";
import { InputError } from "@prefork/wire";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { formatMoney, formatTokens, moneyDecimals } from "../numbers.ts";
import { renderTable } from "../table.ts";
import { visible } from "../visible.ts";
import { inLine, storeFor, withJournalErrors } from "./tasks-store.ts";

export const treeCommand = (io: Io): Command =>
  newCommand("tree", io)
    .description("show the points at which a session can be continued, and what that would cost")
    .argument("<id>", "session id, or its first letters")
    .option("--json", "print one JSON object per line")
    .action((id: string, options: { readonly json?: true }) => withJournalErrors(() => showTree(id, options, io)));

export const rewindCommand = (io: Io): Command =>
  newCommand("rewind", io)
    .description("take a saved session back to before a prompt, or on to a point that it left")
    .argument("<session>", "session id, or its first letters")
    .requiredOption("--to <node>", "a node of: prefork sessions tree <session>")
    .option("--conversation", "only the conversation (default)")
    .option("--files", "only the files")
    .option("--both", "the conversation and the files")
    .option("--after", "continue the node, instead of going to before it")
    .option("--preview", "say what would change, and change nothing")
    .option("--json", "print one JSON object")
    .action((id: string, options: RewindFlags) => withJournalErrors(() => rewind(id, options, io)));

type RewindFlags = {
  readonly to: string;
  readonly conversation?: true;
  readonly files?: true;
  readonly both?: true;
  readonly after?: true;
  readonly preview?: true;
  readonly json?: true;
};

const showTree = async (given: string, { json }: { readonly json?: true }, io: Io): Promise<void> => {
  const store = storeFor(io);
  const nodes = await sessionTree(store, await findSession(store, given));
  if (json) for (const node of nodes) io.out(jsonLine(node));
  else if (nodes.length === 0) io.out("This session has no prompt yet.\n");
  else io.out(treeTable(nodes, { colour: io.colour, now: store.now() }));
};

type TreeLayout = { readonly colour: boolean; readonly now: number };

const treeTable = (nodes: readonly TreeNode[], { colour, now }: TreeLayout): string => {
  const decimals = moneyDecimals(nodes.map(({ priceToContinue }) => priceToContinue?.usd ?? 0));
  return renderTable({
    colour,
    columns: [
      { title: "node" },
      { title: "after", dispensable: 4 },
      { title: "files", dispensable: 2 },
      { title: "forks", align: "right", dispensable: 1 },
      { title: "warm for", align: "right", dispensable: 3 },
      { title: "to continue", align: "right", dispensable: 5 },
      { title: "what" },
    ],
    rows: nodes.map((node) => ({
      cells: [
        node.id,
        node.parent ?? "",
        node.files ? "kept" : "",
        node.forks.length === 0 ? "" : String(node.forks.length),
        warmFor(node, now),
        priceOf(node, decimals),
        `${node.current ? "* " : node.onLine ? "" : "(left) "}${node.kind === "prompt" ? "" : `[${node.kind}] `}${inLine(node.title)}`,
      ],
    })),
  });
};

const warmFor = ({ warmUntil }: TreeNode, now: number): string => {
  if (warmUntil === undefined || warmUntil <= now) return "";
  const seconds = Math.ceil((warmUntil - now) / 1_000);
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
};

const priceOf = ({ priceToContinue: price }: TreeNode, decimals: number): string => {
  if (!price) return "";
  return price.usd === undefined ? formatTokens(price.read + price.written) : formatMoney(price.usd, decimals);
};

const rewind = async (given: string, flags: RewindFlags, io: Io): Promise<void> => {
  const chosen = (["conversation", "files", "both"] as const).filter((each) => flags[each]);
  const [restore = "conversation", ...others] = chosen;
  if (others.length > 0) throw new UsageError("choose one of --conversation, --files and --both");
  const store = storeFor(io);
  const id = await findSession(store, given);
  const options: RewindOptions = {
    ...{ to: flags.to, restore, preview: flags.preview === true },
    ...(flags.after ? { place: "after" } : {}),
  };
  const notice = (text: string): void => io.err(`prefork: ${visible(text)}\n`);
  try {
    const result = await rewindClosed(store, { id, environment: io.env, notice }, options);
    io.out(flags.json ? jsonLine(result) : resultText(result, { id, restore }));
  } catch (error) {
    if (error instanceof InputError)
      throw new UsageError(`${error.message} (prefork sessions tree ${id})`, { cause: error });
    throw error;
  }
};

type Rewound = { readonly id: string; readonly restore: "conversation" | "files" | "both" };

const resultText = ({ node, prompt, files }: RewindResult, { id, restore }: Rewound): string => {
  const lines: string[] = [];
  const done = node !== undefined;
  for (const [list, word] of [
    [files?.restored ?? [], done ? "restored" : "would restore"],
    [files?.removed ?? [], done ? "removed" : "would remove"],
  ] as const)
    for (const { path, added, deleted } of list)
      lines.push(`${word} ${inLine(path)}${added === undefined ? "" : ` (+${added} -${deleted})`}`);
  for (const why of files?.skipped ?? []) lines.push(`not restored: ${inLine(why)}`);
  if (files && files.restored.length + files.removed.length === 0) lines.push("No file differs.");
  if (prompt !== undefined) lines.push(`The conversation ${done ? "is" : "would be"} before: ${inLine(prompt, 80)}`);
  else if (restore !== "files") lines.push(`The conversation ${done ? "continues" : "would continue"} there.`);
  if (files?.saved !== undefined) lines.push(`The files as they were are kept: ${inLine(files.saved)}`);
  if (done) lines.push(`To undo this: prefork rewind ${id} --to ${node} --${restore}`);
  return lines.map((line) => `${line}\n`).join("");
};
