/** `prefork -p` as a process among others: interrupts, broken pipes, and what is left behind. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";
import { callTools, lastUserText, type SimScript, say, toolResults } from "@prefork/simulator";
import { compiled } from "../compiled.ts";
import { hasBwrap, uses, withBwrap } from "../optional.ts";
import { openGround, parsedLines, processesWith, resultIn, type Started } from "./ground.ts";

const until = async (isSo: () => boolean): Promise<void> => {
  for (let waited = 0; !isSo(); waited += 20) {
    assert.ok(waited < 60_000, "it did not come to that");
    await after(20);
  }
};

const interrupted = (started: Started, signal: NodeJS.Signals): Started["ended"] => {
  started.child.kill(signal);
  return started.ended;
};

test("an interrupt during an answer exits with 130, and the session resumes with the partial answer", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let isAsked = false;
  const script: SimScript = (request) => {
    const words = lastUserText(request);
    if (words !== "speak long") return say(`heard ${words}`);
    isAsked = true;
    return { ...say("too late"), hold: released };
  };
  await using ground = await openGround(script);
  const started = ground.start(["-p", "--output-format", "json", "speak long"]);
  await until(() => isAsked);
  const { code, signal, out, err } = await interrupted(started, "SIGINT");
  release();
  const { end, is_error, session_id, num_turns } = resultIn(out);
  assert.deepEqual(
    { code, signal, err, end, is_error, num_turns },
    {
      ...{ code: 130, signal: null, err: "", end: "aborted", is_error: true, num_turns: 1 },
    },
  );
  const again = await ground.prefork(["-p", "--continue", "--output-format", "json", "go on"]);
  assert.deepEqual(
    [again.code, resultIn(again.out).session_id, resultIn(again.out).result],
    [...[0, session_id, "heard go on"]],
  );
});

/** A sleep that is longer than anyone waits, and unique on this machine. */
const SLEEP = `sleep ${1_000_000 + process.pid}`;

/** Starts a command that would run for days, with a child process. */
const sleeper: SimScript = (request) => {
  const [result] = toolResults(request);
  if (result === undefined && lastUserText(request) !== "go on")
    return callTools([{ name: "Bash", input: { command: `${SLEEP} & ${SLEEP}` } }]);
  return say(`heard ${lastUserText(request)}`);
};

