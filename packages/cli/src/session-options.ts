/** The options of every command that opens a session.
 *  Invariant: loads nothing of the agent, so that the terminal can draw first; wrong values are found when the session is
 *  planned.
 *  Elsewhere: what the options mean (print: session-flags.ts, engine-choice.ts). */

import { type Command, Option } from "commander";
import { collect } from "./io.ts";

type Wording = {
  /** Starts each description. */
  readonly about?: string;
  /** Listed in the help. Default: `prefork help print` lists them. */
  readonly providers?: readonly string[];
};

/** Which engine, and what may run. */
export const addSessionOptions = (command: Command, { about = "", providers }: Wording = {}): Command => {
  const provider = new Option("--provider <name>", `${about}provider to use`);
  return command
    .option("--model <id>", `${about}model to use`)
    .addOption(providers ? provider.choices([...providers]) : provider)
    .option("--base-url <url>", `${about}another endpoint with the provider's API`)
    .option("--permission-mode <mode>", `${about}default, accept-edits, plan or bypass`)
    .option("--allow <rule>", `${about}allow calls that match this rule (repeatable)`, collect)
    .option("--deny <rule>", `${about}deny calls that match this rule (repeatable)`, collect)
    .option("--max-budget-usd <amount>", `${about}stop before a request could exceed this total cost`)
    .option("--no-attach", `${about}do not let prefork attach show the session`);
};
