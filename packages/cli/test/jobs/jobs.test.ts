/** Whole jobs with real tools in a real repository: the task is done, and every request read the previous one from the cache. */

import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";
import { callTools, type SimAnswer, type SimScript, type Simulator, say } from "@prefork/simulator";
import { type Ground, openGround, parsedLines, processesWith, resultIn } from "../print/ground.ts";
import { fixingModel } from "./fixing-model.ts";
import { bash, call, filesShown, linesShown, modelOf, type Seen, seenIn, TESTS } from "./model.ts";
import { ALL_PASS, changedFiles, makeRepository, testsOf } from "./repository.ts";

const RUN_TESTS = ["--allow", "Bash(node --test:*)"];
const EDITS = ["--permission-mode", "accept-edits"];

/** Within an epoch nothing was paid for twice: each request read all of the previous one from the cache. */
const assertWarm = (simulator: Simulator): void => {
  const rows = simulator.ledger();
  assert.deepEqual(
    rows.map(({ outcome, read, missCause }) => ({ outcome, read, missCause })),
    rows.map((_, at) => ({ outcome: "complete", read: rows[at - 1]?.promptTokens ?? 0, missCause: null })),
  );
};

/** The calls of the whole conversation, taken from the last request. */
const callsOf = (ground: Ground): Seen["calls"] => seenIn(ground.bodies().at(-1) ?? {}).calls;

const outline = (ground: Ground): readonly string[] =>
  callsOf(ground).map(({ name, isError }) => (isError ? `${name} failed` : name));

for (const seed of [1, 2])
  test(`a failing test is found and mended (seed ${seed})`, async () => {
    await using ground = await openGround(modelOf(fixingModel()));
    const { broken } = makeRepository(ground, { seed });
    assert.deepEqual(testsOf(ground), { ...ALL_PASS, code: 1, passed: ALL_PASS.passed - 1, failed: 1 });
    const { ended } = ground.start(["-p", ...EDITS, ...RUN_TESTS, "A test fails. Find out why and mend it."]);
    const { code, out, err } = await ended;
    assert.deepEqual([code, out, err], [0, `All ${ALL_PASS.passed} tests pass.\n`, ""]);
    assert.deepEqual(outline(ground), ["Bash", "Grep", "Read", "Edit", "Bash"]);
    assert.ok(callsOf(ground)[0]?.text.includes(`not ok`) && callsOf(ground)[0]?.text.includes(broken));
    assert.deepEqual(testsOf(ground), ALL_PASS);
    assert.equal(changedFiles(ground).length, 1);
    assertWarm(ground.simulator);
  });

test("a job that a limit stopped is finished by another process, which still knows what was read", async () => {
  await using ground = await openGround(modelOf(fixingModel()));
  makeRepository(ground, { seed: 7 });
  const flags = [...EDITS, ...RUN_TESTS, "--output-format", "json"];
  const first = await ground.start(["-p", ...flags, "--max-turns", "3", "A test fails. Mend it."]).ended;
  assert.deepEqual([first.code, resultIn(first.out).end, outline(ground)], [3, "max-turns", ["Bash", "Grep"]]);
  const second = await ground.start(["-p", ...flags, "--continue", "Go on."]).ended;
  assert.deepEqual([second.code, resultIn(second.out).result], [0, `All ${ALL_PASS.passed} tests pass.`]);
  assert.equal(resultIn(second.out).session_id, resultIn(first.out).session_id);
  assert.deepEqual(outline(ground), ["Bash", "Grep", "Read", "Edit", "Bash"]);
  assert.deepEqual([testsOf(ground), changedFiles(ground).length], [ALL_PASS, 1]);
  assertWarm(ground.simulator);
});

// --- several files -----------------------------------------------------------------------------------------------------

