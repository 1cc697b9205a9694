/** May this agent fork now? Pure.
 *  Invariant: one answer with its reason; every way to start an agent asks here, so none is forgotten.
 *  Elsewhere: who asks (../session), what a refused model is told (../agent: guarding.ts). */

export type ForkQuestion = {
  /** The setting `forks` and the variable PREFORK_FORK_SUBAGENT. */
  readonly flag: boolean;
  /** A coordinator delegates with prompts of its own; a copy of it would coordinate too. */
  readonly coordinator: boolean;
  readonly interactive: boolean;
  /** A permission policy was stated, so questions have an answer without a person. */
  readonly policyStated: boolean;
  readonly insideFork: boolean;
  /** Tokens left in the window for a child to work in. */
  readonly headroom: number;
};

export type ForkGate =
  | { readonly allowed: true }
  /** `isFinal`: no other agent may be started in its place either. */
  | { readonly allowed: false; readonly reason: string; readonly isFinal: boolean };

/** A child that cannot even read a few files is of no use. */
export const LEAST_HEADROOM = 8_000;

export const forkAllowed = (question: ForkQuestion): ForkGate => {
  const { flag, coordinator, interactive, policyStated, insideFork, headroom } = question;
  const no = (reason: string): ForkGate => ({ allowed: false, reason, isFinal: insideFork });
  if (insideFork) return no("a fork does its work itself and starts nobody");
  if (!flag) return no("forks are switched off");
  if (coordinator) return no("a coordinator delegates to agents with prompts of their own");
  if (!interactive && !policyStated)
    return no("nobody can be asked here and no permission policy was stated (--permission-mode, --allow or --deny)");
  if (headroom < LEAST_HEADROOM)
    return no(`only ${Math.max(0, headroom)} tokens of the window are left for a child; compact first`);
  return { allowed: true };
};
