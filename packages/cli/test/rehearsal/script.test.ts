import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startEmbedded } from "../../src/rehearsal/index.ts";
import { FORMS } from "../../src/rehearsal/moves.ts";
import { ask, folderWith, play, type Run, TOOLS, toolsIn, user } from "./driver.ts";

const LABEL = "[rehearsal engine: no language model is behind this answer]";
const SOURCES = {
  "src/a.ts": "// TODO one\nexport const a = 1;\n",
  "src/b.ts": 'import { a } from "./a.ts";\n// TODO two\nconsole.log(a);\n',
  "README.md": "# Demo\n\nLast line\n",
};
const FORM_LINES = ["A rehearsal follows these forms, alone or as a list:", "```", ...FORMS, "```"];
const text = (...lines: readonly string[]): string => lines.join("\n");
const todos = (entries: Readonly<Record<string, string>>): object => ({
  TodoWrite: { todos: Object.entries(entries).map(([content, status]) => ({ content, status })) },
});

/** Plays one prompt in a folder with the sources above. */
const playPrompt = async (prompt: string, change: (run: Run) => Run = (run) => run, tools: typeof TOOLS = TOOLS) => {
  await using engine = await startEmbedded();
  using folder = folderWith(SOURCES);
  const run = change(toolsIn(folder.path));
  const played = await play({ url: engine.baseUrl, run, tools }, [user("<environment>\nhere\n</environment>", prompt)]);
  const files = Object.fromEntries(
    [...Object.keys(SOURCES), "notes.md"].flatMap((name) => {
      try {
        return [[name, readFileSync(join(folder.path, name), "utf8")]];
      } catch {
        return [];
      }
    }),
  );
  return { ...played, files };
};

test("a list is followed task by task, and the report contains what the tools returned", async () => {
  const { turns, text: said } = await playPrompt("1. Find TODO in src\n2. count lines in src/a.ts and read README.md");
  const titles = ["Find TODO in src", "count lines in src/a.ts and read README.md"] as const;
  assert.deepEqual(turns, [
    [
      todos({ [titles[0]]: "in_progress", [titles[1]]: "pending" }),
      { Grep: { pattern: "TODO", path: "src", output_mode: "content", "-n": true } },
    ],
    [todos({ [titles[0]]: "completed", [titles[1]]: "in_progress" }), { Bash: { command: "wc -l -- 'src/a.ts'" } }],
    [{ Read: { file_path: "README.md" } }],
    [todos({ [titles[0]]: "completed", [titles[1]]: "completed" })],
  ]);
  assert.equal(
    said,
    text(
      LABEL,
      "",
      "1. Find TODO in src",
      "   Grep `TODO` in src: 2 matching lines in 2 files",
      "     src/a.ts",
      "     1:// TODO one",
      "     src/b.ts",
      "     2:// TODO two",
      "",
      "2. count lines in src/a.ts and read README.md",
      "   Bash `wc -l -- 'src/a.ts'`: exit code 0",
      "     2 src/a.ts",
      "   Read README.md: lines 1 to 3",
      "     1\t# Demo",
      "     2\t",
      "     3\tLast line",
    ),
  );
});

test("a result that is missing or of an unknown form is reported as such, and not as an empty one", async () => {
  const prompt = "1. find TODO in src\n2. list *.ts files\n3. count TODO in src\n4. read README.md";
  const answers = async (searched: string, listed: string, counted = searched): Promise<readonly string[]> => {
    const answered: Readonly<Record<string, string>> = { Grep: searched, Glob: listed, Read: "" };
    const answer: Run = (name, { output_mode: mode }) => ({
      text: mode === "count" ? counted : (answered[name] ?? "ok"),
    });
    const { text: said } = await playPrompt(prompt, () => answer);
    return [...said.matchAll(/^ {3}(\S.*: .*)$/gm)].map(([, line = ""]) => line.replace(/^.*?: /, ""));
  };
  const [missing, unknown] = ["the tool returned no text", "the result has an unknown form"];
  assert.deepEqual(await answers("", ""), [missing, missing, missing, "no text"]);
  assert.deepEqual(await answers("undefinedundefined", "[cut]"), [unknown, "no files", unknown, "no text"]);
  const none = "Nothing found (what git ignores was not searched).";
  const remark = "[ripgrep is not installed; searching without it is slower and knows fewer patterns]";
  assert.deepEqual(await answers(`${none}\n${remark}`, "No files found"), [
    ...["nothing found", "no files", "0 lines in 0 files", "no text"],
  ]);
});

