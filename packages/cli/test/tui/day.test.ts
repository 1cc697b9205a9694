/** A day with the terminal, key by key, as a person who has no API key would spend it: the rehearsal engine answers. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { test } from "node:test";
import { needs } from "@prefork/testing/optional";
import { TerminalScreen, type TerminalUser } from "./pty.ts";
import { TmuxScreen } from "./tmux.ts";

type Place = Disposable & { readonly work: string; readonly env: Readonly<Record<string, string>> };

/** A repository with two source files, and a home folder without keys. */
const openPlace = (): Place => {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "prefork-day-")));
  const [home, work] = [join(path, "home"), join(path, "work")];
  mkdirSync(home);
  mkdirSync(join(work, "src"), { recursive: true });
  writeFileSync(join(work, "README.md"), "# Greeter\n\nTODO: say who is greeted.\n");
  writeFileSync(join(work, "src/greet.ts"), 'export const greet = (name: string): string => "Hello, " + name;\n');
  writeFileSync(
    join(work, "src/main.ts"),
    'import { greet } from "./greet.ts";\n\nconsole.log(greet("Ada")); // TODO: read the name\n',
  );
  const env = {
    PATH: [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter),
    HOME: home,
    GIT_CONFIG_GLOBAL: join(home, "gitconfig"),
  };
  writeFileSync(env.GIT_CONFIG_GLOBAL, "[user]\n\tname = U\n\temail = u@example.com\n[init]\n\tdefaultBranch = main\n");
  const git = (...args: readonly string[]): void => void execFileSync("git", args, { cwd: work, env, stdio: "ignore" });
  git("init");
  git("add", ".");
  git("commit", "-m", "Greet");
  return { work, env, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
};

const FORKS = `in parallel:
- find \`greet\` in src
- count TODOs in src
- read README.md
- run \`touch one.txt\`
- run \`touch two.txt\``;

/** Ctrl-J starts a new line; Enter sends. */
const typeLines = (screen: TerminalUser, text: string): void => screen.type(`${text}\r`);

/** A key that follows Esc at once would be taken for Alt and that key. */
const closePage = async (screen: TerminalUser): Promise<void> => {
  screen.press("escape");
  await screen.shows((text) => !text.includes("Esc back"));
};

/** A prompt with a tool, five forks of which two ask, one of them opened and steered, and both questions answered. */
const spendMorning = async (screen: TerminalUser, work: string): Promise<void> => {
  // The first screen says what answers, and what to press for help.
  await screen.shows(/rehearsal engine[\s\S]*\? help/);
  screen.press("?");
  await screen.shows(/Keys[\s\S]*Esc back/);
  await closePage(screen);

  // A prompt with a tool.
  typeLines(screen, "read src/greet.ts");
  await screen.shows(/✓ Read src\/greet\.ts[\s\S]*Hello/);

  // Five forks, of which two ask.
  typeLines(screen, FORKS);
  await screen.shows("Question (1 of 2)");
  assert.deepEqual([existsSync(join(work, "one.txt")), existsSync(join(work, "two.txt"))], [false, false]);

  // One of them is opened and steered while it waits.
  screen.press("down", "end", "enter");
  await screen.shows(/\(asking\) · following[\s\S]*Bash touch/);
  screen.press("s");
  await screen.shows("message to run `touch");
  typeLines(screen, "say thanks afterwards");
  await screen.shows("Sent. It reads the message at its next turn.");

  // Both questions are answered at once.
  screen.press("ctrl+q", "l");
  await screen.prints(/⑂ 5 forks · 5 reported[^⑂]*saved \$/);
  await screen.shows((text) => !text.includes("Question"));
  assert.deepEqual([existsSync(join(work, "one.txt")), existsSync(join(work, "two.txt"))], [true, true]);
};

