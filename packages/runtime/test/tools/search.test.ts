import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { symlinkSync, utimesSync } from "node:fs";
import { test } from "node:test";
import { findProgram, findRipgrep, openReadOnlySandbox } from "@prefork/guard";
import { needs, uses } from "@prefork/testing/optional";
import type { JsonObject } from "@prefork/wire";
import { openToolFiles } from "../../src/tools/index.ts";
import { type Bench, bench, textOf } from "./tool-bench.ts";

const FILES: Readonly<Record<string, string>> = {
  ".gitignore": "dist\n*.log\n",
  "README.md": "# Title\n\nhello world\n",
  "src/app.ts": "export const hello = 1;\n// Hello again\nconst other = 2;\n\nconst last = hello;\n",
  "src/app.test.ts": "test('hello');\r\ntest('two');\r\n",
  "src/deep/er/x.py": "def hello():\n    pass\n",
  "src/-e": "hello from a file with a strange name\n",
  ".hidden/conf.yaml": "hello: yes\n",
  "dist/app.js": "hello built\n",
  "app.log": "hello log\n",
};

type Way = "our ripgrep" | "the system's ripgrep" | "without";

const WAYS = [
  ["our ripgrep", await needs("@vscode/ripgrep")],
  ["the system's ripgrep", await needs("rg")],
  ["without", {}],
] as const;

const programOf = (way: Way): string | null =>
  (way === "without" ? null : way === "our ripgrep" ? findRipgrep() : findProgram("rg")) ?? null;

const ground = async (
  way: Way,
  options: { mayRead?: () => (path: string) => boolean; git?: boolean } = {},
): Promise<Bench> => {
  const { mayRead, git = true } = options;
  const fileOptions = { ...(mayRead ? { mayRead } : {}), ripgrep: programOf(way) };
  const b = await bench({ fileOptions });
  for (const [at, [name, content]] of Object.entries(FILES).entries()) {
    b.put(name, content);
    utimesSync(b.at(name), 1_000 + at, 1_000 + at);
  }
  symlinkSync("/etc", b.at("out"));
  symlinkSync("/etc/hostname", b.at("src/link.ts"));
  if (git) {
    execFileSync("git", ["init", "-q"], { cwd: b.work });
    execFileSync("git", ["add", "-A"], { cwd: b.work });
  }
  b.context.files.noteOnce("[ripgrep is not installed; searching without it is slower and knows fewer patterns]");
  return b;
};

const ask = async (b: Bench, tool: string, args: JsonObject): Promise<readonly string[]> =>
  textOf(await b.call(tool, args)).split("\n");

