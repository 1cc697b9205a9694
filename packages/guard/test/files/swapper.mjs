/** Swaps places for links until it is ended. Arguments: the folder to work in, the folder links lead to. */

import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder = "", outside = ""] = process.argv.slice(2);
const at = (...names) => join(folder, ...names);

/** The other process works on the same names, so any step may find them gone. */
const attempt = (step) => {
  try {
    step();
  } catch (error) {
    if (!["ENOENT", "EEXIST", "ENOTEMPTY", "EISDIR", "ENOTDIR", "EPERM", "EMLINK", "EXDEV"].includes(error.code))
      throw error;
  }
};

const put = (make, name) => {
  const draft = at(`draft-${name.replaceAll("/", "-")}`);
  attempt(() => rmSync(draft, { recursive: true, force: true }));
  attempt(() => make(draft));
  attempt(() => renameSync(draft, at(name)));
};

const swapFolder = (name, target) => {
  const away = at(`away-${name.replaceAll("/", "-")}`);
  attempt(() => renameSync(at(name), away));
  attempt(() => symlinkSync(target, at(name)));
  attempt(() => unlinkSync(at(name)));
  attempt(() => renameSync(away, at(name)));
  attempt(() => mkdirSync(at(name)));
};

const swapFile = (name) => {
  put((draft) => symlinkSync(join(outside, "note"), draft), name);
  put((draft) => linkSync(join(outside, "named-twice"), draft), name);
  put((draft) => symlinkSync(join(outside, "planted"), draft), name);
  put((draft) => writeFileSync(draft, "inside"), name);
};

process.stdout.write("swapping\n");
for (;;) {
  swapFolder("sub", outside);
  swapFile("sub/note");
  swapFile("sub/new");
  swapFolder("deep", outside);
  swapFolder("deep/er", join(outside, "er"));
}
