/** The input line: vi keys, and images that are pasted. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PromptImages, pathIn } from "../../src/tui/prompt-images.ts";
import { Screen } from "../../src/tui/screen.ts";
import { initialState } from "../../src/tui/state/index.ts";
import { EmulatedTerminal } from "./emulated.ts";

const ESC = "\u001b";
const state = { ...initialState({ cwd: "/w", columns: 60, rows: 20, now: 0 }), isOpening: false };

const openInput = (keys: "vi" | "default" = "vi"): Screen["input"] => {
  const terminal = new EmulatedTerminal(60, 20);
  const { input } = new Screen({
    theme: "none",
    terminal,
    state: () => state,
    onKey: () => false,
    onSubmit: () => undefined,
  });
  input.setKeys(keys);
  return input;
};

/** Types a text, goes to its start in normal mode, and presses keys. `|` is the cursor in the result. */
const after = (text: string, keys: string): string => {
  const input = openInput();
  for (const char of text) input.handleInput(char);
  input.handleInput(ESC);
  for (let line = 1; line < text.split("\n").length; line++) input.handleInput("k");
  for (const key of `0${keys}`) input.handleInput(key);
  const { line, col } = input.getCursor();
  return input
    .getLines()
    .map((one, index) => (index === line ? `${one.slice(0, col)}|${one.slice(col)}` : one))
    .join("\n");
};

test("vi keys move, delete, change, put and undo as in vi", () => {
  const table: readonly (readonly [text: string, keys: string, result: string])[] = [
    ["one two three", "w", "one |two three"],
    ["one two three", "2w", "one two |three"],
    ["one two three", "9w", "one two thre|e"],
    ["one two three", "e", "on|e two three"],
    ["one two three", "$b", "one two |three"],
    ["foo.bar baz", "w", "foo|.bar baz"],
    ["  one", "^", "  |one"],
    ["one", "$", "on|e"],
    ["one", "lll", "on|e"],
    ["one", "$hh", "|one"],
    ["one two", "x", "|ne two"],
    ["one two", "3x", "| two"],
    ["one two", "$x", "one t|w"],
    ["one two three", "dw", "|two three"],
    ["one two three", "d2w", "|three"],
    ["one two", "wdw", "one| "],
    ["one two", "wD", "one| "],
    ["one two", "$db", "one |o"],
    ["one two", "d$", "|"],
    ["one two", "wd0", "|two"],
    ["one two", "de", "| two"],
    ["one two", "dd", "|"],
    ["one\ntwo\nthree", "dd", "|two\nthree"],
    ["one\ntwo\nthree", "2dd", "|three"],
    ["one\ntwo", "jdd", "|one"],
    ["one\ntwo", "ddp", "two\n|one"],
    ["one\ntwo", "jddP", "|two\none"],
    ["one two", "cwnew", "new| two"],
    ["one two", "ccnew", "new|"],
    ["one two", "wCnew", "one new|"],
    ["one two", "xp", "n|oe two"],
    ["one two", "wdwP", "onetw|o "],
    ["one two", "rX", "|Xne two"],
    ["one two", "3rX", "XX|X two"],
    ["ab", "3rX", "|ab"],
    ["one", "iX", "X|one"],
    ["one", "aX", "oX|ne"],
    ["one", "AX", "oneX|"],
    [" one", "IX", " X|one"],
    ["one\ntwo", "oX", "one\nX|\ntwo"],
    ["one\ntwo", "OX", "X|\none\ntwo"],
    ["one two", "dwu", "|one two"],
    ["one two", "xxxu", "|e two"],
    ["one two", "xxx2u", "|ne two"],
    ["one two", "cwlong words\u001bu", "|one two"],
    ["one two", "zqd\u001bx", "|ne two"],
    ["日本語 e\u0301a", "x", "|本語 e\u0301a"],
    ["日本語 e\u0301a", "wx", "日本語 |a"],
    ["👩‍👩‍👧‍👦 x", "l", "👩‍👩‍👧‍👦| x"],
  ];
  for (const [text, keys, result] of table) assert.equal(after(text, keys), result, `${JSON.stringify(text)} ${keys}`);
});

test("Esc is the input's own in insert mode only, and a half-typed command is dropped", () => {
  const input = openInput();
  const takes = [input.facts.takesEscape];
  for (const key of [ESC, "2", ESC, "d", ESC, "i"]) {
    input.handleInput(key);
    takes.push(input.facts.takesEscape);
  }
  assert.deepEqual(takes, [true, false, true, false, true, false, true]);
  assert.equal(openInput("default").facts.takesEscape, false);
});

