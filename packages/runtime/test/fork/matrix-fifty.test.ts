/** The families of fifty among the cells of matrix.test.ts. */

import { coveringCells } from "./matrix-cells.ts";
import { testCells } from "./matrix-soak.ts";

testCells(
  "fifty siblings share all but their last block with their parent, and read what they share",
  coveringCells().filter(({ forks }) => forks === 50),
);
