/** A race on purpose: another process swaps folders and files for links as fast as it can while we write and read.
 *  Escapes are counted by outcome: what stands outside is compared whole, and no byte of it may ever be read. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { scratch, treeOf } from "@prefork/testing/scratch";
import { type FolderAccess, openRoot } from "../../src/files/index.ts";

export type SoakResult = {
  readonly tries: number;
  readonly written: number;
  readonly refused: number;
  readonly escapes: readonly string[];
};

/** What `npm test` runs; the full count is for the soak. */
export const SOAK_TRIES_IN_TESTS = 250;
export const SOAK_TRIES = 10_000;

const swapper = fileURLToPath(new URL("swapper.mjs", import.meta.url));

const start = async (folder: string, outside: string): Promise<ChildProcess> => {
  const child = spawn(process.execPath, [swapper, folder, outside], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return child;
};

export const swapSoak = async (tries: number, way: FolderAccess = "descriptors"): Promise<SoakResult> => {
  using place = scratch();
  using outside = scratch();
  place.put("root/sub/note", "inside");
  place.put("root/deep/er/note", "inside");
  outside.put("note", "secret");
  outside.put("er/note", "secret");
  outside.put("named-twice", "inside"); // a hard link is another name of the file itself: it may be read, never written
  const intact = JSON.stringify(treeOf(outside.path));
  const child = await start(place.at("root"), outside.path);
  const escapes: string[] = [];
  let [written, refused] = [0, 0];
  try {
    await using root = await openRoot(place.at("root"), { way });
    const targets = ["sub/note", "sub/new", "deep/er/note", "deep/er/new"].map((name) => place.at("root", name));
    for (let at = 0; at < tries; at++) {
      const target = targets[at % targets.length] ?? "";
      const wrote = await root.write(target, "inside");
      const read = await root.read(target);
      if (wrote.ok) written++;
      else refused++;
      if (read.ok && read.bytes.toString() !== "inside") escapes.push(`try ${at}: read ${target} from outside`);
      if (at % 50 === 0 && JSON.stringify(treeOf(outside.path)) !== intact) escapes.push(`try ${at}: outside changed`);
    }
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  if (JSON.stringify(treeOf(outside.path)) !== intact)
    escapes.push(`outside changed: ${JSON.stringify(treeOf(outside.path))}`);
  return { tries, written, refused, escapes };
};