test("a day: a prompt, five forks with two questions, one opened and steered, a merge, the bill, a rewind and a crash", async () => {
  using place = openPlace();
  const { work, env } = place;
  await using screen = new TerminalScreen([], { cwd: work, env });

  await spendMorning(screen, work);

  // A fork in a worktree is merged after a preview, and the merge is undone.
  typeLines(screen, "in parallel, in worktrees:\n- append `Thanks.` to README.md");
  await screen.shows("Question");
  screen.press("ctrl+q", "y");
  await screen.shows("1 file to merge");
  screen.press("down");
  await screen.shows("m merge");
  screen.press("m");
  await screen.shows(/Merge into this checkout[\s\S]*README\.md/);
  assert.doesNotMatch(readFileSync(join(work, "README.md"), "utf8"), /Thanks/);
  screen.press("enter");
  await screen.shows("Merged append `Thanks.` to README.md: 1 file");
  assert.match(readFileSync(join(work, "README.md"), "utf8"), /Thanks/);
  typeLines(screen, "/undo");
  await screen.shows("Undo the last merge");
  screen.press("enter");
  await screen.shows("Undone: merge 1");
  assert.doesNotMatch(readFileSync(join(work, "README.md"), "utf8"), /Thanks/);

  // The bill.
  typeLines(screen, "/cost");
  await screen.shows(/requests?[\s\S]*Esc back/);
  await closePage(screen);

  typeLines(screen, "/cache");
  await screen.shows(/Cache[\s\S]*Esc back/);
  await closePage(screen);

  // A change of mind: conversation and files go back to before a prompt, which returns to the input line.
  typeLines(screen, "append `Bye.` to README.md");
  await screen.shows("Question");
  screen.press("ctrl+q", "y");
  await screen.prints(/Edit README\.md: changed/);
  await screen.idle();
  assert.match(readFileSync(join(work, "README.md"), "utf8"), /Bye/);
  typeLines(screen, "/rewind");
  await screen.shows(/Go back to before…[\s\S]*append `Bye/);
  screen.press("enter");
  await screen.shows("conversation and files");
  screen.press("down", "enter");
  await screen.shows((text) => !text.includes("does it"));
  await screen.shows(/─\n append `Bye\.` to README\.md/);
  assert.doesNotMatch(readFileSync(join(work, "README.md"), "utf8"), /Bye/);
  screen.press("ctrl+c");

  // The machine fails in the middle of a prompt; nothing is lost.
  screen.type("half a promp");
  await screen.shows("half a promp");
  screen.kill("SIGKILL");
  await screen.ended;
  await using again = new TerminalScreen(["--resume"], { cwd: work, env });
  await again.shows(/Resume a conversation[\s\S]*❯ read src\/greet\.ts[\s\S]*Esc starts a new one/);
  again.press("enter");
  await again.shows(/Thanks[\s\S]*\? help/);
  again.press("up");
  await again.shows(/─\n \/rewind/);
  again.press("up");
  await again.shows(/─\n append `Bye\.` to README\.md/);
  again.press("ctrl+c");
  typeLines(again, "read README.md");
  await again.shows(/Greeter/);
  await again.idle();
  again.press("ctrl+c", "ctrl+c");
  assert.equal(await again.ended, 0);
  // What remains on the terminal is the conversation.
  assert.match(again.text().trimEnd(), /\nTo continue this session: prefork --resume \w+$/);
  assert.doesNotMatch(again.text(), /\? help|Forks:|─{80}/);
});

test("the morning of that day works in tmux too", await needs("tmux"), async () => {
  using place = openPlace();
  await using screen = new TmuxScreen([], { cwd: place.work, env: place.env });
  await spendMorning(screen, place.work);
});

test("SIGTERM, SIGHUP and a crash leave a terminal that works", async () => {
  using place = openPlace();
  for (const [signal, code] of [
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    await using screen = new TerminalScreen([], { cwd: place.work, env: place.env });
    await screen.shows("rehearsal engine");
    screen.kill(signal);
    assert.equal(await screen.ended, code);
    const last = screen.output.slice(screen.output.lastIndexOf("rehearsal"));
    assert.ok(last.includes("\u001b[?25h") && last.includes("\u001b[?2004l"), "cursor and pasting are as before");
  }
});

test("a resize reflows what is shown, and leaves what was printed before the terminal was opened", async () => {
  using place = openPlace();
  await using screen = new TerminalScreen([], { cwd: place.work, env: place.env, columns: 120, rows: 40 });
  await screen.shows("rehearsal engine");
  typeLines(screen, "read README.md");
  await screen.shows("Greeter");
  screen.resize(40, 20);
  await screen.shows(/─{40}\n/);
  assert.ok(screen.lines().every((line) => line.length <= 40));
  assert.ok(!screen.output.includes("\u001b[3J"), "the scrollback is the user's");
  screen.resize(80, 24);
  await screen.shows(/─{80}\n/);
});