for (const [way, decided] of WAYS) {
  test(`Glob finds names, newest first, without what git ignores (${way})`, decided, async () => {
    await using b = await ground(way);
    const glob = (pattern: string, path?: string) =>
      ask(b, "Glob", { pattern, ...(path === undefined ? {} : { path }) });
    assert.deepEqual(await glob("*.ts"), ["src/app.test.ts", "src/app.ts"]);
    assert.deepEqual(await glob("src/*.{ts,py}"), ["src/app.test.ts", "src/app.ts"]);
    assert.deepEqual(await glob("**/*.py"), ["src/deep/er/x.py"]);
    assert.deepEqual(await glob("./src/**/x.*"), ["src/deep/er/x.py"]);
    assert.deepEqual(await glob(`${b.work}/src/app.ts`), ["src/app.ts"]);
    assert.deepEqual(await glob("*", "src/deep"), ["src/deep/er/x.py"]);
    assert.deepEqual(await glob("*.yaml"), [".hidden/conf.yaml"]);
    assert.deepEqual(await glob("*.js", "dist"), ["dist/app.js"]);
    assert.deepEqual(await glob("*.log"), [`No file fits *.log in ${b.work} (what git ignores was not looked at).`]);
    assert.equal((await glob("**/*")).length, 7);
  });

  test(`Grep finds files, lines and counts (${way})`, decided, async () => {
    await using b = await ground(way);
    const grep = (args: JsonObject) => ask(b, "Grep", { pattern: "hello", ...args });
    assert.deepEqual(await grep({}), [
      ...[".hidden/conf.yaml", "README.md", "src/-e", "src/app.test.ts", "src/app.ts", "src/deep/er/x.py"],
    ]);
    assert.deepEqual(await grep({ output_mode: "count", type: "ts" }), ["src/app.test.ts: 1", "src/app.ts: 2"]);
    assert.deepEqual(await grep({ output_mode: "content", glob: "*.ts", "-i": true }), [
      ...["src/app.test.ts", "1:test('hello');", ""],
      ...["src/app.ts", "1:export const hello = 1;", "2:// Hello again", "5:const last = hello;"],
    ]);
    assert.deepEqual(
      await grep({ output_mode: "content", path: "src/app.ts", "-A": 1, pattern: "hello = 1|hello;$" }),
      [...["src/app.ts", "1:export const hello = 1;", "2-// Hello again", "--", "5:const last = hello;"]],
    );
    assert.deepEqual(
      await grep({ output_mode: "content", path: "src/app.ts", "-C": 1, "-n": false, pattern: "other" }),
      [...["src/app.ts", "// Hello again", "const other = 2;", ""]],
    );
    assert.deepEqual(await grep({ output_mode: "content", multiline: true, pattern: "hello.*?two" }), [
      ...["src/app.test.ts", "1:test('hello');", "2:test('two');"],
    ]);
    assert.deepEqual(await grep({ output_mode: "content", pattern: "'\\);$" }), [
      ...["src/app.test.ts", "1:test('hello');", "2:test('two');"],
    ]);
    assert.deepEqual(await grep({ glob: "src/**/*.py" }), ["src/deep/er/x.py"]);
    assert.deepEqual(await grep({ pattern: "nothing like it" }), [
      "Nothing found (what git ignores was not searched).",
    ]);
  });

  test(`results are capped, with the number of those not shown (${way})`, decided, async () => {
    await using b = await ground(way);
    for (let at = 0; at < 250; at++) b.put(`many/${String(at).padStart(3, "0")}.txt`, "needle\nneedle\n");
    assert.deepEqual(await ask(b, "Grep", { pattern: "needle", head_limit: 2 }), [
      ...["many/000.txt", "many/001.txt", "[248 more files; narrow the search or raise head_limit]"],
    ]);
    assert.deepEqual(await ask(b, "Grep", { pattern: "needle", head_limit: 3, output_mode: "content" }), [
      ...["many/000.txt", "1:needle", "2:needle", "", "many/001.txt", "1:needle"],
      "[497 more matching lines; narrow the search or raise head_limit]",
    ]);
    const globbed = await ask(b, "Glob", { pattern: "many/*" });
    assert.equal(globbed.length, 201);
    assert.equal(globbed.at(-1), "[50 more; narrow the pattern or the path]");
    b.put("wide.txt", `${"x".repeat(900)}needle\n`);
    const [, line = ""] = await ask(b, "Grep", { pattern: "needle", path: "wide.txt", output_mode: "content" });
    assert.equal(line, `1:${"x".repeat(500)}… [406 more characters]`);
  });

  test(`files that a rule denies are not found, and links are not followed (${way})`, decided, async () => {
    await using b = await ground(way, {
      mayRead: () => (path) => !path.includes("/src/deep/") && !path.endsWith(".md"),
    });
    assert.deepEqual(await ask(b, "Grep", { pattern: "hello" }), [
      ...[".hidden/conf.yaml", "src/-e", "src/app.test.ts", "src/app.ts"],
    ]);
    assert.deepEqual(await ask(b, "Grep", { pattern: "hello", path: "README.md", output_mode: "content" }), [
      "Nothing found (what git ignores was not searched).",
    ]);
    assert.deepEqual(await ask(b, "Glob", { pattern: "**/*.{py,md}" }), [
      `No file fits **/*.{py,md} in ${b.work} (what git ignores was not looked at).`,
    ]);
    for (const tool of ["Grep", "Glob"]) {
      assert.deepEqual(await b.call(tool, { pattern: "*", path: "out" }), {
        content: `${b.at("out")} is a link, and links are not followed; give the place it leads to.`,
        fault: "failed",
      });
      assert.equal((await b.call(tool, { pattern: "a", path: "out/hostname" })).fault, "failed");
    }
  });

  test(`a name with line breaks is shown as one line (${way})`, decided, async () => {
    await using b = await ground(way);
    b.put("src/odd\n[0 more]\u001b[2J", "hello odd\n");
    const shown = "src/odd\\n[0 more]\\u001b[2J";
    const globbed = textOf(await b.call("Glob", { pattern: "src/odd*" })).split("\n");
    assert.equal(globbed[0], shown);
    assert.ok(!globbed.includes("[0 more]"));
    const [found] = textOf(await b.call("Grep", { pattern: "hello odd" })).split("\n");
    // Without ripgrep no file with such a name is opened.
    assert.equal(found, way === "without" ? "Nothing found (what git ignores was not searched)." : shown);
  });

  test(`a pattern never becomes an option, whatever it begins with (${way})`, decided, async () => {
    await using b = await ground(way);
    b.put("src/flags", "--files -f /etc/passwd --pre=cat\n");
    for (const pattern of ["--files", "-f /etc/passwd", "--pre=cat"])
      assert.deepEqual(await ask(b, "Grep", { pattern }), ["src/flags"], pattern);
    assert.deepEqual(await ask(b, "Grep", { pattern: "hello", path: "src/-e" }), ["src/-e"]);
    assert.equal((await b.call("Grep", { pattern: "(" })).fault, "bad-input");
    assert.equal((await b.call("Grep", { pattern: "x", type: "no-such-type" })).fault, "bad-input");
    for (const pattern of ["/etc/*", "../*", "src/../../*"])
      assert.match(textOf(await b.call("Glob", { pattern })), /leads out of/, pattern);
    assert.equal((await b.call("Grep", { pattern: "x", path: "none" })).fault, "failed");
  });
}

