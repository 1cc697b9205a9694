/** A process that writes in a session, for tests with several writers or killed ones. Prints one JSON line for each
 *  step, and continues when it reads a line. */

import { createInterface } from "node:readline";
import { text, userText } from "@prefork/wire";
import { createJournal, JournalError, openJournal } from "../../src/journal/index.ts";
import { Live, session, storeIn } from "./histories.ts";

const [task = "", state = "", id = ""] = process.argv.slice(2);
const store = storeIn(state);
const say = (fact: object): void => {
  process.stdout.write(`${JSON.stringify(fact)}\n`);
};
const inputs = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Ends when its input is closed. Otherwise it would loop forever, at full speed. */
const told = async (): Promise<void> => {
  if ((await inputs.next()).done) process.exit(0);
};

const failure = (error: unknown): object => {
  if (!(error instanceof JournalError)) throw error;
  return { failed: error.reason, message: error.message };
};

const tasks: Readonly<Record<string, () => Promise<void>>> = {
  /** Opens the session each time it is told to, and keeps it until it is told again. */
  hold: async () => {
    say({ ready: process.pid });
    for (;;) {
      await told();
      try {
        await using _opened = (await openJournal(store, id)).journal;
        say({ holding: process.pid });
        await told();
      } catch (error) {
        say(failure(error));
        await told();
      }
      say({ ready: process.pid });
    }
  },
  /** Takes turns until it is killed, and reports each only once it is written. */
  turns: async () => {
    const live = new Live(await createJournal(store, session));
    for (let turn = 1; ; turn += 1) {
      live.enter(userText(`prompt ${turn} ${"x".repeat((turn * 997) % 5_000)}`));
      live.ask();
      live.enter({ role: "assistant", content: [text(`answer ${turn}`)] });
      live.answer();
      if (turn % 10 === 0) await live.journal.flush();
      say({ turn, hash: live.prefix.hash });
    }
  },
  /** Writes until the disk is full, and once more when there is space again. */
  fill: async () => {
    const live = new Live(await createJournal(store, session));
    let prompts = 0;
    try {
      for (;;) {
        live.enter(userText("x".repeat(1_000)));
        prompts += 1;
      }
    } catch (error) {
      say({ prompts, hash: live.prefix.hash, ...failure(error) });
    }
    await told();
    live.enter(userText("there is space again"));
    await live.journal.close();
    say({ prompts: prompts + 1, hash: live.prefix.hash });
  },
};

await tasks[task]?.();
process.exit(0);
