import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { bench, textOf } from "./tool-bench.ts";

test("lines are numbered, the whole file or a part, and the note says how to read on", async () => {
  await using b = await bench();
  b.put("a.txt", "one\n\tzwei\r\n日本\n");
  const whole = "1\tone\n2\t\tzwei\n3\t日本";
  assert.deepEqual(await b.call("Read", { file_path: "a.txt" }), { content: whole });
  assert.deepEqual(await b.call("Read", { file_path: b.at("a.txt"), offset: 0 }), { content: whole });
  assert.deepEqual(await b.call("Read", { file_path: "a.txt", offset: 2, limit: 1 }), {
    content: "2\t\tzwei\n[lines 2 to 2 of 3; read on with offset 3]",
  });
  assert.deepEqual(await b.call("Read", { file_path: "a.txt", offset: 4 }), {
    content: "a.txt has 3 lines; there is no line 4.",
    fault: "failed",
  });
  b.put("empty");
  assert.deepEqual(await b.call("Read", { file_path: "empty" }), { content: "empty is empty." });
});

test("long files and long lines are truncated with a note", async () => {
  await using b = await bench();
  b.put("long", Array.from({ length: 3_000 }, (_, at) => `line ${at + 1}`).join("\n"));
  const long = textOf(await b.call("Read", { file_path: "long" })).split("\n");
  assert.equal(long.length, 2_001);
  assert.deepEqual(long.slice(-2), ["2000\tline 2000", "[lines 1 to 2000 of 3000; read on with offset 2001]"]);
  b.put("wide", `${"é".repeat(2_500)}\nnext`);
  assert.equal(
    textOf(await b.call("Read", { file_path: "wide" })),
    `1\t${"é".repeat(2_000)}… [500 more characters]\n2\tnext`,
  );
  b.put("both", Array.from({ length: 100 }, () => "x".repeat(1_500)).join("\n"));
  const both = textOf(await b.call("Read", { file_path: "both" }));
  assert.match(both, /\n\[lines 1 to 46 of 100; read on with offset 47\]$/);
  b.put("letters", Array.from({ length: 100 }, () => "語".repeat(500)).join("\n"));
  assert.match(
    textOf(await b.call("Read", { file_path: "letters" })),
    /\n\[lines 1 to 46 of 100; read on with offset 47\]$/,
  );
});

test("a file that is too large is refused with an alternative", async () => {
  await using b = await bench();
  b.put("huge", "x");
  truncateSync(b.at("huge"), 40_000_000);
  const { content, fault } = await b.call("Read", { file_path: "huge" });
  assert.deepEqual(
    { content, fault },
    {
      content:
        "huge: the file has 40000000 bytes; at most 33554432 are read. Find the lines with Grep, or cut them out with a command.",
      fault: "failed",
    },
  );
});

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA2iEnWAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==",
  "base64",
);
const GIF = Buffer.from("R0lGODlhBQAHAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");
const JPEG = Buffer.concat([
  Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0x00, 0x04, 0x00, 0x00, 0xff, 0xc0, 0x00, 0x11, 0x08]),
  Buffer.from([0x00, 0x10, 0x00, 0x20, 0x03, 0xff, 0xd9]),
]);
const WEBP = Buffer.concat([
  Buffer.from("RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f", "latin1"),
  Buffer.from([0x02, 0xc0, 0x00, 0x00]),
  Buffer.alloc(8),
]);

test("images are recognised by their bytes and shown as images", async () => {
  await using b = await bench();
  const pictures = [
    ["a.txt", PNG, "image/png", "2 × 3"],
    ["b.gif", GIF, "image/gif", "5 × 7"],
    ["c.jpg", JPEG, "image/jpeg", "32 × 16"],
    ["d.webp", WEBP, "image/webp", "3 × 4"],
  ] as const;
  for (const [name, bytes, type, size] of pictures) {
    writeFileSync(b.at(name), bytes);
    assert.deepEqual(await b.call("Read", { file_path: name }), {
      content: [
        { type: "text", text: `${name}: ${type}, ${size} pixels` },
        { type: "image", source: { kind: "base64", mediaType: type, data: bytes.toString("base64") } },
      ],
    });
  }
});

