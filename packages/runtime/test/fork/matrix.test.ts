/** Families of forks in every constellation: few cells in which each two of the matrix' values meet. Those with fifty
 *  forks are in matrix-fifty.test.ts; `npm run soak -- matrix` runs all that there are. */

import { coveringCells } from "./matrix-cells.ts";
import { testCells } from "./matrix-soak.ts";

testCells(
  "siblings share all but their last block with their parent, and read what they share",
  coveringCells().filter(({ forks }) => forks < 50),
);
