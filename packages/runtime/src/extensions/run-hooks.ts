/** How are the hooks of all extensions called? In order. Every `beforeCall` agrees to the final arguments: if a later
 *  hook changes them, the earlier ones are called again.
 *  Invariant: whatever a hook does, the agent continues: a hook has a time limit, and its failure is an event. A
 *  `beforeCall` that fails denies its call, because it has not agreed. Hooks that only observe are never waited for,
 *  except when the session closes.
 *  Elsewhere: the list of hooks (../ports.ts), what happens with a verdict (../agent: dispatch.ts). */

import type { AgentHooks, HookVerdict } from "../agent/index.ts";
import { escapeTags } from "../context/index.ts";
import type { EventBody } from "../events.ts";
import type { CallVerdict, HookedCall, Hooks } from "../ports.ts";

export type HookedExtension = { readonly name: string; readonly on: Hooks };

export type HookTimes = { readonly hookMs?: number }; // default: 10,000

/** Longer notes are truncated. */
const MAX_NOTE = 10_000;

type HookFailure = { readonly failed: string };

export class HookRunner implements AgentHooks {
  readonly #extensions: readonly HookedExtension[];
  readonly #ms: number;
  readonly #watching = new Set<Promise<unknown>>();
  #emit: (event: EventBody) => void = () => {};

  constructor(extensions: readonly HookedExtension[], { hookMs = 10_000 }: HookTimes = {}) {
    this.#extensions = extensions;
    this.#ms = hookMs;
  }

  setEmitter(emit: (event: EventBody) => void): void {
    this.#emit = emit;
  }