test("a single task makes no list, and a command is reported with its exit code", async () => {
  const { turns, text: said } = await playPrompt("run `ls src; exit 3`");
  assert.deepEqual(turns, [[{ Bash: { command: "ls src; exit 3" } }]]);
  assert.equal(
    said,
    text(LABEL, "", "1. run `ls src; exit 3`", "   Bash `ls src; exit 3`: exit code 3", "     a.ts", "     b.ts"),
  );
});

test("duplicates and files per folder are counted; a missing folder is a failure", async () => {
  const prompt =
    "- find duplicates of pattern `TODO|export` in src\n- find duplicates of `README` in src\n- count files per folder\n- find duplicates of `x` in lib";
  const { text: said } = await playPrompt(prompt);
  const skipped = "--exclude-dir=.git --exclude-dir=node_modules";
  const account = said
    .split("\n")
    .filter((line) => /^ {3}/.test(line))
    .map((line) => line.trim());
  assert.deepEqual(account, [
    `Bash \`grep -rhoE -e 'TODO|export' ${skipped} -- 'src' | sort | uniq -d\`: 1 match more than once`,
    "TODO",
    `Bash \`grep -rhoE -e 'README' ${skipped} -- 'src' | sort | uniq -d\`: no match occurs twice`,
    "Bash `find '.' -type f -not -path '*/.git/*' -not -path '*/node_modules/*' | sed 's|/[^/]*$||' | sort | uniq -c`: 3 files in 2 folders",
    "1 .",
    "2 ./src",
    `Bash \`grep -rhoE -e 'x' ${skipped} -- 'lib' | sort | uniq -d\`: could not look everywhere`,
    "grep: lib: No such file or directory",
  ]);
});

test("files are read, then changed exactly as the prompt says", async () => {
  const prompt =
    "- replace `a = 1` with `a = '$&'` in src/a.ts\n- append `more` to README.md\n- create file notes.md with:\n  ```\n  one\n    two\n  ```";
  const { turns, files } = await playPrompt(prompt);
  const calls = turns.flat().filter((call) => !("TodoWrite" in call));
  assert.deepEqual(calls, [
    { Read: { file_path: "src/a.ts" } },
    { Edit: { file_path: "src/a.ts", old_string: "a = 1", new_string: "a = '$&'" } },
    { Read: { file_path: "README.md" } },
    { Edit: { file_path: "README.md", old_string: "Last line", new_string: "Last line\nmore" } },
    { Read: { file_path: "notes.md" } },
    { Write: { file_path: "notes.md", content: "one\n  two\n" } },
  ]);
  assert.deepEqual(files, {
    ...SOURCES,
    "src/a.ts": "// TODO one\nexport const a = '$&';\n",
    "README.md": "# Demo\n\nLast line\nmore\n",
    "notes.md": "one\n  two\n",
  });
});

test("tools get absolute names if the request names its folder, and piped input is not a task", async () => {
  await using engine = await startEmbedded();
  using folder = folderWith(SOURCES);
  const environment = `<environment>\nWorking folder: ${folder.path}\nShell: bash\n</environment>`;
  const prompt = "replace `a = 1` with `a = 2` in ./src/a.ts\n\n<standard-input>\n1. run `id`\n</standard-input>";
  const played = await play({ url: engine.baseUrl, run: toolsIn(folder.path) }, [user(environment, prompt)]);
  const file_path = join(folder.path, "src/a.ts");
  assert.deepEqual(played.turns, [
    [{ Read: { file_path } }],
    [{ Edit: { file_path, old_string: "a = 1", new_string: "a = 2" } }],
  ]);
  assert.equal(readFileSync(file_path, "utf8"), "// TODO one\nexport const a = 2;\n");
});

test("a file that is there is not replaced by creating it", async () => {
  const { turns, text: said, files } = await playPrompt("create README.md with `x`");
  assert.deepEqual(turns, [[{ Read: { file_path: "README.md" } }]]);
  assert.deepEqual(files, SOURCES);
  assert.equal(
    said,
    text(
      LABEL,
      "",
      "1. create README.md with `x`",
      '   write README.md: not done: README.md already exists; "overwrite README.md with …" would replace it',
    ),
  );
});

