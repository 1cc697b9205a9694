/** All pairs of Anthropic requests, for the simulator to judge. */

import { images } from "./images.ts";
import { markers } from "./markers.ts";
import { messages } from "./messages.ts";
import type { Pair } from "./pair.ts";
import { parameters } from "./parameters.ts";
import { system } from "./system.ts";
import { times } from "./times.ts";
import { tools } from "./tools.ts";

export const pairs: readonly Pair[] = [
  ...parameters,
  ...tools,
  ...system,
  ...messages,
  ...images,
  ...markers,
  ...times,
];