  async beforeCall(
    call: HookedCall,
    { signal, touches }: Parameters<AgentHooks["beforeCall"]>[1],
  ): Promise<HookVerdict> {
    const judging = this.#extensions.filter(({ on }) => on.beforeCall);
    const asks: string[] = [];
    let now = call;
    let changedBy: readonly string[] = [];
    /** The hooks that have seen the current arguments. */
    let agreed: readonly string[] = [];
    for (const extension of [...judging, ...judging.slice(0, -1)]) {
      const { name, on } = extension;
      if (agreed.includes(name)) continue;
      const given = await this.#ask({ name, hook: "beforeCall", read: checkVerdict }, signal, (limit) =>
        on.beforeCall?.(structuredClone(now), limit),
      );
      if (isFailed(given)) return { kind: "deny", reason: `${name} could not judge the call: ${given.failed}` };
      if (given?.kind === "deny") return { kind: "deny", reason: `${name}: ${given.reason}` };
      if (given?.kind === "ask") asks.push(`${name}: ${given.reason}`);
      if (given?.kind !== "change") agreed = [...agreed, name];
      else {
        const { args } = given;
        const touched = touches(args);
        const { touches: _before, ...rest } = now;
        now = { ...rest, args, ...(touched ? { touches: touched } : {}) };
        changedBy = [...new Set([...changedBy, name])];
        agreed = [name];
      }
    }
    const by = changedBy.join(", ");
    if (judging.some(({ name }) => !agreed.includes(name)))
      return { kind: "deny", reason: `${by} do not agree about the arguments of the call` };
    return { kind: "go", asks: [...new Set(asks)], ...(by === "" ? {} : { changed: { args: now.args, by } }) };
  }

  afterCall(call: Parameters<NonNullable<Hooks["afterCall"]>>[0], signal: AbortSignal): Promise<readonly string[]> {
    return this.#notes("afterCall", signal, (on, limit) => on.afterCall?.(structuredClone(call), limit));
  }

  promptEntered(prompt: { readonly text: string }, signal: AbortSignal): Promise<readonly string[]> {
    return this.#notes("promptEntered", signal, (on, limit) => on.promptEntered?.(prompt, limit));
  }

  async beforeCompaction(
    compaction: Parameters<NonNullable<Hooks["beforeCompaction"]>>[0],
    signal: AbortSignal,
  ): Promise<void> {
    for (const { name, on } of this.#extensions)
      if (on.beforeCompaction)
        await this.#ask({ name, hook: "beforeCompaction", read: ignoreResult }, signal, (limit) =>
          on.beforeCompaction?.(compaction, limit),
        );
  }

  /** Tells the observing hooks what happened. */
  notify(original: EventBody, agent: string): void {
    if (!OBSERVED_EVENTS.includes(original.type)) return;
    const event = structuredClone(original); // others read it too
    if (event.type === "session_opened") this.#watch("sessionOpened", (on, limit) => on.sessionOpened?.(event, limit));
    else if (event.type === "exchange_ended" && agent === "main")
      this.#watch("exchangeEnded", (on, limit) => on.exchangeEnded?.(event, limit));
    else if (event.type === "fork_started") this.#watch("forkStarted", (on, limit) => on.forkStarted?.(event, limit));
    else if (event.type === "task_ended") this.#watch("taskEnded", (on, limit) => on.taskEnded?.(event, limit));
  }

  async close(session: string): Promise<void> {
    await Promise.all(this.#watching);
    this.#watch("sessionClosed", (on, limit) => on.sessionClosed?.({ session }, limit));
    await Promise.all(this.#watching);
  }

  #watch(hook: keyof Hooks, call: (on: Hooks, limit: AbortSignal) => unknown): void {
    for (const { name, on } of this.#extensions) {
      if (!on[hook]) continue;
      const running = this.#ask({ name, hook, read: ignoreResult }, NEVER, (limit) => call(on, limit)).finally(() =>
        this.#watching.delete(running),
      );
      this.#watching.add(running);
    }
  }

  async #notes(
    hook: "afterCall" | "promptEntered",
    signal: AbortSignal,
    call: (on: Hooks, limit: AbortSignal) => unknown,
  ): Promise<readonly string[]> {
    const notes: string[] = [];
    for (const { name, on } of this.#extensions) {
      if (!on[hook]) continue;
      const given = await this.#ask({ name, hook, read: checkNote }, signal, (limit) => call(on, limit));
      if (given && !isFailed(given)) notes.push(escapeTags(`${name}: ${given.note}`));
    }
    return notes;
  }

  /** The result of one hook, within its time limit. */
  async #ask<T>(
    asked: HookCall<T>,
    signal: AbortSignal,
    call: (limit: AbortSignal) => unknown,
  ): Promise<T | HookFailure> {
    const own = new AbortController();
    const limit = AbortSignal.any([signal, own.signal]);
    const late = Promise.withResolvers<HookFailure>();
    const timer = setTimeout(() => late.resolve({ failed: `took longer than ${this.#ms} ms` }), this.#ms);
    const leave = (): void => late.resolve({ failed: INTERRUPTED });
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    const given = (async () => asked.read(await call(limit)))().catch((error: unknown): HookFailure => {
      return { failed: error instanceof Error ? error.message : String(error) };
    });
    const first = await Promise.race([given, late.promise]).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
    });
    if (isFailed(first)) {
      own.abort(); // nobody waits for it any more
      const { name: extension, hook } = asked;
      if (first.failed !== INTERRUPTED) this.#emit({ type: "hook_failed", extension, hook, reason: first.failed });
    }
    return first;
  }
}

const OBSERVED_EVENTS: readonly EventBody["type"][] = [
  "session_opened",
  "exchange_ended",
  "fork_started",
  "task_ended",
];
const INTERRUPTED = "the user interrupted";
const NEVER = new AbortController().signal;

type HookCall<T> = {
  readonly name: string;
  readonly hook: keyof Hooks;
  /** Throws for an invalid result. */
  readonly read: (given: unknown) => T;
};

const isFailed = (given: unknown): given is HookFailure => isObject(given) && typeof given.failed === "string";

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const ignoreResult = (): undefined => undefined;

const checkNote = (given: unknown): { readonly note: string } | undefined => {
  if (given === undefined || given === null) return undefined;
  if (!isObject(given) || typeof given.note !== "string")
    throw new TypeError("it returned something other than a note");
  const note = given.note.toWellFormed().trim();
  if (note === "") return undefined;
  return { note: note.length > MAX_NOTE ? `${note.slice(0, MAX_NOTE - 1).toWellFormed()}…` : note };
};

/** Only accepts what JSON can express, as a copy. */
const checkVerdict = (given: unknown): CallVerdict | undefined => {
  if (given === undefined || given === null) return undefined;
  const { kind, reason, args } = isObject(given) ? given : {};
  if ((kind === "deny" || kind === "ask") && typeof reason === "string") return { kind, reason };
  if (kind === "change" && isObject(args)) return { kind, args: JSON.parse(JSON.stringify(args)) };
  throw new TypeError("it returned something other than a verdict");
};
