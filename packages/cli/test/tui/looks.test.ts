/** How the terminal looks: themes, code, diffs, the status line. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import type { JsonObject } from "@prefork/wire";
import fc from "fast-check";
import { loadCodeTools } from "../../src/tui/load-code-tools.ts";
import { notification } from "../../src/tui/notification.ts";
import { Screen } from "../../src/tui/screen.ts";
import { initialState, type State } from "../../src/tui/state/index.ts";
import { StatusCommand, statusFacts } from "../../src/tui/status-command.ts";
import { diffOfCall } from "../../src/tui/views/diff-lines.ts";
import { chooseTheme, renderBelow, renderBlock, type ThemeName, themeOf } from "../../src/tui/views/index.ts";
import { EmulatedTerminal } from "./emulated.ts";
import { anyText } from "./random-actions.ts";

const code = loadCodeTools();
const ESC = String.fromCharCode(27);
const COLOURS = new RegExp(`${ESC}\\[[\\d;]*m`, "g");
const withoutColours = (line: string): string => line.replace(COLOURS, "");

test("the theme fits the setting, the terminal's colours and its background", () => {
  const many = { TERM: "xterm-256color" };
  const white = { r: 250, g: 250, b: 240 };
  const table: readonly (readonly [ThemeName, Parameters<typeof chooseTheme>])[] = [
    ["none", ["dark", { hasColour: false, env: many }]],
    ["none", ["none", { hasColour: true, env: many }]],
    ["light", ["auto", { hasColour: true, env: many, background: white }]],
    ["dark", ["auto", { hasColour: true, env: many, background: { r: 30, g: 30, b: 46 } }]],
    ["system", ["auto", { hasColour: true, env: many }]],
    ["light", ["auto", { hasColour: true, env: { ...many, COLORFGBG: "0;15" } }]],
    ["dark", ["auto", { hasColour: true, env: { ...many, COLORFGBG: "15;default;0" } }]],
    ["light", ["light", { hasColour: true, env: many, background: { r: 0, g: 0, b: 0 } }]],
    ["system", ["dark", { hasColour: true, env: { TERM: "xterm" } }]],
    ["system", ["colour-blind", { hasColour: true, env: { TERM: "linux" } }]],
    ["dark", ["dark", { hasColour: true, env: { TERM: "xterm", COLORTERM: "truecolor" } }]],
    ["system", ["dark", { hasColour: true, env: { ...many, FORCE_COLOR: "1" } }]],
    ["dark", ["dark", { hasColour: true, env: { TERM: "vt220", FORCE_COLOR: "3" } }]],
  ];
  for (const [wanted, args] of table) assert.equal(chooseTheme(...args), wanted, JSON.stringify(args));
});

test("an edit shows the lines that differ, with context, and the words that differ within a line", () => {
  const args = {
    file_path: "a.ts",
    old_string: "one\ntwo\nthree\nfour\nconst a = first(1);\nlast",
    new_string: "one\ntwo\nthree\nfour\nconst a = second(1);\nlast\nnew",
  };
  const plain = ["  two", "  three", "  four", "- const a = first(1);", "+ const a = second(1);", "  last", "+ new"];
  for (const name of ["dark", "light", "system", "colour-blind", "none"] as const)
    assert.deepEqual(diffOfCall({ tool: "Edit", args }, themeOf(name, { code }))?.map(withoutColours), plain, name);
  assert.ok(
    diffOfCall({ tool: "Edit", args }, themeOf("dark", { code }))?.[3]?.includes("\u001b[48;5;88mfirst\u001b[49m"),
  );
  assert.deepEqual(diffOfCall({ tool: "Edit", args }, themeOf("none")), [
    ...plain.slice(0, 4),
    "- last",
    "+ const a = second(1);",
    "+ last",
    "+ new",
  ]);
});

test("whatever code says, its lines stay as they are, fit the screen and contain no sequence but our colours", () => {
  const language = fc.constantFrom("ts", "python", "bash", "json", "html", "rust", "nonsense", "");
  fc.assert(
    fc.property(
      fc.tuple(anyText, anyText),
      language,
      fc.constantFrom<ThemeName>("dark", "system"),
      ([a, b], lang, name) => {
        const theme = themeOf(name, { code });
        const tokens = code.tokenize(a, lang);
        if (tokens) assert.equal(tokens.map((line) => line.map(({ text }) => text).join("")).join("\n"), a);
        const args = { file_path: "x.ts", old_string: a, new_string: b };
        const coloured = diffOfCall({ tool: "Edit", args }, theme) ?? [];
        const plain = diffOfCall({ tool: "Edit", args }, themeOf("none", { code }));
        assert.deepEqual(coloured.map(withoutColours), plain);
        const look = { width: 50, theme, cwd: "/w", isOpen: true, now: 0 };
        const call = {
          kind: "call",
          callId: "c",
          tool: "Edit",
          args,
          state: "ended",
          output: "",
          startedAt: 0,
        } as const;
        for (const line of renderBlock(call, look)) {
          assert.ok(visibleWidth(line) <= 50);
          assert.doesNotMatch(withoutColours(line), /\p{Cc}/u);
        }
      },
    ),
    { numRuns: 150 },
  );
});

test("code above 20 kB, and lines above 1,000 characters, are not highlighted", () => {
  assert.equal(code.tokenize("let a = 1;\n".repeat(2_000), "ts"), undefined);
  assert.equal(code.tokenize("x".repeat(1_001), "ts"), undefined);
  assert.deepEqual(code.tokenize("let a", "ts"), [[{ text: "let", role: "keyword" }, { text: " a" }]]);
});

test("a language that was slow three times, under any of its names, is shown plain", () => {
  const tools = (ms: number): typeof code => {
    const clock = { ms: 0 };
    return loadCodeTools(() => {
      clock.ms += ms;
      return clock.ms;
    });
  };
  const isColoured = (shown: typeof code, name: string): boolean => shown.tokenize("let a", name) !== undefined;
  const [fast, slow] = [tools(20), tools(90)];
  assert.deepEqual(
    ["ts", "typescript", "ts", "ts"].map((name) => isColoured(fast, name)),
    [true, true, true, true],
  );
  const texts = ["let a", "let b", "let c", "let d"];
  const names = ["ts", "typescript", "tsx", "ts"];
  assert.deepEqual(
    [texts.map((text, index) => slow.tokenize(text, names[index] ?? "") !== undefined), isColoured(slow, "python")],
    [[true, true, true, false], true],
  );
});

test("no text stops the screen: code that is made to be slow is coloured in pieces, up to a limit", () => {
  const nasty: readonly (readonly [string, string])[] = [
    ["cs", "x<a> "],
    ["xml", "a a<"],
    ["cs", "a "],
  ];
  for (const [language, piece] of nasty) {
    const text = Array.from({ length: 390 }, () => piece.repeat(Math.floor(50 / piece.length))).join("\n");
    const before = process.cpuUsage();
    const lines = loadCodeTools().tokenize(text, language);
    const { user } = process.cpuUsage(before);
    assert.equal(lines?.map((tokens) => tokens.map((token) => token.text).join("")).join("\n"), text);
    assert.ok(user < 3_000_000, `${language} ${piece}: ${user / 1000} ms`); // it was minutes
  }
});

test("a context above 80 % of the window is called nearly full, and is shown in the narrowest terminal", () => {
  const status = (columns: number, prompt: number): string => {
    const state = initialState({ cwd: "/w", columns, rows: 24, now: 0, model: "claude-sonnet-5", engine: "anthropic" });
    return (
      renderBelow({ ...state, window: 200_000, cache: { read: prompt, prompt }, todayUsd: 1.5 }, themeOf("none"))[0] ??
      ""
    );
  };
  assert.equal(
    status(120, 161_000),
    "asks first · claude-sonnet-5 · context 161k of 200k, nearly full · 100 % cached · $0.0000 (today $1.50) · ? help",
  );
  assert.equal(status(40, 161_000), "context 161k of 200k, nearly full");
  assert.equal(status(40, 159_000), "asks first · $0.0000 · ? help");
});

test("a status command that fails is reported once; one that leaves programs behind still answers", async () => {
  const facts = statusFacts(initialState({ cwd: "/", columns: 80, rows: 24, now: 0 }));
  const ran = async (command: string, count: number): Promise<readonly string[]> => {
    const heard: string[] = [];
    const done = Promise.withResolvers<void>();
    const add = (text: string): void => {
      heard.push(text);
      if (heard.length === count) done.resolve();
    };
    const status = new StatusCommand({
      ...{ command, env: { PATH: "/usr/bin:/bin", ANTHROPIC_API_KEY: "secret" }, facts: () => facts },
      onLine: add,
      onFailure: (reason) => add(`failed: ${reason}`),
    });
    status.request();
    status.request();
    await done.promise;
    status.stop();
    return heard;
  };
  // A status command keeps no process alive, so the test does.
  const alive = setInterval(() => undefined, 1_000);
  const [left, failed] = await Promise.all([
    ran("sleep 60 & printf '\\033[31m%s\\n' \"key: $ANTHROPIC_API_KEY\"", 2),
    ran("exit 3", 1),
  ]).finally(() => clearInterval(alive));
  assert.deepEqual([left, failed], [["key:", "key:"], ["failed: ended with 3"]]);
});

const answer = (text: string, isDone: boolean): State => {
  const state = initialState({ cwd: "/w", columns: 80, rows: 24, now: 0 });
  const block = { kind: "answer", text, isDone } as const;
  return { ...state, isOpening: false, main: { ...state.main, ...(isDone ? { done: [block] } : { open: [block] }) } };
};

const openScreen = (state: State): { readonly terminal: EmulatedTerminal; readonly screen: Screen } => {
  const terminal = new EmulatedTerminal();
  const options = {
    theme: "dark",
    terminal,
    state: () => state,
    onKey: () => false,
    onSubmit: () => undefined,
  } as const;
  const screen = new Screen(options);
  screen.start();
  return { terminal, screen };
};

test("a fence is coloured once the highlighter is loaded, and nothing on the screen moves", async () => {
  const { terminal, screen } = openScreen(answer("Look:\n\n```ts\nconst a = 1;\n```", true));
  assert.ok(!terminal.written.includes("38;5;176mconst"));
  const coloured = Promise.withResolvers<void>();
  terminal.onWrite = (data) => data.includes("38;5;176mconst") && coloured.resolve();
  await terminal.settled();
  const before = terminal.lines();
  await coloured.promise;
  await terminal.settled();
  assert.deepEqual(terminal.lines(), before);
  assert.ok(!terminal.written.includes("\u001b[2J"), "the screen was not cleared");
  screen.stop();
});

test("the terminal's answer about its background arrives, and an unanswered question ends", async () => {
  const { terminal, screen } = openScreen(answer("", true));
  terminal.onWrite = (data) => data.includes("\u001b]11;?") && terminal.input("\u001b]11;rgb:ffff/ffff/dddd\u0007");
  assert.deepEqual(await screen.background(), { r: 255, g: 255, b: 221 });
  terminal.onWrite = () => undefined;
  assert.equal(await screen.background(), undefined);
  screen.stop();
});

test("paths of calls and addresses in answers are links that show where they lead", () => {
  const theme = themeOf("dark", { links: true });
  const look = { width: 120, theme, cwd: "/w", isOpen: false, now: 0 };
  const linksIn = (lines: readonly string[]): readonly (readonly [string, string])[] =>
    [...lines.join("\n").matchAll(new RegExp(`${ESC}\\]8;;([^${ESC}]+)${ESC}\\\\(.*?)${ESC}\\]8;;${ESC}`, "g"))].map(
      ([, target = "", text = ""]) => [target, withoutColours(text)],
    );
  const call = (tool: string, args: JsonObject): readonly (readonly [string, string])[] =>
    linksIn(renderBlock({ kind: "call", callId: "c", tool, args, state: "ended", output: "", startedAt: 0 }, look));
  const said = (text: string): readonly (readonly [string, string])[] =>
    linksIn(renderBlock({ kind: "answer", text, isDone: true }, look));
  assert.deepEqual(
    [
      call("Edit", { file_path: "/w/src/a b.ts", old_string: "a", new_string: "b" }),
      call("Read", { file_path: "src/x.ts", offset: 3 }),
      call("Grep", { pattern: "/etc", path: "/etc" }),
      call("Bash", { command: "cat src/x.ts" }),
      call("Read", { file_path: "a\u001b]8;;x\u0007" }),
      said("See https://a.example/b and <me@a.example>."),
      said("[https://good.example](https://evil.example) [doc](file:///w/x.md)"),
      said("[a](javascript:alert(1)) [b](vscode://x) [c](data:text/html,x) [d](./x.md)"),
    ],
    [
      [["file:///w/src/a%20b.ts", "src/a b.ts"]],
      [["file:///w/src/x.ts", "src/x.ts"]],
      [["file:///etc", "/etc"]],
      [],
      [],
      [
        ["https://a.example/b", "https://a.example/b"],
        ["mailto:me@a.example", "me@a.example"],
      ],
      [
        ["https://good.example/", "https://good.example"],
        ["https://evil.example/", "https://evil.example"],
        ["file:///w/x.md", "file:///w/x.md"],
      ],
      [],
    ],
  );
  const none = themeOf("none", { links: true });
  assert.ok(
    !renderBlock({ kind: "answer", text: "https://a.example", isDone: true }, { ...look, theme: none })
      .join()
      .includes(ESC),
  );
});

test("wide and combining characters wrap between characters, and none is lost, from 40 to 300 columns", () => {
  const piece = fc.constantFrom(
    "日本語",
    "e\u0301",
    "👩‍👩‍👧‍👦",
    "한국",
    "नमस्ते",
    "🇩🇪",
    "word",
    " ",
    "x".repeat(50),
    "・",
    "ﷺ",
  );
  const segmenter = new Intl.Segmenter();
  const characters = (text: string): readonly string[] =>
    [...segmenter.segment(text)].map(({ segment }) => segment).filter((one) => one.trim() !== "");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 80 }), fc.integer({ min: 40, max: 300 }), (pieces, width) => {
      const text = pieces.join("");
      const look = { width, theme: themeOf("none"), cwd: "/w", isOpen: false, now: 0 };
      for (const block of [
        { kind: "prompt", text },
        { kind: "notice", level: "info", text },
        { kind: "output", title: "", text },
      ] as const) {
        const lines = renderBlock(block, look);
        for (const line of lines) assert.ok(visibleWidth(line) <= width);
        const signs = block.kind === "prompt" ? ["❯"] : block.kind === "notice" ? ["·"] : [];
        assert.deepEqual(lines.flatMap(characters), [...signs, ...characters(text)]);
      }
    }),
    { numRuns: 60 },
  );
});

test("a notification contains our words only, in the form that the terminal knows", () => {
  const text = "Prefork needs an answer";
  assert.deepEqual(
    [
      notification("off", text, {}),
      notification("bell", text, {}),
      notification("desktop", `${text}\u001b]0;evil\u0007;x`, {}),
      notification("both", text, { VTE_VERSION: "7000" }),
      notification("desktop", text, { TERM: "foot" }),
      notification("desktop", text, { TMUX: "/tmp/tmux" }),
    ],
    [
      "",
      "\u0007",
      `\u001b]9;${text}0evilx\u0007`,
      `\u0007\u001b]777;notify;Prefork;${text}\u0007`,
      `\u001b]777;notify;Prefork;${text}\u0007`,
      `\u001bPtmux;\u001b\u001b]9;${text}\u0007\u001b\\`,
    ],
  );
});

test("the focus and the wheel are taken only where they are asked for, and given back at the end", () => {
  const page: State = { ...answer("", true), page: { kind: "text", title: "Page", text: "text", scroll: 0 } };
  const shown = { state: answer("", true) };
  const keys: string[] = [];
  const terminal = new EmulatedTerminal();
  const screen = new Screen({
    ...{ theme: "none", terminal, state: () => shown.state, onSubmit: () => undefined },
    onKey: (key) => keys.push(key) > 0,
  });
  screen.start();
  assert.doesNotMatch(terminal.written, /\[\?100\d[hl]/);
  screen.reportFocus();
  screen.useMouse(true);
  const seen = [screen.isFocused];
  for (const report of ["\u001b[O", "\u001b[I"]) {
    terminal.input(report);
    seen.push(screen.isFocused);
  }
  screen.drawNow();
  assert.ok(terminal.written.includes("\u001b[?1004h") && !terminal.written.includes("\u001b[?1000h"));
  shown.state = page;
  screen.drawNow();
  assert.ok(terminal.written.includes("\u001b[?1000h\u001b[?1006h"));
  terminal.input("\u001b[<65;3;4M");
  terminal.input("\u001b[<0;3;4M");
  assert.deepEqual(
    [seen, keys],
    [
      [undefined, false, true],
      ["down", "down", "down"],
    ],
  );
  screen.stop();
  assert.match(terminal.written, /\[\?1004l[\s\S]*\[\?1006l.*\[\?1000l/);
});
