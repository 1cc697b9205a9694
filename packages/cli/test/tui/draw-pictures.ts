/** Makes the pictures of the terminal in docs/images: each scene in three sizes, as SVG and as text.
 *  Invariant: every character and colour in a picture was shown by the real program; only the home folder is written as
 *  "~". A picture that differs from the kept one in figures alone (money, times, shares) is left as it is, so a second run
 *  changes nothing.
 *  Elsewhere: the scenes (scenes.ts), SVG (picture-svg.ts), the picture of the tour (scripts/screenshot.ts).
 *
 *  npm run pictures            what has changed
 *  npm run pictures -- --all   every picture, with new figures */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { drawSvg } from "./picture-svg.ts";
import { type Picture, playConversation, playForks, type Scene, type Size, textOf, withoutFigures } from "./scenes.ts";

const IMAGES = fileURLToPath(new URL("../../../../docs/images", import.meta.url));
/** Short, because paths below it are part of some pictures before they are shortened. */
const FOLDER = "/tmp";

const SIZES: readonly Size[] = [
  { columns: 80, rows: 24 },
  { columns: 120, rows: 40 },
  { columns: 40, rows: 20 },
];

const ABOUT: Readonly<Record<Scene, string>> = {
  first: "The first screen of prefork, before anything was typed",
  conversation: "A conversation: a search, its answer, and a question about an edit with its diff",
  forks: "Five forks: one is done, two are running, and two ask for permission",
  fork: "The page of one fork, with its calls open",
  merge: "The preview before a fork's worktree is merged",
  cost: "The bill of the session, by agent, and what alternatives would have cost",
};

const keptFile = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

/** Without figures, and without what depends on their width. */
const comparable = (content: string): string =>
  withoutFigures(content.replaceAll("\u00a0", " ").replace(/ (?:x|textLength)="[\d.]+"/g, "")).replace(/ +</g, "<");

const keep = (name: string, content: string): void => {
  const path = join(IMAGES, name);
  const before = keptFile(path);
  const isSame = before !== undefined && comparable(before) === comparable(content);
  if (isSame && !process.argv.includes("--all")) return;
  writeFileSync(path, content);
  process.stdout.write(`docs/images/${name}\n`);
};

const keepPicture = (picture: Picture, { columns, rows }: Size): void => {
  const name = `terminal-${picture.scene}-${columns}x${rows}`;
  keep(`${name}.txt`, textOf(picture));
  keep(`${name}.svg`, drawSvg(picture.cells, { title: "prefork – ~/greeter", about: ABOUT[picture.scene], columns }));
};

for (const size of SIZES)
  for (const play of [playForks, playConversation])
    for (const picture of await play(size, FOLDER)) keepPicture(picture, size);
