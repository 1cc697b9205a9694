/** Snapshots of files that cannot be taken: what the user is told, and that nothing waits for them. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { test } from "node:test";
import { callTools, lastUserText, type SimScript, say } from "@prefork/simulator";
import { withinLimit } from "../../src/session/snapshot-limit.ts";
import { openGround } from "./fault-ground.ts";

const writes: SimScript = (request) => {
  const { path, content } = /^write (?<path>[^:]+): (?<content>.*)$/s.exec(lastUserText(request))?.groups ?? {};
  if (path === undefined || content === undefined) return say("done");
  return callTools([{ name: "Write", input: { file_path: path, content } }]);
};

test("a snapshot that git cannot finish is a notice, and holds up neither the conversation nor its end", {
  timeout: 120_000,
}, async () => {
  await using ground = await openGround(writes);
  for (const words of ["init -q", "-c user.email=a@b -c user.name=a commit -q --allow-empty -m one"])
    execFileSync("git", words.split(" "), { cwd: ground.work });
  const pipe = (folder: string, name: string): void => {
    mkdirSync(folder, { recursive: true });
    execFileSync("mkfifo", [`${folder}/${name}`]);
  };
  pipe(`${ground.work}/sub`, ".gitignore");
  const environment = { PATH: process.env.PATH, HOME: ground.folder.at("home") };
  await using session = await ground.open({ snapshots: "on", environment });
  const reader = session.events();
  for (const words of [`write ${ground.work}/a: one`, "talk"])
    assert.equal((await session.prompt(words).result()).end, "done");
  assert.equal(readFileSync(`${ground.work}/a`, "utf8"), "one");
  const notices: string[] = [];
  let ended = 0;
  for await (const event of reader) {
    if (event.type === "settings_noticed") notices.push(event.notice);
    if (event.type === "exchange_ended") ended += 1;
    if (ended === 2) break;
  }
  assert.deepEqual(notices, [
    `The files before this prompt cannot be restored: ${ground.work}/sub/.gitignore is not a regular file, and git would wait for it`,
  ]);
  // This one is found only by git itself.
  rmSync(`${ground.work}/sub/.gitignore`);
  pipe(ground.folder.at("home/.config/git"), "ignore");
  const stopped = session.prompt(`write ${ground.work}/b: two`);
  setTimeout(() => stopped.abort(), 500);
  assert.equal((await stopped.result()).end, "aborted");
  assert.equal(existsSync(`${ground.work}/b`), false, "nothing is changed after the user stopped it");
  void session.prompt("talk").result();
  await session.close();
});

test("work that neither ends nor notices its signal is left behind", { timeout: 60_000 }, async () => {
  const never = new Promise<never>(() => {});
  const limit = { ms: 10, signal: new AbortController().signal };
  await assert.rejects(
    withinLimit(limit, () => never),
    { message: "reading the checkout took longer than 0.01 s" },
  );
  const aborted: string[] = [];
  await assert.rejects(
    withinLimit(
      limit,
      (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            aborted.push(String(signal.reason.message));
            reject(signal.reason);
          });
        }),
    ),
  );
  assert.deepEqual(aborted, ["reading the checkout took longer than 0.01 s"]);
});
