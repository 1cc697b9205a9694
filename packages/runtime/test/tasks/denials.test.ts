import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Denials } from "../../src/tasks/index.ts";

const GO_ON = { kind: "go-on" } as const;

test("three turns in a row with a denial end a child, and the reason names them", () => {
  const denials = new Denials();
  assert.deepEqual(denials.recordDenial("Bash npm publish"), GO_ON);
  assert.deepEqual(denials.recordDenial("Write /etc/hosts"), GO_ON);
  const end = {
    kind: "end",
    reason: "3 calls in a row were not allowed: Bash npm publish (2 times), Write /etc/hosts.",
  };
  assert.deepEqual(denials.recordDenial("Bash npm publish"), end);
  denials.recordApproval();
  assert.deepEqual(denials.recordDenial("Bash true"), end);
  assert.deepEqual(denials.verdict, end);
});

test("eight denials in total end it too, however many calls were allowed in between", () => {
  const denials = new Denials();
  for (let number = 1; number < 8; number++) {
    assert.deepEqual(denials.recordDenial(`Bash touch ${number}`), GO_ON);
    denials.recordApproval();
  }
  assert.deepEqual(denials.recordDenial("Bash touch 8"), {
    kind: "end",
    reason: "8 calls were not allowed: Bash touch 1, Bash touch 2, Bash touch 3, 5 more.",
  });
});

test("what was refused is shown in one short line, whatever it contains", () => {
  const denials = new Denials({ consecutiveTurns: 1 });
  assert.deepEqual(denials.recordDenial(`Bash cat <<E\n${"x".repeat(200)}`), {
    kind: "end",
    reason: `1 call was not allowed: Bash cat <<E ${"x".repeat(66)}….`,
  });
});

test("the verdict follows from the counts, and is never reversed", () => {
  const limit = fc.integer({ min: 1, max: 10 });
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 40 }), limit, limit, (told, consecutiveTurns, totalTurns) => {
      const denials = new Denials({ consecutiveTurns, totalTurns });
      const shouldEnd = told.some((_, at) => {
        const until = told.slice(0, at + 1);
        return until.filter((isNo) => isNo).length >= totalTurns || at - until.lastIndexOf(false) >= consecutiveTurns;
      });
      for (const isNo of told) isNo ? denials.recordDenial("x") : denials.recordApproval();
      assert.equal(denials.verdict.kind, shouldEnd ? "end" : "go-on");
    }),
  );
});