/** Finds every file with the name, reads them all, changes each line that contains it, and checks whether any is left. */
const renamingModel = ({ prompt, folder, calls, last }: Seen): SimAnswer => {
  const [, old = "", next = ""] = /Rename (\w+) to (\w+)/.exec(prompt) ?? [];
  const word = new RegExp(`\\b${old}\\b`, "g");
  const searches = calls.filter(({ name }) => name === "Grep");
  const search = call("Grep", { pattern: `\\b${old}\\b` });
  if (last === undefined) return search;
  if (last.name === "Grep" && searches.length === 1)
    return callTools(
      filesShown(last.text).map((file) => ({ name: "Read", input: { file_path: `${folder}/${file}` } })),
    );
  if (last.name === "Read")
    return callTools(
      calls
        .filter(({ name }) => name === "Read")
        .map(({ input, text }) => ({
          name: "Edit",
          input: {
            file_path: input.file_path ?? "",
            edits: [...new Set(linesShown(text))]
              .filter((line) => line.search(word) !== -1)
              .map((line) => ({ old_string: line, new_string: line.replaceAll(word, next), replace_all: true })),
          },
        })),
    );
  if (last.name === "Edit") return search;
  if (last.name === "Grep") return callTools([bash(TESTS)], last.text);
  const edits = calls.filter(({ name, isError }) => name === "Edit" && !isError);
  return say(`Renamed in ${edits.length} files; ${/^# fail 0$/m.test(last.text) ? "all tests pass" : "tests fail"}.`);
};

test("a function is renamed in every file that uses it, and nothing that is only called alike", async () => {
  await using ground = await openGround(modelOf(renamingModel));
  const { used, unused } = makeRepository(ground, { seed: 3, isBroken: false });
  const argv = ["-p", ...EDITS, ...RUN_TESTS, "--output-format", "json", `Rename ${used} to ${unused} everywhere.`];
  const { code, out, err } = await ground.start(argv).ended;
  assert.deepEqual([code, err, resultIn(out).result], [0, "", "Renamed in 3 files; all tests pass."]);
  const changed = changedFiles(ground);
  assert.equal(changed.length, 3);
  for (const name of changed) {
    assert.doesNotMatch(ground.read(name), new RegExp(`\\b${used}\\b`));
    assert.match(ground.read(name), new RegExp(`\\b${unused}\\b`));
  }
  assert.deepEqual(testsOf(ground), ALL_PASS);
  assertWarm(ground.simulator);
});

// --- failures along the way --------------------------------------------------------------------------------------------

test("an edit that does not match is read up again and made right", async () => {
  const remember = (line: string): string => line.replace("export const", "const").replaceAll(" ", "  ");
  await using ground = await openGround(modelOf(fixingModel({ remember })));
  makeRepository(ground, { seed: 4 });
  const { code, out } = await ground.start(["-p", ...EDITS, ...RUN_TESTS, "A test fails. Mend it."]).ended;
  assert.deepEqual([code, out], [0, `All ${ALL_PASS.passed} tests pass.\n`]);
  assert.deepEqual(outline(ground), ["Bash", "Grep", "Read", "Edit failed", "Read", "Edit", "Bash"]);
  assert.match(
    callsOf(ground)[3]?.text ?? "",
    /with other white space it does:\n\d+\texport const .*\n.* Nothing was changed\.$/,
  );
  assert.deepEqual([testsOf(ground), changedFiles(ground).length], [ALL_PASS, 1]);
  assertWarm(ground.simulator);
});

test("a command that is denied names the missing rule, and a permitted one does the work", async () => {
  await using ground = await openGround(modelOf(fixingModel({ firstCommand: "npm test" })));
  makeRepository(ground, { seed: 5 });
  const { code, out, err } = await ground.start(["-p", ...EDITS, ...RUN_TESTS, "A test fails. Mend it."]).ended;
  assert.deepEqual([code, out], [0, `All ${ALL_PASS.passed} tests pass.\n`]);
  assert.match(
    err,
    /^prefork: Bash: Not allowed: .*there is nobody to ask, and the rule Bash\(npm test:\*\) would allow it\n$/,
  );
  assert.deepEqual(outline(ground), ["Bash failed", "Bash", "Grep", "Read", "Edit", "Bash"]);
  assert.deepEqual([testsOf(ground), changedFiles(ground).length], [ALL_PASS, 1]);
  assertWarm(ground.simulator);
});