test("the border shows the mode, and a pasted text stays one chip that vi keys move over and delete whole", () => {
  const input = openInput();
  assert.match(input.render(60)[0] ?? "", /^── insert ─+$/);
  for (const char of "see ") input.handleInput(char);
  input.handleInput(`\u001b[200~${"line\n".repeat(30)}\u001b[201~`);
  for (const char of " now") input.handleInput(char);
  const whole = input.getExpandedText();
  for (const key of [ESC, "0", "w", "l"]) input.handleInput(key);
  assert.match(input.render(60)[0] ?? "", /^── normal ─+$/);
  assert.equal(input.getExpandedText(), whole);
  for (const key of "0wx") input.handleInput(key);
  assert.equal(input.getText(), "see  now");
  input.handleInput("u");
  assert.equal(input.getExpandedText(), whole);
});

test("any sequence of keys leaves a text without control characters, and a cursor on one of its characters", () => {
  const key = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(..."hjklwbe0^$xdcruapPiIAoODC123 ") },
    {
      weight: 2,
      arbitrary: fc.constantFrom(ESC, "\u001b[A", "\u001b[B", "\u001b[C", "\u001b[D", "\u007f", "\n", "\u000b"),
    },
    { weight: 2, arbitrary: fc.constantFrom("é", "日", "👩‍👩‍👧‍👦", "e\u0301", ".", "_", "\u001b[200~a\nb\u001b[201~") },
    { weight: 1, arbitrary: fc.constant(`\u001b[200~${"x\n".repeat(15)}\u001b[201~`) },
  );
  fc.assert(
    fc.property(fc.array(key, { maxLength: 60 }), (keys) => {
      const input = openInput();
      for (const one of keys) {
        input.handleInput(one);
        const { line, col } = input.getCursor();
        const text = input.getLines()[line];
        assert.ok(text !== undefined && col >= 0 && col <= text.length, `${line}:${col} after ${JSON.stringify(one)}`);
        assert.equal(input.getText(), input.getLines().join("\n"));
        assert.doesNotMatch(input.getText().replaceAll("\n", ""), /\p{Cc}/u);
        // Between two halves of a character the editor would draw neither.
        assert.ok(!/^[\udc00-\udfff]/.test(text.slice(col)), "inside a surrogate pair");
      }
    }),
    { numRuns: 150 },
  );
});

/** Enough of a picture to have a size. */
const png = (width: number, height: number): Buffer => {
  const bytes = Buffer.alloc(33);
  bytes.write("89504e470d0a1a0a0000000d49484452", "hex");
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
};

test("an image is named in the prompt, and sent as long as its name is there", () => {
  const images = new PromptImages();
  const [one, same, other] = [png(640, 480), png(640, 480), Buffer.concat([png(640, 480), Buffer.from("x")])].map(
    (bytes) => images.add("a].png", bytes),
  );
  assert.deepEqual(
    [one, same, other, images.add("b.png", Buffer.from("no picture")), images.add("c.png", Buffer.alloc(6_000_000))],
    ["[image a_.png, 640×480]", "[image a_.png, 640×480]", "[image a_.png (2), 640×480]", undefined, undefined],
  );
  const source = { kind: "base64", mediaType: "image/png", data: png(640, 480).toString("base64") };
  assert.deepEqual(images.promptOf(`What is ${one}?`), [
    { type: "image", source },
    { type: "text", text: "What is [image a_.png, 640×480]?" },
  ]);
  assert.equal(images.promptOf("What is [image a_.png, 640x480]?"), "What is [image a_.png, 640x480]?");
});

test("a pasted path may be quoted, escaped or an address of a file", () => {
  const paths = [
    "shot.png",
    "'/a b/c.JPG' ",
    "/a\\ b/c.jpeg",
    "file:///a%20b/c.webp",
    "/a.png\n/b.png",
    "a.txt",
    "file://%/x.png",
  ];
  assert.deepEqual(
    paths.map((path) => pathIn(path, "/w")),
    ["/w/shot.png", "/a b/c.JPG", "/a b/c.jpeg", "/a b/c.webp", undefined, undefined, undefined],
  );
});

test("no text that comes to the input line can control the terminal", () => {
  const hostile = `a${ESC}]0;title\u0007b\u009b2Jc\u202ed\ne`;
  const ways: Readonly<Record<string, (input: Screen["input"]) => void>> = {
    "put there": (input) => input.setText(hostile),
    inserted: (input) => input.insertTextAtCursor(hostile),
    pasted: (input) => input.handleInput(`${ESC}[200~${hostile}${ESC}[201~`),
    "from the history": (input) => {
      input.addToHistory(hostile);
      input.handleInput(`${ESC}[A`);
    },
  };
  for (const [way, come] of Object.entries(ways)) {
    const input = openInput("default");
    come(input);
    assert.deepEqual([way, input.getText()], [way, "a]0;titleb2Jcd\ne"]);
  }
});