test("images that a provider would refuse are refused before they enter the conversation", async () => {
  await using b = await bench();
  const wide = Buffer.from(PNG);
  wide.writeUInt32BE(8_001, 16);
  writeFileSync(b.at("wide.png"), wide);
  writeFileSync(b.at("big.png"), Buffer.concat([PNG, Buffer.alloc(3_700_000)]));
  writeFileSync(b.at("cut.png"), PNG.subarray(0, 18));
  writeFileSync(b.at("cut.jpg"), JPEG.subarray(0, 10));
  const said = async (name: string): Promise<string> => textOf(await b.call("Read", { file_path: name }));
  assert.match(await said("wide.png"), /8001 × 3 pixels; at most 8000 a side/);
  assert.match(await said("big.png"), /picture of 37\d+ bytes; at most 3700000/);
  assert.equal(await said("cut.png"), "cut.png begins like image/png but is cut off or damaged.");
  assert.equal(await said("cut.jpg"), "cut.jpg begins like image/jpeg but is cut off or damaged.");
});

test("other binary files are refused with their kind", async () => {
  await using b = await bench();
  b.put("a.pdf", "%PDF-1.7\nnot really");
  writeFileSync(b.at("b"), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0]));
  execFileSync("gzip", ["-k", "a.pdf"], { cwd: b.work });
  writeFileSync(b.at("c"), Buffer.from([1, 2, 0, 3]));
  const said = async (name: string): Promise<string> => textOf(await b.call("Read", { file_path: name }));
  assert.match(await said("a.pdf"), /^a\.pdf is a PDF document \(19 bytes\), .*pdftotext/);
  assert.match(await said("b"), /^b is an ELF program or library \(6 bytes\)/);
  assert.match(await said("a.pdf.gz"), /is gzip-compressed data/);
  assert.match(await said("c"), /is binary data of an unknown kind \(4 bytes\)/);
});

test("text in other encodings is shown with a note that it cannot be edited", async () => {
  await using b = await bench();
  writeFileSync(b.at("latin"), Buffer.from("caf\xe9\n", "latin1"));
  writeFileSync(b.at("wide"), Buffer.from("\ufeffhé\n", "utf16le"));
  const note = (encoding: string): string => `[the file is ${encoding} text, which can be read and not edited]`;
  assert.equal(textOf(await b.call("Read", { file_path: "latin" })), `1\tcafé\n${note("latin-1")}`);
  assert.equal(textOf(await b.call("Read", { file_path: "wide" })), `1\thé\n${note("utf-16")}`);
});

test("what is not a readable file is refused with what it is, and what there is instead", async () => {
  await using b = await bench();
  b.put("src/session.ts", "x");
  mkdirSync(b.at("folder"));
  symlinkSync("/etc/passwd", b.at("out"));
  symlinkSync(b.base.path, b.at("up"));
  const said = async (file_path: string): Promise<string> => {
    const { content, fault } = await b.call("Read", { file_path });
    assert.equal(fault, "failed");
    return String(content);
  };
  assert.equal(
    await said("src/sesion.ts"),
    `src/sesion.ts: there is no such file. There is ${b.at("src/session.ts")}.`,
  );
  assert.equal(await said("nowhere/x"), "nowhere/x: there is no such folder.");
  assert.equal(
    await said("folder"),
    `folder: this is a folder; list it with Glob (path ${b.at("folder")}, pattern *).`,
  );
  assert.equal(
    await said("out"),
    "out: this is a link to /etc/passwd, and links are not followed; read what it leads to.",
  );
  assert.equal(await said("up/x"), "up/x: up is a link, and links are not followed.");
  assert.equal(await said("../x"), "../x: there is no such file.");
  assert.match(await said("/proc/self/environ"), /it is not an ordinary folder/);
});

test("a few lines of a file that consists of line ends are shown", async () => {
  await using b = await bench();
  const file_path = b.put("f", "\r\n".repeat(4_999_999).concat("end\r"));
  assert.deepEqual(await b.call("Read", { file_path, offset: 3, limit: 2 }), {
    content: "3\t\n4\t\n[lines 3 to 4 of 5000000; read on with offset 5]",
  });
  assert.deepEqual(await b.call("Read", { file_path, offset: 5_000_000 }), { content: "5000000\tend\r" });
});

test("a name that is missing in a large folder is explained by similar ones that may be shown", async () => {
  const asked: string[] = [];
  const mayRead = () => (path: string) => {
    asked.push(path);
    return !path.endsWith("file-2001.txt");
  };
  await using b = await bench({ fileOptions: { mayRead } });
  for (let at = 1_900; at < 2_100; at += 1) b.put(`many/file-${at}.txt`);
  const { content } = await b.call("Read", { file_path: "many/file-20011.txt" });
  assert.match(String(content), /There is \S+file-2011\.txt, /);
  assert.ok(asked.length <= 100, `${asked.length} names were judged`);
});
