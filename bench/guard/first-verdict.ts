/** A process that judges one command and exits. */

import { classify } from "@prefork/guard";

const { verdict } = classify("git log --oneline -5 | head -3");
process.exitCode = verdict === "read-only" ? 0 : 1;