test("an edit of a stale file is tried once more after reading it again", async () => {
  const refuse =
    (times: number) =>
    (run: Run): Run => {
      let left = times;
      return (name, input) => {
        if (name !== "Edit" || left === 0) return run(name, input);
        left -= 1;
        return { text: "src/a.ts was changed since it was read. Nothing was changed.", isError: true };
      };
    };
  const read = { Read: { file_path: "src/a.ts" } };
  const edit = { Edit: { file_path: "src/a.ts", old_string: "a = 1", new_string: "a = 2" } };
  const once = await playPrompt("replace `a = 1` with `a = 2` in src/a.ts", refuse(1));
  assert.deepEqual(once.turns, [[read], [edit], [read], [edit]]);
  assert.equal(once.files["src/a.ts"], "// TODO one\nexport const a = 2;\n");
  const always = await playPrompt("replace `a = 1` with `a = 2` in src/a.ts", refuse(9));
  assert.deepEqual(always.turns, [[read], [edit], [read], [edit]]);
  assert.equal(
    always.text,
    text(
      LABEL,
      "",
      "1. replace `a = 1` with `a = 2` in src/a.ts",
      "   Edit src/a.ts: Edit failed, also after reading the file again",
      "     src/a.ts was changed since it was read. Nothing was changed.",
    ),
  );
});

test("a denied call is reported and not repeated", async () => {
  const deny =
    (run: Run): Run =>
    (name, input) =>
      name === "Bash" || name === "Edit"
        ? { text: `Not allowed: the rule ${name}(…) would allow it`, isError: true }
        : run(name, input);
  const { turns, text: said } = await playPrompt("run `touch x`. Then replace `a` with `b` in src/a.ts", deny);
  assert.deepEqual(
    turns.flat().filter((call) => !("TodoWrite" in call)),
    [
      { Bash: { command: "touch x" } },
      { Read: { file_path: "src/a.ts" } },
      { Edit: { file_path: "src/a.ts", old_string: "a", new_string: "b" } },
    ],
  );
  assert.equal(
    said,
    text(
      LABEL,
      "",
      "1. run `touch x`",
      "   Bash `touch x`: Bash was denied",
      "     Not allowed: the rule Bash(…) would allow it",
      "",
      "2. replace `a` with `b` in src/a.ts",
      "   Edit src/a.ts: Edit was denied",
      "     Not allowed: the rule Edit(…) would allow it",
      "",
      "2 steps did not work; see above.",
    ),
  );
});

test("a tool that is not declared is named, and so are the forms when a task is not understood", async () => {
  const { turns, text: said } = await playPrompt(
    "- find X in src\n- dance",
    undefined,
    TOOLS.filter(({ name }) => name === "Bash"),
  );
  assert.deepEqual(turns, []);
  assert.equal(
    said,
    text(
      LABEL,
      "",
      "1. find X in src",
      "   Grep `X` in src: not done: the tool Grep is not declared in this session",
      "",
      "2. dance",
      '   "dance": not understood',
      "",
      "2 steps did not work; see above.",
      "",
      ...FORM_LINES,
    ),
  );
});

test("what is to be remembered stays on the list in later exchanges", async () => {
  await using engine = await startEmbedded();
  using folder = folderWith(SOURCES);
  const stage = { url: engine.baseUrl, run: toolsIn(folder.path) };
  const first = await play(stage, [user("remember to water the plants")]);
  assert.deepEqual(first.turns, [[todos({ "water the plants": "pending" })]]);
  const second = await play(stage, [...first.messages, user("- list src\n- git status")]);
  assert.deepEqual(second.turns[0], [
    todos({ "list src": "in_progress", "git status": "pending", "water the plants": "pending" }),
    { Glob: { pattern: "*", path: "src" } },
  ]);
});

test("equal runs give equal bytes, and only the request decides", async () => {
  const prompt = "- find TODO\n- run `cat README.md`\n- append `x` to README.md";
  const [one, two] = [await playPrompt(prompt), await playPrompt(prompt)];
  assert.deepEqual(one.messages, two.messages);
  await using engine = await startEmbedded();
  const third = await ask(engine.baseUrl, one.messages.slice(0, 3));
  const names = (content: typeof third) => content.map(({ name, input }) => ({ name, input }));
  assert.deepEqual(names(third), names(one.messages[3]?.content ?? []));
});

test("text is streamed in pieces", async () => {
  await using engine = await startEmbedded();
  const response = await fetch(`${engine.baseUrl}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "any", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: engine.model, max_tokens: 100, stream: true, messages: [user("dance")] }),
  });
  const pieces = [...(await response.text()).matchAll(/^data: (.*"text_delta".*)$/gm)].map(
    ([, json]) => (JSON.parse(json ?? "") as { delta: { text: string } }).delta.text,
  );
  assert.ok(pieces.length > 3, `${pieces.length} pieces`);
  assert.equal(pieces.join(""), text(LABEL, "", "1. dance", '   "dance": not understood', "", ...FORM_LINES));
});
