/** What writes, runs, sends, hangs or shows keys is never taken for read-only, in whatever dress. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { anyCharacter } from "@prefork/testing/any-character";
import { seededRandom } from "@prefork/testing/chance";
import fc from "fast-check";
import { parse } from "unbash";
import { GROWING } from "../../fuzz/guard/inputs.ts";
import { disturbed, requoted } from "../../fuzz/guard/quoting.ts";
import { Refusal } from "../../src/bash/refusal.ts";
import { checkGaps, readSteps, type SimpleCommand } from "../../src/bash/syntax.ts";
import { classify, type PlanRedirect, type PlanWord } from "../../src/rules/index.ts";
import { corpusLines } from "../corpus.ts";

const hostile = corpusLines("deny-*.jsonl");
const everyday = corpusLines("allow-*.jsonl");

const allowed = (commands: readonly string[]): readonly string[] =>
  commands.filter((cmd) => classify(cmd).verdict === "read-only");

test("the hostile corpus is large, names the class and why, and has nothing twice", () => {
  assert.ok(hostile.length >= 450, `${hostile.length} lines`);
  const classes = new Set(hostile.map((line) => (line as { readonly class?: string }).class));
  assert.ok(classes.size >= 25 && !classes.has(undefined), [...classes].join(", "));
  assert.deepEqual(
    hostile.filter(({ why }) => typeof why !== "string" || why.length < 8),
    [],
  );
  assert.equal(new Set(hostile.map(({ cmd }) => cmd)).size, hostile.length);
});

test("no command of the hostile corpus is read-only", () => {
  assert.deepEqual(allowed(hostile.map(({ cmd }) => cmd)), []);
});

test("quotes put inside its words do not make a hostile command read-only", () => {
  const plain = hostile
    .map(({ cmd }) => cmd)
    .filter((cmd) => /^[\w\s./=<>|&;,:@%+()-]+$/.test(cmd) && cmd.length < 500);
  assert.ok(plain.length > 800);
  const found = [1, 2, 3, 4].flatMap((seed) => {
    const chance = seededRandom(seed);
    return allowed(plain.map((cmd) => disturbed(cmd, chance)));
  });
  assert.deepEqual(found, []);
});

const redirectText = (redirect: PlanRedirect): string => {
  if (redirect.kind === "input") return ` <${redirect.file.text}`;
  if (redirect.kind === "join") return ` ${redirect.from}>&${redirect.to}`;
  return redirect.descriptor === "both" ? " &>/dev/null" : ` ${redirect.descriptor}>/dev/null`;
};

const isPlain = ({ pattern, home, status }: PlanWord): boolean => !pattern && !home && !status;

/** The command with each word quoted anew; undefined where a word means something only because it is not quoted. */
const rewritten = (text: string, seed: number): string | undefined => {
  const chance = seededRandom(seed);
  const one = ({ words, redirects, assignments }: SimpleCommand): string | undefined => {
    const files = redirects.flatMap((redirect) => (redirect.kind === "input" ? [redirect.file] : []));
    if (![...words, ...files].every(isPlain) || files.some(({ text: file }) => !/^[\w./-]+$/.test(file)))
      return undefined;
    const set = assignments.map(({ name, value }) => `${name}=${value} `).join("");
    return set + words.map(({ text: word }) => requoted(word, chance)).join(" ") + redirects.map(redirectText).join("");
  };
  const steps = readSteps(text).map(({ after, negated, commands, group }, index) => {
    const parts = commands.map(one);
    if (group || parts.includes(undefined)) return undefined;
    const joint = index === 0 ? "" : { always: "; ", success: " && ", failure: " || " }[after];
    return `${joint}${negated ? "! " : ""}${parts.join(" | ")}`;
  });
  return steps.includes(undefined) ? undefined : steps.join("");
};

test("an everyday command has the same plan however it is quoted", () => {
  let compared = 0;
  for (const [index, { cmd }] of everyday.entries()) {
    const text = rewritten(cmd, index);
    if (text === undefined) continue;
    compared += 1;
    assert.deepEqual(classify(text), classify(cmd), text);
  }
  assert.ok(compared > everyday.length / 2, `${compared} of ${everyday.length}`);
});

