import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "../src/main.ts";
import { captured } from "./captured.ts";

const ran = async (...argv: readonly string[]) => {
  const io = captured();
  const code = await run(argv, io);
  return { code, out: io.text(), err: io.errors() };
};

test("help lists every command, however it is asked for", async () => {
  for (const argv of [["help"], ["--help"], ["-h"], []]) {
    const { code, out, err } = await ran(...argv);
    assert.deepEqual([code, err], [0, ""]);
    for (const command of ["demo", "cost", "sim", "help"]) assert.match(out, new RegExp(`^  ${command}\\b`, "m"));
    assert.match(out, /Exit codes: 0 done, 1 failed, 2 called wrongly, 130 interrupted\./);
  }
});

test("each command explains its flags", async () => {
  for (const command of ["demo", "cost", "sim", "check-command", "check-path", "doctor"]) {
    const { code, out } = await ran("help", command);
    assert.equal(code, 0);
    assert.match(out, new RegExp(`^Usage: prefork ${command} `));
    assert.equal((await ran(command, "--help")).out, out);
  }
});

test("the version is printed alone", async () => {
  const { code, out } = await ran("--version");
  assert.equal(code, 0);
  assert.match(out, /^\d+\.\d+\.\d+\n$/);
});

test("a misspelt command is named, with what was probably meant", async () => {
  const { code, out, err } = await ran("dmeo");
  assert.deepEqual([code, out], [2, ""]);
  assert.equal(err, "prefork: unknown command 'dmeo' (Did you mean demo?)\n");
});

test("a command that a group does not have is named, with those that it has", async () => {
  const asked: readonly (readonly [string, string])[] = [
    [
      "worktrees remove x",
      "'remove' for 'prefork worktrees' (Did you mean prune?); commands: list, show, path, prune, repair",
    ],
    ["sessions rm", "'rm' for 'prefork sessions' (Did you mean delete?); commands: list, show, export, delete"],
    [
      "sessions lsit --json",
      "'lsit' for 'prefork sessions' (Did you mean list?); commands: list, show, export, delete",
    ],
    ["sessions --json 4711", "'4711' for 'prefork sessions'; commands: list, show, export, delete"],
    ["tasks kill --force 1", "'kill' for 'prefork tasks' (Did you mean stop?); commands: list, show, stop, resume"],
    ["mcp try files", "'try' for 'prefork mcp' (Did you mean test?); commands: list, add, remove, test"],
  ];
  for (const [line, said] of asked)
    assert.deepEqual(await ran(...line.split(" ")), { code: 2, out: "", err: `prefork: unknown command ${said}\n` });
  const named = await ran("sessions", "list", "x");
  assert.equal(named.err, "prefork: too many arguments for 'list'. Expected 0 arguments but got 1: x.\n");
  assert.equal((await ran("tasks", "--nope")).err, "prefork: unknown option '--nope'\n");
});

test("a command that is interrupted says nothing more and ends with 130", async () => {
  const interrupt = new AbortController();
  interrupt.abort();
  const io = captured({ signal: interrupt.signal });
  assert.equal(await run(["demo"], io), 130);
  assert.deepEqual([io.text(), io.errors()], ["", ""]);
});

test("help of a command that does not exist is one line and exit code 2", async () => {
  const { code, out, err } = await ran("help", "nope");
  assert.deepEqual([code, out, err], [2, "", "prefork: there is no command 'nope'; prefork help lists them\n"]);
});
