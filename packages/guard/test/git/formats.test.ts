/** The files of a repository that we read ourselves: its index and its settings. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import { gitIn } from "@prefork/testing/with-keys";
import { ApprovalNeeded } from "../../src/git/checkout.ts";
import { readIndex } from "../../src/git/index-file.ts";
import { parseSettings } from "../../src/git/settings.ts";

type IndexForm = {
  readonly version?: number;
  readonly mode?: number;
  /** In version 4: how much of the name before an entry does not keep. */
  readonly drops?: number;
  /** Over the length of the name, or what is said in its place. */
  readonly flags?: number;
  readonly length?: number;
  readonly padding?: string;
};

/** An index with one entry for each name. */
const indexOf = (names: readonly string[], form: IndexForm = {}): Buffer => {
  const { version = 2, mode = 0o100644, drops = 0, flags = 0, length, padding = "\0" } = form;
  const header = Buffer.from("DIRC\0\0\0\0\0\0\0\0", "latin1");
  header.writeUInt32BE(version, 4);
  header.writeUInt32BE(names.length, 8);
  const entries = names.map((name, at) => {
    const facts = Buffer.alloc(62);
    facts.writeUInt32BE(mode, 24);
    const kept = version === 4 && at ? (names[at - 1] ?? "").length - drops : 0;
    facts.writeUInt16BE(flags | (length ?? Math.min(Math.max(kept, 0) + Buffer.byteLength(name), 0xfff)), 60);
    if (version === 4) return Buffer.concat([facts, Buffer.from([at && drops, ...Buffer.from(name), 0])]);
    return Buffer.concat([facts, Buffer.from(name), Buffer.alloc(8 - ((62 + name.length) % 8), padding)]);
  });
  return Buffer.concat([header, ...entries, Buffer.alloc(20)]);
};

test("an index is parsed strictly, and quickly", () => {
  assert.deepEqual(readIndex(indexOf(["a", "b/c"]), "sha1").names, ["a", "b/c"]);
  assert.deepEqual(readIndex(indexOf(["a/b", "c"], { version: 4, drops: 1 }), "sha1").names, ["a/b", "a/c"]);
  assert.deepEqual(readIndex(indexOf(["sub"], { mode: 0o160000 }), "sha1").repositories, ["sub"]);
  const good = indexOf(["a"]);
  const huge = indexOf(["a"]);
  huge.writeUInt32BE(0xffffffff, 8);
  const refused: readonly Buffer[] = [
    ...["", "/a", "a/", "a//b", ".", "a/./b", "../a", "a/..", ".git/config", "a/.GIT/x", "git~1", ".g\u200cit"].map(
      (name) => indexOf([name]),
    ),
    ...[
      indexOf(["a"], { mode: 0o040000 }),
      indexOf(["a"], { version: 5 }),
      indexOf(["x".repeat(5_000)], { version: 4 }),
    ],
    ...[indexOf(["a", "b"], { version: 4, drops: 9 }), good.subarray(0, 60), huge, Buffer.alloc(40)],
    // What git reads by its length, and we by its end; and what stands in no order, or where nothing stands.
    ...[0, 1, 3, 0xfff].map((length) => indexOf(["ab"], { length })),
    ...[0, 1, 3, 0xfff].map((length) => indexOf(["ab"], { version: 4, length })),
    ...[indexOf(["abc"], { padding: "\0x" }), indexOf(["b", "a"]), indexOf(["a", "a"])],
    ...[indexOf(["a"], { flags: 0x4000 }), indexOf(["sub"], { mode: 0o160000, flags: 0x1000 })],
    Buffer.concat([good.subarray(0, -20), Buffer.from("link\0\0\0\0", "latin1"), Buffer.alloc(20)]),
    Buffer.concat([good.subarray(0, -20), Buffer.from("TREE\0\0\xff\0", "latin1"), Buffer.alloc(20)]),
  ];
  for (const [at, bytes] of refused.entries())
    assert.throws(() => readIndex(bytes, "sha1"), ApprovalNeeded, String(at));
});

test("the index that git reads is written from what was read", () => {
  const entries = (bytes: Buffer): unknown => [
    bytes.readUInt32BE(4),
    bytes.readUInt32BE(8),
    bytes.toString("latin1", 72),
  ];
  const read = readIndex(indexOf(["a/b", "c"], { version: 4, drops: 1, flags: 0x8000 }), "sha1").bytes();
  const meant = indexOf(["a/b", "a/c"], { flags: 0x8000 });
  assert.deepEqual(entries(read.subarray(0, -20)), entries(meant.subarray(0, -20)));
  assert.deepEqual(read.subarray(-20), createHash("sha1").update(meant.subarray(0, -20)).digest());
  const sub = readIndex(indexOf(["sub"], { mode: 0o160000 }), "sha1").bytes();
  assert.equal(sub.readUInt16BE(12 + 60), 0x8003, "never looked into");
});

test("settings are read as git reads them, or not at all", () => {
  using place = scratch();
  const texts = [
    '[core]\n\tbare = false ; no\n[a "B.c\\"d"] x = "1 # 2" 3\\\n 4 \\t\\n\n[Old.Sub]\nKey\n[a]x=y z  # c\n',
    '\ufeff[a]\r\n\tb = c\r\n; comment\n# another\n[b]\n  c-d =\n  e = ""  \n',
  ];
  const form = ({ section, subsection, key, value }: NonNullable<ReturnType<typeof parseSettings>>[number]): string =>
    `${section}${subsection === undefined ? "" : `.${subsection}`}.${key}${value === undefined ? "" : `\n${value}`}`;
  for (const text of texts) {
    place.put("config", text);
    const listed = gitIn(place.path, "config", "--file", "config", "--list", "-z").split("\0").slice(0, -1);
    assert.deepEqual(parseSettings(text)?.map(form), listed);
  }
  for (const text of [
    "x = 1",
    "[a\nb = c",
    "[a]\n1x = 2",
    '[a]\nb = "c\n',
    "[a]\nb = \\x",
    "[a]\nb ! c",
    "[a]\nb = c\0",
  ])
    assert.equal(parseSettings(text), undefined, JSON.stringify(text));
});