const MORE_FILES: Readonly<Record<string, string>> = {
  "keep/.gitignore": "secret.txt\n",
  "keep/secret.txt": "hello\n",
  "keep/open.txt": "hello\n",
  "letters.txt": "grün\nÄPFEL\näpfel\nπ r²\n日本語\n𝒳y\na\thello\n[x] {y} a-b\n",
  "long.txt": `${"x".repeat(3_000)} hello ${"y".repeat(3_000)}\n`,
  "late.dat": `hello\n${"a".repeat(20_000)}\0\nhello\n`,
  "BM25.md": "BM25 says hello\n",
  "open end.h": "hello",
};

const PATTERNS: readonly string[] = [
  ...[
    "hello",
    "^hello",
    "hello$",
    "\\bhello\\b",
    "(?i)HELLO",
    "h[aeiou]llo",
    "[[:alpha:]]+llo",
    "^$",
    "hel{2}o",
    "hello|last",
  ],
  ...[
    "\\w+\\(\\)",
    "gr.n",
    "(?i)äpfel",
    "\\p{L}+",
    "\\W",
    "\\d",
    "^.y$",
    "\\x{3c0}",
    "π",
    "\\t",
    "(?P<n>hello)",
    "(?s)hello.",
  ],
  ...[
    "[^a-z]hello",
    "[]x]",
    "\\<hello\\>",
    "\\-",
    "\\'",
    "\\#",
    "\\{y\\}",
    "[{y]",
    "[\\w.-]+",
    "\\S+",
    "h.*?o",
    "\\B",
    "]",
    "[a-]",
  ],
];
const GLOBS: readonly string[] = [
  ...[
    "*",
    "**",
    "*.txt",
    "*.log",
    "*.{ts,py}",
    "!*.ts",
    "src/**",
    "!src/**",
    "!src",
    "!src/",
    "/README.md",
    "*.[tp][sy]",
  ],
  ...[
    "{src,keep}/**",
    "**/deep/**",
    "!deep",
    "dist/**",
    ".hidden/**",
    "./src/app.ts",
    "*/app.ts",
    "?*.h",
    "[",
    "{a",
    "src",
  ],
];
const SEVERAL_LINES: readonly string[] = ["hello.*?two", "^const.*\\n\\n", "\\n\\n", "hello$\\n", "(?s)Title.*world"];

