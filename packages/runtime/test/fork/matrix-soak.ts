/** Cells of the fork matrix, run: as tests, and all of them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { allCells, type Cell, nameOf } from "./matrix-cells.ts";
import { runFamily } from "./matrix-family.ts";
import { brokenLaws, brokenStory, isRefused } from "./matrix-laws.ts";

export type MatrixResult = { readonly cells: number; readonly forks: number; readonly broken: readonly string[] };

const brokenIn = async (cell: Cell): Promise<readonly string[]> => {
  const seen = await runFamily(cell);
  return [...(isRefused(cell) ? [] : brokenStory(cell, seen)), ...brokenLaws(cell, seen)];
};

const LANES = 3;

export const testCells = (name: string, cells: readonly Cell[]): void => {
  test(name, { concurrency: LANES }, async (t) => {
    assert.notEqual(cells.length, 0);
    await Promise.all(
      cells.map((cell) => t.test(nameOf(cell), async () => assert.deepEqual(await brokenIn(cell), []))),
    );
  });
};

export const matrixSoak = async (cells: readonly Cell[] = allCells()): Promise<MatrixResult> => {
  const broken: string[] = [];
  const waiting = cells.values();
  const work = async (): Promise<void> => {
    for (const cell of waiting) broken.push(...(await brokenIn(cell)).map((law) => `${nameOf(cell)}: ${law}`));
  };
  await Promise.all(Array.from({ length: LANES }, work));
  return { cells: cells.length, forks: cells.reduce((sum, { forks }) => sum + forks, 0), broken };
};
