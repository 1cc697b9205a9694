/** Write: creates a whole file, or replaces one that the session knows.
 *  Invariant: no content is lost unseen: an existing file is replaced only if all of it was shown and it has not
 *  changed since. The disk is checked again at the moment of replacing.
 *  Elsewhere: what was shown (read-state.ts), atomic replacement (@prefork/guard). */

import * as z from "zod";
import { countLines } from "./file-content.ts";
import { changeProblem } from "./read-state.ts";
import { defineTool, failed } from "./tool.ts";

const input = z.strictObject({
  file_path: z.string().describe("Absolute"),
  content: z.string().describe("All that the file shall hold"),
});

export const writeTool = defineTool({
  name: "Write",
  description:
    "Makes a file, with the folders above it, or replaces one. A file that exists must have been read whole in this " +
    "session and not changed since. To change part of a file use Edit.",
  input,
  readOnly: false,
  touches: ({ file_path }) => ({ writes: [file_path] }),
  startsPrograms: false,
  run: async ({ file_path, content }, { files, reads, approved = false }) => {
    const located = files.locate(file_path);
    if (!located.ok) return failed(`${file_path}: ${located.reason}.`);
    const { path } = located;
    const looked = await files.look(path);
    if (!looked.ok) return failed(`${file_path}: ${looked.reason}. Nothing was written.`);
    const before = looked.facts?.kind === "file" ? await files.read(path) : undefined;
    if (before !== undefined && !before.ok) return failed(`${file_path}: ${before.reason}. Nothing was written.`);
    const bytes = Buffer.from(content);
    if (before !== undefined) {
      const refused = changeProblem(reads, { path, bytes: before.bytes, version: before.facts.version, need: "whole" });
      if (refused !== undefined) return failed(`${file_path} ${refused} Nothing was written.`);
    }
    const expected = before === undefined ? {} : { expected: before.facts.version };
    const written = await files.write(path, bytes, { ...expected, approved });
    if (!written.ok) return failed(`${file_path}: ${written.reason}. Nothing was written.`);
    const lines = countLines(content);
    reads.recordWrite(path, { version: written.facts.version, bytes, lines });
    return {
      content: `${written.created ? "Made" : "Replaced"} ${file_path} (${lines} ${lines === 1 ? "line" : "lines"}).`,
    };
  },
});