test("searches find the same with and without ripgrep", await needs("@vscode/ripgrep"), async () => {
  await using b = await ground("our ripgrep");
  for (const [name, content] of Object.entries(MORE_FILES)) b.put(name, content);
  await using without = await openToolFiles({ roots: [b.work], cwd: b.work, ripgrep: null });
  without.noteOnce("[ripgrep is not installed; searching without it is slower and knows fewer patterns]");
  const modes = ["content", "count"].map((output_mode) => ({ output_mode }));
  const searches: readonly JsonObject[] = [
    ...PATTERNS.map((pattern) => ({ pattern, output_mode: "content" })),
    ...GLOBS.map((glob) => ({ pattern: "hello", glob })),
    ...SEVERAL_LINES.flatMap((pattern) => modes.map((mode) => ({ pattern, multiline: true, ...mode }))),
    ...["keep", "dist", "keep/secret.txt", "src/app.ts"].map((path) => ({ pattern: "hello", path, "-C": 1 })),
  ];
  for (const search of searches) {
    const found = await b.call("Grep", search);
    assert.deepEqual(await b.call("Grep", search, { files: without }), found, JSON.stringify(search));
  }
});

test("a glob does not bring back what git ignores", await needs("@vscode/ripgrep"), async () => {
  await using b = await ground("our ripgrep");
  const none = ["Nothing found (what git ignores was not searched)."];
  for (const glob of ["*.log", "dist/**", "*.js"])
    assert.deepEqual(await ask(b, "Grep", { pattern: "hello", glob }), none, glob);
  const all = await ask(b, "Grep", { pattern: "hello", glob: "*" });
  assert.deepEqual(
    all.filter((name) => /dist|\.log/.test(name)),
    [],
  );
});

test("a pattern that needs ripgrep is refused with an explanation, and not searched for as something else", async () => {
  await using b = await ground("without");
  for (const pattern of [
    "\\Ahello",
    "hello\\z",
    "[a&&b]",
    "[\\w--h]",
    "(?x) hello",
    "(?-u:h)ello",
    "\\Qa\\E",
    "\\h",
    "x(?=y)",
  ]) {
    const { content, fault } = await b.call("Grep", { pattern });
    assert.equal(fault, "bad-input", pattern);
    assert.match(
      String(content),
      /^Not searched: the pattern cannot be read: .* needs ripgrep, which is not installed$/,
    );
  }
});

test("searches use the ripgrep that is there, and say once if there is none", uses("@vscode/ripgrep"), async () => {
  await using b = await bench();
  b.put("a.txt", "needle");
  const note = "[ripgrep is not installed; searching without it is slower and knows fewer patterns]";
  const notes = findRipgrep() === undefined ? [note] : [];
  assert.deepEqual(await ask(b, "Grep", { pattern: "needle" }), ["a.txt", ...notes]);
  assert.deepEqual(await ask(b, "Glob", { pattern: "*" }), ["a.txt"]);
});

test("without git and ripgrep every file counts, and the missing program is mentioned once", async () => {
  await using b = await bench({ fileOptions: { ripgrep: null } });
  b.put("a/x.log", "needle");
  b.put("b.txt", "needle");
  b.put(".git/config-like", "needle");
  const note = "[ripgrep is not installed; searching without it is slower and knows fewer patterns]";
  assert.deepEqual(await ask(b, "Grep", { pattern: "needle" }), ["a/x.log", "b.txt", note]);
  assert.deepEqual(await ask(b, "Grep", { pattern: "needle" }), ["a/x.log", "b.txt"]);
});

