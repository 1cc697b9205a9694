/** Unreadable state is not the same as no state: every command that reads it fails and says what is wrong and why. */

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempDisposableSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "../src/main.ts";
import { captured } from "./captured.ts";

const NOBODY = 65534;
const DENIED = "the file system does not permit it";

const openPlace = () => {
  const folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-unreadable-"));
  chmodSync(folder.path, 0o755);
  const sessions = join(folder.path, "prefork/sessions");
  mkdirSync(join(folder.path, "prefork"), { mode: 0o700 });
  mkdirSync(sessions, { mode: 0o700 });
  const env = { HOME: folder.path, XDG_STATE_HOME: folder.path };
  const prefork = async (...argv: readonly string[]) => {
    const io = captured({ env });
    const code = await run(argv, io);
    return { code, out: io.text(), err: io.errors() };
  };
  return { path: folder.path, sessions, prefork, [Symbol.dispose]: () => rmSync(folder.path, { recursive: true }) };
};

/** The superuser can read everything, so the test drops that privilege meanwhile. */
const withoutAccess = async <T>(folder: string, act: () => Promise<T>): Promise<T> => {
  const isSuperuser = process.getuid?.() === 0;
  chmodSync(folder, isSuperuser ? 0o700 : 0o000);
  if (isSuperuser) process.seteuid?.(NOBODY);
  try {
    return await act();
  } finally {
    if (isSuperuser) process.seteuid?.(0);
    chmodSync(folder, 0o700);
  }
};

const LOOKING: readonly (readonly string[])[] = [
  ["sessions"],
  ["sessions", "--all", "--json"],
  ["sessions", "show", "x"],
  ["sessions", "export", "x"],
  ["sessions", "delete", "x"],
  ["ps"],
  ["ps", "--all", "--json"],
  ["tasks"],
  ["tasks", "show", "x"],
  ["tasks", "stop", "x"],
  ["explain"],
  ["explain", "--json"],
  ["-p", "go on", "--continue", "--cwd", "/"], // the checkout itself may be in a folder that only its owner can enter
];

test("a state folder that may not be entered fails every command that looks there", async () => {
  using place = openPlace();
  await Promise.all(LOOKING.map((argv) => place.prefork(...argv))); // loads late modules while we can still read them
  const ends = await withoutAccess(join(place.path, "prefork"), async () => {
    const all: unknown[] = [];
    for (const argv of LOOKING) all.push([argv, await place.prefork(...argv)]);
    return all;
  });
  const err = `prefork: sessions cannot be read from ${place.sessions}: ${DENIED}\n`;
  assert.deepEqual(
    ends,
    LOOKING.map((argv) => [argv, { code: 1, out: "", err }]),
  );
});

test("a folder that may not be opened is not called missing", async () => {
  using place = openPlace();
  const commands = [["-p", "go on"], ["worktrees"], ["merge", "--preview", "x"]];
  for (const argv of commands) await place.prefork(...argv, "--cwd", `${place.path}/missing`); // loads late modules
  const ends = await withoutAccess(join(place.path, "prefork"), async () => {
    const all: unknown[] = [];
    for (const argv of commands) all.push(await place.prefork(...argv, "--cwd", place.sessions));
    return all;
  });
  const err = `prefork: --cwd ${place.sessions}: this folder cannot be opened (EACCES)\n`;
  assert.deepEqual(
    ends,
    commands.map(() => ({ code: 2, out: "", err })),
  );
});

test("trust names the state folder that it cannot use", async () => {
  using place = openPlace();
  const state = join(place.path, "prefork");
  const asked = [
    ["trust", "--list"],
    ["trust", place.path, "--revoke"],
  ];
  await place.prefork("trust", "--list");
  const ends = await withoutAccess(state, async () => {
    const all: unknown[] = [];
    for (const argv of asked) all.push(await place.prefork(...argv));
    return all;
  });
  assert.deepEqual(ends, [
    { code: 1, out: "", err: `prefork: trust cannot be read from ${state}: ${DENIED}\n` },
    { code: 1, out: "", err: `prefork: trust cannot be revoked in ${state}: ${DENIED}\n` },
  ]);
});

test("a file in the place of the sessions' folder fails every command that looks there", async () => {
  using place = openPlace();
  rmSync(place.sessions, { recursive: true });
  writeFileSync(place.sessions, "");
  const err = `prefork: sessions cannot be read from ${place.sessions}: ${place.sessions} is not a folder\n`;
  for (const argv of LOOKING) assert.deepEqual(await place.prefork(...argv), { code: 1, out: "", err }, argv.join(" "));
});

test("one session that cannot be read is named, and what is not found may be in it", async () => {
  using place = openPlace();
  symlinkSync("/", join(place.sessions, "linked"));
  const reason = `${place.sessions}/linked: a link or a file is in place of a folder`;
  const unreadable = `session linked cannot be read: ${reason}`;
  const json = `${JSON.stringify({ kind: "unreadable", id: "linked", reason })}\n`;
  const noneHere = `no readable session belongs to ${process.cwd()}, but ${unreadable}`;
  const expected: readonly (readonly [readonly string[], out: string, err: string])[] = [
    [["sessions"], "", unreadable],
    [["sessions", "--json"], json, unreadable],
    [["ps"], "", unreadable],
    [["ps", "--all", "--json"], "", unreadable],
    [["tasks"], "", noneHere],
    [["tasks", "show", "x"], "", `no readable session has a task x, but ${unreadable}`],
    [["explain"], "", noneHere],
    [["-p", "go on", "--continue"], "", noneHere],
  ];
  for (const [argv, out, err] of expected)
    assert.deepEqual(await place.prefork(...argv), { code: 1, out, err: `prefork: ${err}\n` }, argv.join(" "));
});
