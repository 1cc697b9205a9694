/** Asks whether a folder is trusted, before its session opens.
 *  Invariant: nothing is written unless the person chose it; only what was shown becomes trusted, so files that change
 *  between the question and the answer are shown again.
 *  Elsewhere: what is shown (trust-summary.ts), the record (@prefork/guard), the question on the screen (state, views). */

import { homedir } from "node:os";
import { configurationOf, grant, stateFolder, trustOf } from "@prefork/guard";
import { type Io, isStartedByFork } from "../io.ts";
import { resolveFolder } from "../resolve-folder.ts";
import type { TrustChoice, TrustQuestion } from "./state/index.ts";
import { summarizeTrust, type TrustSummary } from "./trust-summary.ts";

export type TrustRequest = {
  /** As the command line names it. */
  readonly cwd?: string | undefined;
  readonly ask: (question: TrustQuestion) => Promise<TrustChoice>;
  readonly warn: (text: string) => void;
};

const CHANGED = "The files changed while you were looking. This is what they would do now.";

/** Returns false if the person leaves. */
export const askTrust = async ({ cwd = ".", ask, warn }: TrustRequest, io: Io): Promise<boolean> => {
  if (await isStartedByFork(io)) return true; // opening the session fails, and says why
  const home = io.env.HOME || homedir();
  const state = stateFolder(io.env, home);
  const folder = await resolveFolder(cwd, "--cwd");
  for (let note: string | undefined; ; note = CHANGED) {
    const summary = await summarizeTrust(await trustOf(state, folder), { home, env: io.env });
    if (!summary) return true;
    const choice = await ask(toQuestion(summary, note));
    if (choice === "later" || choice === "leave") return choice === "later";
    const { fingerprint, offered } = summary;
    const granted = await grant(state, folder, { fingerprint, accepted: choice === "accept" ? offered : [] });
    if (granted.ok) return true;
    const now = await configurationOf(folder);
    if (!now.ok || now.configuration.fingerprint === fingerprint) {
      warn(`The folder is not trusted: ${granted.reason}`);
      return true;
    }
  }
};

const toQuestion = (
  { fingerprint: _fingerprint, offered: _offered, ...summary }: TrustSummary,
  note: string | undefined,
): TrustQuestion => ({ ...summary, ...(note === undefined ? {} : { note }), scroll: 0, shownAt: Date.now() });