test("without ripgrep, a pattern that would never finish is aborted", async () => {
  await using b = await bench({ fileOptions: { ripgrep: null } });
  b.put("a", `${"a".repeat(40)}!`);
  let ticks = 0;
  const ticking = setInterval(() => ticks++, 5); // counting turns for two seconds would keep a core busy
  assert.deepEqual(await b.call("Grep", { pattern: "^(a+)+$" }), {
    content: "Not searched: the pattern takes too long; make it simpler",
    fault: "bad-input",
  });
  clearInterval(ticking);
  assert.ok(ticks > 10, "others go on meanwhile");
  using edges = countTurns();
  assert.match(textOf(await b.call("Grep", { pattern: "\\b".repeat(500) })), /^a(?:\n|$)|too long/);
  assert.ok(edges.stop() > 10, "others go on while it is compiled");
  const unread = await b.call("Grep", { pattern: `${"(?:a|b)".repeat(100)}x{2,1}` });
  assert.match(textOf(unread), /^Not searched: the pattern cannot be read: .*out of order/);
  const pattern = `${"(?:a|".repeat(10_000)}${")".repeat(10_000)}`;
  assert.deepEqual(await b.call("Grep", { pattern }), {
    content: "Not searched: the pattern cannot be read: it is longer than 2000 characters",
    fault: "bad-input",
  });
});

/** Counts the turns of the event loop until it is stopped or goes out of scope, so that a failed test can still end. */
const countTurns = (): Disposable & { readonly stop: () => number; readonly count: () => number } => {
  let count = 0;
  let next = setImmediate(function again() {
    count += 1;
    next = setImmediate(again);
  });
  const stop = (): number => {
    clearImmediate(next);
    return count;
  };
  return { stop, count: () => count, [Symbol.dispose]: () => void stop() };
};

test("a glob that repeats itself takes no longer than another", async () => {
  await using b = await ground("without");
  b.put("a".repeat(200), "hello");
  b.put("tsconfig.build.development.json", "hello");
  const none = "Nothing found (what git ignores was not searched).";
  for (const glob of ["*a*a*a*a*a*a*a*a*b", "*?*?*?*?*?*?*?*?*?*?*?*?*?*?*Z", "{a,a}".repeat(150)]) {
    assert.match(textOf(await b.call("Glob", { pattern: glob })), /^No file fits/);
    assert.equal(textOf(await b.call("Grep", { pattern: "hello", glob })), none);
  }
  const ranges = `*{${"{1..999},".repeat(108)}}x`;
  assert.equal(textOf(await b.call("Glob", { pattern: ranges })), "The pattern has ranges of more than 100 numbers.");
  const deep = `${"{a,".repeat(8_000)}${"}".repeat(8_000)}`;
  assert.deepEqual(
    [await b.call("Glob", { pattern: deep }), await b.call("Grep", { pattern: "hello", glob: deep })],
    [
      { content: "The pattern is longer than 1000 characters.", fault: "failed" },
      { content: "Not searched: the glob is longer than 1000 characters.", fault: "bad-input" },
    ],
  );
});

test("a search that asks about many files lets others work in between", async () => {
  using turns = countTurns();
  const asked: number[] = [];
  const mayRead = () => () => {
    asked.push(turns.count());
    for (const start = performance.now(); performance.now() - start < 2; );
    return true;
  };
  await using b = await ground("without", { mayRead });
  for (let at = 0; at < 40; at += 1) b.put(`many/${at}.txt`, "needle");
  for (const [tool, args] of [
    ["Glob", { pattern: "many/*" }],
    ["Grep", { pattern: "needle", path: "many" }],
  ] as const) {
    asked.length = 0;
    assert.equal((await ask(b, tool, args)).length, 40);
    assert.ok(new Set(asked).size > 5, tool);
  }
  turns.stop();
});