test("a file that somebody changes between reading and editing keeps both changes", async () => {
  const model = modelOf(fixingModel());
  const remark = "// Somebody else was here.\n";
  /** Another person's edit, after the model has read the file and before its own edit. */
  const meanwhile: SimScript = (request) => {
    const { last, calls } = seenIn(request.body);
    const isFirst = calls.filter(({ name }) => name === "Read").length === 1;
    if (last?.name === "Read" && isFirst) appendFileSync(String(last.input.file_path), remark);
    return model(request);
  };
  await using ground = await openGround(meanwhile);
  makeRepository(ground, { seed: 6 });
  const { code, out } = await ground.start(["-p", ...EDITS, ...RUN_TESTS, "A test fails. Mend it."]).ended;
  assert.deepEqual([code, out], [0, `All ${ALL_PASS.passed} tests pass.\n`]);
  assert.deepEqual(outline(ground), ["Bash", "Grep", "Read", "Edit failed", "Read", "Edit", "Bash"]);
  const { text, input } = callsOf(ground)[3] ?? {};
  assert.match(text ?? "", /was changed since it was read\. Read it again, .*Nothing was changed\.$/);
  assert.ok(readFileSync(String(input?.file_path), "utf8").endsWith(remark));
  assert.deepEqual([testsOf(ground), changedFiles(ground).length], [ALL_PASS, 1]);
  assertWarm(ground.simulator);
});

/** Prints what would help as soon as it starts, then waits forever. */
const REPORT = `import { existsSync, writeFileSync } from "node:fs";
const isForced = process.argv.includes("--force");
if (existsSync("report.lock") && !isForced) {
  console.log("waiting for report.lock to go; --force passes it by");
  setInterval(() => {}, 1_000);
} else {
  writeFileSync("report.txt", "forty-two\\n");
  console.log("written: report.txt");
}
`;

/** Runs the given command with a timeout; after a timeout, does what the command's output advised. */
const patientModel = ({ prompt, folder, last }: Seen): SimAnswer => {
  const [, command = ""] = /Run `([^`]+)`/.exec(prompt) ?? [];
  if (last === undefined) return callTools([bash(command, { timeout: 4_000 })]);
  if (last.name === "Read") return say(`The report says: ${linesShown(last.text).join(" ")}`);
  const [, advice] = /(--\w+) passes it by/.exec(last.text) ?? [];
  if (last.isError)
    return advice === undefined ? say("It hangs.") : callTools([bash(`${command} ${advice}`)], last.text);
  const [, file = ""] = /^written: (.*)$/m.exec(last.text) ?? [];
  return call("Read", { file_path: `${folder}/${file}` });
};

test("a command that hangs is killed in time, its output is kept, and the job continues", async () => {
  await using ground = await openGround(modelOf(patientModel));
  const name = `${basename(dirname(ground.work))}.js`;
  ground.put(name, REPORT);
  ground.put("report.lock", "");
  const prompt = `Run \`node ${name}\` and tell me what the report says.`;
  const argv = ["-p", "--allow", `Bash(node ${name}:*)`, "--output-format", "events", prompt];
  const { out: printed, ended } = ground.start(argv);
  while (!printed().includes('"call_started"')) await after(20);
  while (processesWith(name).length < 2) await after(20); // the session and its command
  const { code, out } = await ended;
  const lines = parsedLines(out);
  assert.deepEqual([code, lines.at(-1)?.result], [0, "The report says: forty-two"]);
  assert.deepEqual(
    lines.flatMap(({ type, tool: name, fault }) => (type === "call_ended" ? [[name, fault]] : [])),
    [
      ["Bash", "timed-out"],
      ["Bash", undefined],
      ["Read", undefined],
    ],
  );
  assert.equal(
    callsOf(ground)[0]?.text,
    "waiting for report.lock to go; --force passes it by\n[ended after 4000 ms: the time was up; above is what it had printed]",
  );
  assert.equal(ground.read("report.txt"), "forty-two\n");
  assert.deepEqual(processesWith(name), []);
  assertWarm(ground.simulator);
});
