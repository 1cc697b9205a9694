/** The scenes that the pictures in the documents show, played in a real terminal with the rehearsal engine.
 *  Invariant: a scene is captured only when everything in it has come to rest, so two plays differ in figures at most, and
 *  `withoutFigures` makes them equal; nothing of this machine is in a picture: the home folder is shown as "~".
 *  Elsewhere: drawing and keeping the pictures (draw-pictures.ts), the terminal (pty.ts). */

import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { type Cell, readCells, replaceText } from "./cells.ts";
import { TerminalScreen } from "./pty.ts";

export type Size = { readonly columns: number; readonly rows: number };
export type Scene = "first" | "forks" | "fork" | "conversation" | "merge" | "cost";
export type Picture = { readonly scene: Scene; readonly cells: readonly (readonly Cell[])[] };

export const textOf = ({ cells }: Pick<Picture, "cells">): string =>
  `${cells
    .map((row) =>
      row
        .map(({ text }) => text)
        .join("")
        .trimEnd(),
    )
    .join("\n")
    .trimEnd()}\n`;

/** What every play of a scene has in common. */
export const withoutFigures = (text: string): string =>
  text
    // A frame in between that was a line longer has moved everything up by an empty line.
    .replace(/^\n+/, "")
    .replace(/\$\d+(?:\.\d+)?/g, "$0")
    .replace(/\d+(?:\.\d+)? %/g, "0 %")
    .replace(/\d+ (?:h|min)(?: \d+ (?:min|s))?|\d+ s\b/g, "0 s")
    .replace(/\d+(?:[.,]\d+)*(?:k|M| tokens?)\b/g, "0k")
    .replace(/[·✢✳✶✻✽](?=<| Working| Waiting)/g, "·")
    .replace(/\b[0-9a-f]{10}\b/g, "id")
    .replace(/ {2,}/g, "  ");

type Place = Disposable & { readonly home: string; readonly work: string; readonly env: Record<string, string> };

/** A small repository in an empty home. `folder` should be short: paths are shown in narrow terminals too. */
const openPlace = (folder: string): Place => {
  const home = realpathSync(mkdtempSync(join(folder, "g-")));
  const work = join(home, "greeter");
  const put = (path: string, content: string): void => {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), content);
  };
  put("greeter/README.md", "# Greeter\n\nTODO: say who is greeted.\n");
  put("greeter/src/greet.ts", 'export const greet = (name: string): string => "Hello, " + name;\n');
  put(
    "greeter/src/main.ts",
    'import { greet } from "./greet.ts";\n\nconsole.log(greet("Ada")); // TODO: read the name\n',
  );
  // They run for as long as the scene needs them.
  for (const name of ["test.sh", "lint.sh"]) {
    put(`greeter/${name}`, "#!/bin/sh\nexec sleep 600\n");
    chmodSync(join(work, name), 0o755);
  }
  put(".prefork/settings.json", '{"permissions": {"allow": ["Bash(./test.sh)", "Bash(./lint.sh)"]}}\n');
  put(".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n");
  const env = {
    PATH: [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter),
    ...{ HOME: home, GIT_CONFIG_GLOBAL: join(home, ".gitconfig"), COLORFGBG: "15;0" },
  };
  const git = (...args: readonly string[]): void => void execFileSync("git", args, { cwd: work, env, stdio: "ignore" });
  git("init");
  git("add", ".");
  git("commit", "-m", "Greet");
  return { home, work, env, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) };
};

const CLEAR_SCREEN = "\u001b[2J";

class Stage {
  readonly screen: TerminalScreen;
  readonly pictures: Picture[] = [];
  readonly #home: string;

  constructor({ home, work, env }: Place, size: Size) {
    this.screen = new TerminalScreen([], { cwd: work, env, ...size });
    this.#home = home;
  }

  /** The whole screen is drawn again first: how a frame is placed depends on the frames before it. */
  async capture(scene: Scene): Promise<void> {
    const { length } = this.screen.output;
    this.screen.press("ctrl+l");
    await this.screen.shows(() => this.screen.shownOutput.includes(CLEAR_SCREEN, length));
    const cells = readCells(this.screen.emulator).map((row) => replaceText(row, this.#home, "~"));
    this.pictures.push({ scene, cells });
  }

  /** A key that follows Esc at once would be taken for Alt and that key. */
  async closePage(): Promise<void> {
    this.screen.press("escape");
    await this.screen.shows("? help");
  }

  async leave(): Promise<readonly Picture[]> {
    this.screen.kill("SIGTERM"); // stops what still runs
    await this.screen.ended;
    return this.pictures;
  }
}

/** The first screen, five forks of which two ask, and the page of one. */
export const playForks = async (size: Size, folder: string): Promise<readonly Picture[]> => {
  using place = openPlace(folder);
  const stage = new Stage(place, size);
  await using screen = stage.screen;
  await screen.shows(/rehearsal[\s\S]*in parallel:[\s\S]*\? help/);
  await stage.capture("first");

  // The last fork asks after the fourth: it reads a file first.
  const parts = ["find `greet` in src", "run `./test.sh`", "run `./lint.sh`", "run `npm install`"];
  screen.type(`in parallel:\n${parts.map((part) => `- ${part}\n`).join("")}- append \`Thanks.\` to README.md\r`);
  await screen.shows(/test\.sh` Bash[\s\S]*lint\.sh` Bash[\s\S]*\? run `npm[\s\S]*\? append[\s\S]*1 of 2/);
  if (size.rows >= 24) await screen.shows("2 running, 2 asking, 1 done");
  await stage.capture("forks");

  screen.press("down", "end", "enter");
  await screen.shows(/\(asking\)[\s\S]*Enter opens/);
  screen.press("enter"); // opens its calls
  await screen.shows("+ Thanks.");
  await stage.capture("fork");
  return await stage.leave();
};

/** A prompt whose edit is asked about, a merge with its preview, and the bill. */
export const playConversation = async (size: Size, folder: string): Promise<readonly Picture[]> => {
  using place = openPlace(folder);
  const stage = new Stage(place, size);
  await using screen = stage.screen;
  await screen.shows(/rehearsal[\s\S]*in parallel:[\s\S]*\? help/);
  screen.type("find `greet` in src\r");
  await screen.shows("src/main.ts");
  await screen.idle();
  screen.type("replace `Hello` with `Welcome` in src/greet.ts\r");
  await screen.shows("y once");
  await stage.capture("conversation");
  screen.press("ctrl+q", "y");
  await screen.shows((text) => !text.includes("Question"));
  await screen.idle();

  screen.type("in parallel, in worktrees:\n- append `Thanks.` to README.md\r");
  await screen.shows("y once");
  screen.press("ctrl+q", "y");
  await screen.prints("Files changed: README.md");
  await screen.idle();
  screen.press("down");
  await screen.shows("Enter open");
  screen.press("m");
  await screen.shows(/Merge into this checkout[\s\S]*README\.md/);
  await stage.capture("merge");
  await stage.closePage();
  screen.press("escape");
  await screen.shows((text) => !text.includes("Enter open"));
  await screen.idle();

  screen.type("/cost\r");
  await screen.shows("This session");
  await stage.capture("cost");
  return await stage.leave();
};