test("without ripgrep, a file of a million matches is searched with lines around", async () => {
  await using b = await ground("without");
  b.put("lines", "\n".repeat(1_200_000));
  const found = await ask(b, "Grep", { pattern: "^$", path: "lines", output_mode: "content", "-C": 100 });
  assert.deepEqual(found.slice(-2), [
    "[1000000 more matching lines; narrow the search or raise head_limit]",
    "[the search was ended before it was through; narrow it]",
  ]);
  assert.deepEqual(await ask(b, "Grep", { pattern: "^$", path: "lines", output_mode: "count" }), ["lines: 1200000"]);
});

test("a repository's configuration starts nothing when git lists its files", async () => {
  await using b = await ground("without");
  execFileSync("git", ["config", "core.fsmonitor", `touch ${b.at("started")}; false`], { cwd: b.work });
  assert.equal((await ask(b, "Glob", { pattern: "*.ts" })).length, 2);
  assert.equal((await ask(b, "Glob", { pattern: "started" })).length, 1);
});

test("searches run in the read-only sandbox if there is one", await needs("bwrap"), async () => {
  const opened = await openReadOnlySandbox({ mode: "required" });
  assert.ok(opened.kind === "on");
  await using b = await ground("our ripgrep");
  let entered = 0;
  const readOnlySandbox = {
    ...opened.sandbox,
    enter: (argv: readonly string[], cwd: string) => {
      entered++;
      return opened.sandbox.enter(argv, cwd);
    },
  };
  const found = await b.call("Grep", { pattern: "hello", type: "py" }, { readOnlySandbox });
  assert.deepEqual(found, { content: "src/deep/er/x.py" });
  assert.deepEqual(await b.call("Glob", { pattern: "*.py" }, { readOnlySandbox }), { content: "src/deep/er/x.py" });
  assert.equal(entered, 2);
});

test("a pipe in place of an ignore file is reported and not waited for", uses("@vscode/ripgrep"), async () => {
  await using b = await bench({});
  b.put("src/app.ts", "hello\n");
  execFileSync("mkfifo", [b.at("src/.gitignore")]);
  const said = `${b.at("src/.gitignore")} is not a regular file, and a search would wait for it`;
  for (const [tool, args] of [
    ["Glob", { pattern: "**/*.ts" }],
    ["Grep", { pattern: "hello", output_mode: "content" }],
  ] as const)
    assert.ok(textOf(await b.call(tool, args)).includes(said), tool);
});

for (const [way, decided] of WAYS)
  test(`a name with a line break is judged as a whole (${way})`, decided, async () => {
    await using b = await ground(way, { mayRead: () => (path) => !path.includes("/private/"), git: false });
    b.put(`private/d\n${b.work}/shown/key`, "hello secret\n");
    b.put("private/d\nx/key", "hello secret\n");
    for (const mode of ["content", "count", "files_with_matches"])
      assert.doesNotMatch(
        (await ask(b, "Grep", { pattern: "hello", output_mode: mode })).join("\n"),
        /secret|key/,
        mode,
      );
  });

test("an aborted search ends with the call", async () => {
  await using b = await ground("our ripgrep");
  const signal = AbortSignal.abort();
  await assert.rejects(b.call("Grep", { pattern: "hello" }, { signal }), { name: "AbortError" });
  await assert.rejects(b.call("Glob", { pattern: "*" }, { signal }), { name: "AbortError" });
});

test("a file that is too large to read is searched only if it is named", await needs("@vscode/ripgrep"), async () => {
  await using b = await ground("our ripgrep");
  b.put("large", `needle\n${"a".repeat(33 * 1024 * 1024)}`);
  b.put("small", "needle\n");
  await using without = await openToolFiles({ roots: [b.work], cwd: b.work, ripgrep: null });
  const found = await b.call("Grep", { pattern: "needle" }, { files: without });
  assert.equal(textOf(found).split("\n")[0], "small");
  assert.deepEqual(await ask(b, "Grep", { pattern: "needle" }), ["small"]);
  assert.deepEqual(await ask(b, "Grep", { pattern: "needle", path: "large" }), ["large"]);
});