test("no surrounding text makes a hostile command read-only", () => {
  const chance = seededRandom(7);
  const open = everyday.filter(({ cmd }) => !cmd.includes("#")); // a comment would hide what follows
  const whole = hostile.filter((line) => !/unbalanced|size/.test((line as { readonly class?: string }).class ?? ""));
  const found = whole.flatMap(({ cmd }) => {
    const other = chance.one(open).cmd;
    return allowed([
      ...[`${other}; ${cmd}`, `${other} && ${cmd}`, `${other} || ${cmd}`, `${other} | ${cmd}`, `${other}\n${cmd}`],
      ...[
        `${cmd}; ${other}`,
        `${cmd} | ${other}`,
        `cd sub && ${cmd}`,
        `LC_ALL=C ${cmd}`,
        `timeout 5 ${cmd}`,
        `! ${cmd}`,
      ],
      ...[`${cmd} 2>/dev/null`, `${cmd} 2>&1`, `${cmd} || true`, `${cmd} | head -5`, `ls | ${cmd}`, ` ${cmd} `],
    ]);
  });
  assert.deepEqual(found, []);
});

test("a text is refused if the parser skipped a part of it, at any depth", () => {
  const gaps: readonly (readonly [parsed: string, text: string])[] = [
    ["ls  ; pwd", "ls x; pwd"],
    ["ls && pwd", "ls xx pwd"],
    ["ls | wc -l", "ls x wc -l"],
    ["ls | wc && pwd", "ls x wc && pwd"],
    ["( ls ; pwd )", "(xls ; pwd )"],
    ["{ ls || pwd; }", "{ ls xx pwd; }"],
    [" ls", "xls"],
    ["ls ", "lsx"],
  ];
  for (const [parsed, text] of gaps) {
    checkGaps(parsed, parse(parsed));
    assert.throws(
      () => checkGaps(text, parse(parsed)),
      new Refusal("a part of the text was not understood; write simple commands joined by | && || ;"),
      text,
    );
  }
});

test("any text has a verdict", () => {
  const known = new Set(["read-only", "write", "unknown"]);
  const total = (text: string): void => {
    const { verdict, reason } = classify(text);
    assert.ok(
      known.has(verdict) && reason !== "" && !reason.startsWith("could not be understood"),
      `${JSON.stringify(text)}: ${reason}`,
    );
  };
  fc.assert(fc.property(fc.string({ unit: anyCharacter, maxLength: 200 }), total), { numRuns: 2_000, seed: 1 });
  const signs = fc.constantFrom(..."'\"\\`$(){}[]<>|&;!#*?~ \t\n=-/:,.@%^+0aEl".split(""));
  fc.assert(
    fc.property(fc.array(signs, { maxLength: 60 }), (letters) => total(`ls ${letters.join("")}`)),
    { numRuns: 4_000, seed: 2 },
  );
});

// How long they take, and how that grows, is measured by `npm run fuzz -- guard`.
test("texts made to overwhelm a reader get a verdict at every length", () => {
  for (const [name, grow] of Object.entries(GROWING)) {
    for (const length of [2_400, 4_800, 9_600, 40_000]) {
      const text = grow(length);
      const { verdict } = classify(text);
      assert.ok(["read-only", "write", "unknown"].includes(verdict), `${name} at ${length}`);
      if (text.length > 10_000) assert.notEqual(verdict, "read-only", `${name} is over the limit`);
    }
  }
});

test("the work for option letters before a path is bounded, however the commands are split", () => {
  const reason = "has options that are too long to search for file names; write their values as separate words";
  for (const name of Object.keys(GROWING).filter((one) => one.startsWith("letters before")))
    assert.deepEqual(classify(GROWING[name]?.(9_600) ?? ""), { verdict: "unknown", reason }, name);
  const everyday = [
    `grep -e${"a".repeat(200)} notes.txt`,
    `cd a; cd b; cd c; cd d; grep -e${"a".repeat(60)} -rnIHow --include=*.ts src`,
    `git log -L1,9:packages/${"name/".repeat(100)}file.ts`,
  ];
  assert.deepEqual(allowed(everyday), everyday);
});