test("an interrupt while a command runs leaves no process, and the session can resume", async () => {
  await using ground = await openGround(sleeper);
  const started = ground.start(["-p", "--permission-mode", "bypass", "wait"]);
  await until(() => processesWith(SLEEP).length >= 2);
  const { code, signal, out, err } = await interrupted(started, "SIGINT");
  assert.deepEqual([code, signal, out], [130, null, ""]);
  assert.match(err, /^prefork: stopped: interrupted \(to resume: --resume \w+\)\n$/);
  assert.deepEqual(processesWith(SLEEP), []);
  const again = await ground.prefork(["-p", "-c", "go on"]);
  assert.deepEqual(again, { code: 0, out: "heard go on\n", err: "" });
  const results = ground
    .bodies()
    .flatMap((body) => JSON.stringify(body).match(/\[interrupted; above is what[^"]*/g) ?? []);
  assert.deepEqual(results, ["[interrupted; above is what it had printed]"]);
});

test("SIGTERM ends it in order too, and until then nobody else writes in the session", async () => {
  await using ground = await openGround(sleeper);
  const started = ground.start(["-p", "--permission-mode", "bypass", "--output-format", "json", "wait"]);
  await until(() => processesWith(SLEEP).length >= 2);
  const other = await ground.prefork(["-p", "-c", "go on"]);
  assert.deepEqual([other.code, other.out], [2, ""]);
  const { pid } = started.child;
  assert.match(other.err, new RegExp(`^prefork: session \\w+ is in use by process ${pid}; end it there, or .*\n$`));
  const { code, out } = await interrupted(started, "SIGTERM");
  const { end, exit_code } = resultIn(out);
  assert.deepEqual([code, end, exit_code], [143, "aborted", 143]);
  assert.deepEqual(processesWith(SLEEP), []);
});

/** Leaves a process behind in its own session, then says so or starts a command that never ends. */
const leaver: SimScript = (request) => {
  const [result] = toolResults(request);
  if (lastUserText(request) === "go on") return say("heard go on");
  if (result !== undefined) return say("left");
  const rest = lastUserText(request) === "wait" ? SLEEP : "true";
  return callTools([{ name: "Bash", input: { command: `setsid ${SLEEP} >/dev/null 2>&1 & ${rest}` } }]);
};

test("a process that left its command's session ends with ours, on SIGHUP as at its end", async () => {
  await using ground = await openGround(leaver);
  ground.putHome(".prefork/settings.json", '{ "sandbox": { "mode": "off" } }');
  const [program = "", ...words] = SLEEP.split(" ");
  const stranger = spawn(program, words, { stdio: "ignore" });
  try {
    const bypass = ["-p", "--permission-mode", "bypass"];
    const { code, out } = await ground.start([...bypass, "leave one"]).ended;
    assert.deepEqual([code, out, processesWith(SLEEP).length], [0, "left\n", 1]);
    const started = ground.start([...bypass, "wait"]);
    await until(() => processesWith(SLEEP).length >= 4);
    assert.deepEqual((await interrupted(started, "SIGHUP")).code, 129);
    assert.deepEqual(processesWith(SLEEP).length, 1, "only the one that is not ours");
    assert.deepEqual(await ground.prefork(["-p", "-c", "go on"]), { code: 0, out: "heard go on\n", err: "" });
  } finally {
    stranger.kill();
  }
});

test("a reader that leaves early ends the run quietly, with everything it had started", async () => {
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  await using ground = await openGround(async (request) => {
    await left;
    return sleeper(request);
  });
  const argv = ["-p", "--permission-mode", "bypass", "--output-format", "events", "wait"];
  const { child, ended, out } = ground.start(argv);
  await until(() => out().includes("\n"));
  child.stdout?.destroy();
  leave();
  const { code, signal, err } = await ended;
  assert.deepEqual([code, signal, err], [0, null, ""]);
  assert.equal(parsedLines(`${out().split("\n")[0]}\n`)[0]?.type, "session_opened");
  assert.deepEqual(processesWith(SLEEP), []);
  assert.deepEqual(await ground.prefork(["-p", "-c", "go on"]), { code: 0, out: "heard go on\n", err: "" });
});

test(
  "an approved command runs in the sandbox where there is one, and outside it where there is none",
  uses("bwrap"),
  async () => {
    const script: SimScript = (request) => {
      const [result] = toolResults(request);
      const command = `touch made; ls /proc/${process.pid} > /dev/null 2>&1 && echo outside || echo inside`;
      return result ? say(result.text) : callTools([{ name: "Bash", input: { command } }]);
    };
    await using ground = await openGround(script);
    const { code, out, err } = await ground.start(["-p", "--permission-mode", "bypass", "go"], { env: withBwrap })
      .ended;
    const where = (await hasBwrap()) ? "inside" : "outside";
    assert.deepEqual({ code, out, err }, { code: 0, out: `${where}\n[exit code 0]\n`, err: "" });
    assert.equal(ground.read("made"), "");
  },
);

/** Walks from the command up to the process that started `prefork`, and prints their environments. */
const LOOK_UP = `p=$PPID; for i in 1 2 3; do [ "$p" = ${process.pid} ] && break; echo "looked at $i"; tr '\\0' '\\n' < /proc/$p/environ | grep -a -e sk-fake -e TAKEN_ALONG; tr '\\0' ' ' < /proc/$p/cmdline | grep -a sk-fake; p=$(awk '/^PPid/ {print $2}' /proc/$p/status); done`;

const lookingUp: SimScript = (request) => {
  const [result] = toolResults(request);
  return result ? say(result.text) : callTools([{ name: "Bash", input: { command: LOOK_UP } }]);
};

test("outside the sandbox a command finds no key in the processes above it", async () => {
  await using ground = await openGround(lookingUp);
  ground.putHome(".prefork/settings.json", '{ "sandbox": { "mode": "off" } }');
  const env = { ANTHROPIC_API_KEY: "sk-fake-1", OPENAI_API_KEY: "sk-fake-2", TAKEN_ALONG: "yes" };
  const { code, out, err } = await ground.start(["-p", "--permission-mode", "bypass", "look"], { env }).ended;
  assert.deepEqual({ code, out, err }, { code: 0, out: "looked at 1\nTAKEN_ALONG=yes\n[exit code 0]\n", err: "" });
});

/** What a program reports about itself after the launcher: its keys, its environment as others see it, arguments and input. */
const SPEAKER = `
import { readFileSync } from "node:fs";
import { receiveKeys, relaunchWithoutKeys } from "LAUNCHER";
const { pid } = process;
if (!receiveKeys()) {
  process.stdout.write(pid + " ");
  relaunchWithoutKeys();
}
const seen = ["environ", "cmdline"].map((name) => readFileSync("/proc/self/" + name, "latin1")).join();
const { MY_API_KEY: key, OTHER: other, PREFORK_KEYS_FD: left } = process.env;
const input = readFileSync(0, "utf8");
process.stdout.write(JSON.stringify({ pid, key, other, left, isSeen: seen.includes("sk-"), argv: process.argv.slice(2), input }));
process.exitCode = 7;
`;

test("the launcher starts the same process without keys around it, with its input, arguments and exit code", async () => {
  await using ground = await openGround();
  const launcher = new URL("../../bin/launcher.js", import.meta.url).href;
  const script = ground.put("speaker.mjs", SPEAKER.replace("LAUNCHER", launcher));
  const key = "sk-'\"$(id) `id` \\ %s\n=end";
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, "a b", "$HOME"], {
    env: { MY_API_KEY: key, OTHER: "there", BASH_ENV: "/none", ...compiled },
    input: "given",
    encoding: "utf8",
  });
  const [first = "", rest = ""] = stdout.split(/ (.*)/s);
  assert.deepEqual(
    [status, stderr, JSON.parse(rest)],
    [7, "", { pid: Number(first), key, other: "there", isSeen: false, argv: ["a b", "$HOME"], input: "given" }],
  );
});

const NO_KEY = { ANTHROPIC_API_KEY: "", ANTHROPIC_BASE_URL: "" };

test("a session whose journal is deleted while it runs fails, and its process ends", async () => {
  await using ground = await openGround();
  ground.put("lose.sh", "#!/bin/sh\nrm -rf ../home/.local\n");
  chmodSync(ground.at("lose.sh"), 0o755);
  ground.putHome(".prefork/settings.json", '{"permissions": {"allow": ["Bash(./lose.sh)"]}}');
  const rehearsing = ground.start(["-p", "run `./lose.sh`"], { env: NO_KEY });
  const { code, signal, err } = await rehearsing.ended;
  assert.deepEqual([code, signal], [1, null], err);
});
