import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "commander";
import { splitWords } from "../src/commands/editor.ts";
import { addCommands, loadTerminal } from "../src/commands/index.ts";
import { addHelpPages, examplesOf } from "../src/help/index.ts";
import { newCommand } from "../src/io.ts";
import { run, wordsOf } from "../src/main.ts";
import { widthOf } from "../src/width.ts";
import { captured } from "./captured.ts";

const ran = async (...argv: readonly string[]) => {
  const io = captured();
  const code = await run(argv, io);
  return { code, out: io.text(), err: io.errors() };
};

/** The commands that a help text lists, in order. */
const listed = (help: string): readonly string[] =>
  [...help.matchAll(/^ {2}([a-z][a-z-]*)\b/gm)].map(([, name = ""]) => name);

test("help lists the common commands first, however it is requested, and the others under more", async () => {
  for (const argv of [["help"], ["--help"], ["-h"], []]) {
    const { code, out, err } = await ran(...argv);
    assert.deepEqual([code, err], [0, ""]);
    assert.deepEqual(listed(out), [
      ...["sessions", "tasks", "attach", "worktrees", "explain", "cache", "mcp", "trust", "config", "doctor"],
      ...["completion", "help"],
    ]);
    assert.match(out, /Exit codes: 0 done, 1 failed, 2 usage error, 130 interrupted\./);
  }
  const more = await ran("help", "more");
  assert.deepEqual(
    [more.code, listed(more.out)],
    [
      0,
      [
        ...["print", "tour", "demo", "check-command", "check-path", "ps", "merge", "rewind"],
        ...["cost", "xray", "proxy", "sim"],
      ],
    ],
  );
});

test("a command that moved into a group still works under its old name", async () => {
  const moved = [["cost"], ["xray"], ["proxy"], ["sim"]].map(([name = ""]) => [name, `cache ${name}`] as const);
  for (const [old, now] of [...moved, ["merge", "worktrees merge"] as const]) {
    const [before, after] = [await ran(...old.split(" "), "--help"), await ran(...now.split(" "), "--help")];
    assert.deepEqual(after, { ...before, out: before.out.replace(`Usage: prefork ${old}`, `Usage: prefork ${now}`) });
    assert.deepEqual(await ran("help", ...now.split(" ")), after);
  }
  assert.equal((await ran("cache")).out, (await ran("cache", "--help")).out);
});

/** Every command with its names, and with actions that do nothing. */
const everyCommand = async () => {
  const io = captured();
  const program = await addCommands(newCommand("prefork", io), [], io);
  const terminal = (await loadTerminal())(async () => 0)(io);
  addHelpPages(terminal, ["terminal"]);
  program.addCommand(terminal);
  const found: (readonly [path: readonly string[], command: Command])[] = [];
  const walk = (command: Command, path: readonly string[]): void => {
    found.push([path, command.action(() => {})]);
    for (const below of command.commands) walk(below, [...path, below.name()]);
  };
  for (const command of program.commands) walk(command, [command.name()]);
  return { io, program, found };
};

test("every help has a synopsis, a description, options and examples, and no line over 100 columns", async () => {
  const { COLUMNS: before } = process.env;
  try {
    for (const columns of ["300", "100", "80"]) {
      process.env.COLUMNS = columns;
      const { io, found } = await everyCommand();
      assert.ok(found.length > 40, String(found.length));
      for (const [path, command] of found) {
        const start = io.text().length;
        command.outputHelp();
        const help = io.text().slice(start);
        const name = path.join(" ");
        const titles = [...help.matchAll(/^([A-Z][\w ]*):/gm)].map(([, title]) => title);
        for (const title of ["Usage", "Options", "Examples"])
          assert.equal(titles.filter((one) => one === title).length, 1, `${name}: ${title}`);
        assert.match(help, /^Usage: .*\n\n\S/, name);
        const long = help.split("\n").filter((line) => widthOf(line) > 100 || / $/.test(line));
        assert.deepEqual([name, long], [name, []]);
      }
    }
  } finally {
    if (before === undefined) delete process.env.COLUMNS;
    else process.env.COLUMNS = before;
  }
});

/** The words of an example's prefork command, without what the shell does around it. */
const wordsIn = (example: string): readonly string[] => {
  const [, inner = example] = /[(](prefork [^)]*)[)]/.exec(example) ?? [];
  const line = inner.split(/ [|] (?=prefork)/).at(-1) ?? "";
  return splitWords(line.split(/ [<>] /)[0] ?? "");
};

test("every example in a help text parses", async () => {
  const { io, program, found } = await everyCommand();
  const terminal = captured({ isTerminal: true, inputIsTerminal: true });
  let count = 0;
  for (const [path] of found) {
    const examples = examplesOf(path);
    assert.ok(examples.length >= 2 && examples.length <= 3, path.join(" "));
    for (const example of examples) {
      const [name, ...argv] = wordsIn(example);
      assert.equal(name, "prefork", example);
      await assert.doesNotReject(program.parseAsync([...wordsOf(argv, terminal)], { from: "user" }), example);
      count += 1;
    }
  }
  assert.ok(count > 90, String(count));
  for (const words of [
    ["sessions", "show"],
    ["sessions", "list", "--nope"],
    ["config", "edit", "--scope", "all"],
  ])
    await assert.rejects(program.parseAsync(words, { from: "user" }), { name: "UsageError" });
  assert.deepEqual([io.text(), io.errors()], ["", ""]);
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
      "'remove' for 'prefork worktrees' (Did you mean prune?); commands: list, show, path, prune, repair, merge",
    ],
    [
      "sessions rm",
      "'rm' for 'prefork sessions' (Did you mean delete?); commands: list, show, search, rename, export, delete, tree, rewind",
    ],
    [
      "sessions lsit --json",
      "'lsit' for 'prefork sessions' (Did you mean list?); commands: list, show, search, rename, export, delete, tree, rewind",
    ],
    [
      "sessions --json 4711",
      "'4711' for 'prefork sessions'; commands: list, show, search, rename, export, delete, tree, rewind",
    ],
    ["tasks kill --force 1", "'kill' for 'prefork tasks' (Did you mean stop?); commands: list, show, stop, resume"],
    ["cache simm", "'simm' for 'prefork cache' (Did you mean sim?); commands: cost, xray, proxy, sim"],
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

test("help for an unknown command is a usage error of one line", async () => {
  const { code, out, err } = await ran("help", "nope");
  assert.deepEqual([code, out, err], [2, "", "prefork: there is no command 'nope' (prefork help lists them)\n"]);
});
