/** The pictures in the documents show what the terminal shows now. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { playForks, textOf, withoutFigures } from "./scenes.ts";

const IMAGES = fileURLToPath(new URL("../../../../docs/images", import.meta.url));

test("the first screen, five forks and a fork's page look as in their pictures, but for figures", async () => {
  for (const picture of await playForks({ columns: 80, rows: 24 }, tmpdir())) {
    const name = `terminal-${picture.scene}-80x24.txt`;
    assert.equal(
      withoutFigures(textOf(picture)),
      withoutFigures(readFileSync(join(IMAGES, name), "utf8")),
      `The terminal no longer looks as in docs/images/${name}. If that is intended: npm run pictures`,
    );
  }
});

test("every picture has a text, needs nothing from elsewhere, and names no folder or id of a machine", () => {
  const names = readdirSync(IMAGES).filter((name) => name.startsWith("terminal-"));
  const drawn = names.filter((name) => name.endsWith(".svg"));
  assert.equal(drawn.length, 18);
  assert.deepEqual(names.toSorted(), drawn.flatMap((name) => [name, name.replace(/svg$/, "txt")]).toSorted());
  for (const name of names) {
    const content = readFileSync(join(IMAGES, name), "utf8");
    assert.doesNotMatch(content, /\/tmp\/|\/home\/|task-[0-9a-f]{6}|<script|href=|url\(|@import/, name);
  }
});
