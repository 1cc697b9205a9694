/** What do ended forks leave behind: on disk, in memory, and as open files?
 *  Invariant: only our own session, on the provider that answers at once; no figure here is a time.
 *  Elsewhere: the process (keeping-process.ts), what open forks hold (open-forks.ts). */

import { startChild } from "../children.ts";
import type { Extent } from "../measure.ts";
import { makeScratch } from "../scratch.ts";
import type { Amount, Finding } from "../table.ts";
import { lengthText } from "../wire/history.ts";
import type { KeepingOrder, KeepingReport } from "./keeping-process.ts";
import { startProvider } from "./processes.ts";

const LONG = 200_000;
const SHORT = 10_000;
const FORKS = 50;
const KIB = 1_024;
const ONE_PER_CENT = 0.01;
const NO_MORE = 1;
/** A fork's calls, its report and its row stay in the parent's conversation; as objects they take several times their
 *  bytes. */
const MAX_LEFT_KIB = 16;

type Of<TType extends KeepingReport["type"]> = Extract<KeepingReport, { readonly type: TType }>;

export const measureDisk = async (): Promise<readonly Finding[]> => {
  const [long, short] = [await ordered(LONG, { disk: FORKS }, "disk"), await ordered(SHORT, { disk: FORKS }, "disk")];
  const group = "Disk of one fork's journal beyond its own messages";
  const beside = ({ parent, beyond }: Of<"disk">, tokens: number): Finding => ({
    group,
    figure: `parent of ${lengthText(tokens)} tokens`,
    ours: kib(beyond),
    against: { name: "its parent's journal", amount: kib(parent) },
    limit: { of: "ratio", is: "at most", value: ONE_PER_CENT },
  });
  return [
    beside(long, LONG),
    beside(short, SHORT),
    {
      group,
      figure: "what the parent's own journal says of it",
      ours: kib(long.grown),
      against: { name: "its parent's journal", amount: kib(long.parent) },
    },
    {
      group,
      figure: "all that the file system takes for it",
      ours: kib(long.allocated),
      against: { name: "its parent's journal", amount: kib(long.parent) },
    },
  ];
};

export const measureOneByOne = async ({ streams }: Extent): Promise<readonly Finding[]> => {
  const { held, conversation, handles } = await ordered(SHORT, { oneByOne: streams }, "oneByOne");
  const group = `${streams} forks, one after another: what each leaves behind`;
  return [
    {
      group,
      figure: "handles that are open after the last",
      ours: { value: handles.late, unit: "handles" },
      against: { name: "after a tenth of them", amount: { value: handles.early, unit: "handles" } },
      limit: { of: "ratio", is: "at most", value: NO_MORE },
    },
    {
      group,
      figure: "JavaScript heap and buffers, for each",
      ours: kib(held),
      against: { name: "what its parent's conversation grew by", amount: kib(conversation) },
      limit: { of: "ours", is: "at most", value: MAX_LEFT_KIB },
    },
  ];
};

const kib = (bytes: number): Amount => ({ value: bytes / KIB, unit: "KiB" });

const ordered = async <TType extends KeepingReport["type"]>(
  tokens: number,
  order: KeepingOrder,
  type: TType,
): Promise<Of<TType>> => {
  await using scratch = await makeScratch();
  await using provider = await startProvider("canned");
  const script = new URL("./keeping-process.ts", import.meta.url);
  const parameters = [provider.url, String(tokens), scratch.path];
  await using child = await startChild<KeepingOrder, KeepingReport>(script, parameters);
  const report = child.first.type === "ready" ? await child.ask(order) : child.first;
  if (report.type === type) return report as Of<TType>;
  throw new Error(report.type === "failed" ? `a session failed: ${report.message}` : `unexpected: ${report.type}`);
};
