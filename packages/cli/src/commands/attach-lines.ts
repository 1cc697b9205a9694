/** The events of a session as lines: what was asked and answered, what was called, which forks started and ended.
 *  Invariant: nothing in an event can control the terminal; a line is printed when its text is complete, so lines of
 *  several agents never mix.
 *  Elsewhere: asking and answering questions (attach-display.ts), the events (RuntimeEvent of @prefork/runtime). */

import type { RuntimeEvent } from "@prefork/runtime";
import { formatMoney } from "../numbers.ts";
import { callText, Warnings } from "../print/index.ts";
import { painter } from "../table.ts";
import { visible } from "../visible.ts";
import { truncateText } from "../width.ts";
import { inLine, outputWidth } from "./tasks-store.ts";

const MAX_LABEL = 24;

type Call = { readonly tool: string; readonly words: string };

export type EventLinesOptions = {
  readonly colour: boolean;
  /** Show only this task. Default: the whole session. */
  readonly task?: string | undefined;
};

export class EventLines {
  readonly #paint: ReturnType<typeof painter>;
  readonly #task: string | undefined;
  readonly #warnings = new Warnings();
  readonly #labels = new Map<string, string>();
  readonly #calls = new Map<string, Call>();

  constructor({ colour, task }: EventLinesOptions) {
    this.#paint = painter(colour);
    this.#task = task;
  }

  /** Who an event or a question belongs to, for the start of a line. */
  who(agent: string): string {
    if (agent === "main" || agent === this.#task) return "";
    return this.#paint("bold", `[${inLine(this.#labels.get(agent) ?? agent, MAX_LABEL)}] `);
  }

  /** Does this belong to what is shown? */
  isShown(event: RuntimeEvent): boolean {
    if (this.#task === undefined) return true;
    return event.agent === this.#task || ("taskId" in event && event.taskId === this.#task);
  }

  /** Lines with their line feeds; empty if the event is not shown. */
  text(event: RuntimeEvent): string {
    this.#remember(event);
    if (!this.isShown(event)) return "";
    const line = this.#lineOf(event);
    return line === "" ? "" : `${this.who(event.agent)}${line}\n`;
  }

  #remember(event: RuntimeEvent): void {
    if (event.type === "fork_started") this.#labels.set(event.taskId, event.label);
    if (event.type === "call_proposed" || event.type === "call_changed") {
      const { callId, tool, args } = event;
      this.#calls.set(`${event.agent} ${callId}`, { tool, words: callText(tool, args) });
    }
  }

  #lineOf(event: RuntimeEvent): string {
    switch (event.type) {
      case "prompt_entered":
        return this.#paint("bold", this.#fitted(`> ${event.text}`, event));
      case "text_entered":
        // Of a fork one line is enough: its report reaches the conversation.
        return event.agent === "main" || event.agent === this.#task
          ? visible(event.text).trimEnd()
          : this.#fitted(event.text, event);
      case "call_ended":
        return this.#call(event);
      case "fork_started":
        return this.#fitted(`+ ${event.taskId} started: ${event.label}`, event);
      case "task_ended":
        return this.#fitted(
          `- ${event.taskId} ended: ${event.reason ?? event.end}, ${turns(event.turns)}, ${formatMoney(event.usd)}`,
          event,
        );
      case "exchange_ended": {
        const money = event.usd === undefined ? "" : `, ${formatMoney(event.usd)}`;
        const end = event.end === "done" ? "done" : `stopped: ${event.reason}`;
        return this.#paint("faint", this.#fitted(`= ${end}, ${turns(event.turns)}${money}`, event));
      }
      case "compaction_started":
        return this.#paint("faint", "= the conversation is long; summarizing it to make room");
      default: {
        const warning = this.#warnings.event(event);
        return warning ? this.#paint("bad", this.#fitted(`! ${warning.message}`, event)) : "";
      }
    }
  }

  #call({ agent, callId, tool, text, fault, ms }: Extract<RuntimeEvent, { type: "call_ended" }>): string {
    const key = `${agent} ${callId}`;
    const words = this.#calls.get(key)?.words ?? "";
    this.#calls.delete(key);
    const time = ms < 1_000 ? "" : ` (${Math.round(ms / 1_000)} s)`;
    if (fault === undefined) return this.#paint("faint", this.#fitted(`· ${tool} ${words}`, { agent }, time));
    const why = inLine(text.split("\n", 1)[0] ?? "", MAX_REASON);
    return this.#paint("bad", `${this.#fitted(`· ${tool} ${words}`, { agent }, time)}\n    ${fault}: ${why}`);
  }

  /** One line that fits the output, with `end` never cut off. */
  #fitted(text: string, { agent }: Pick<RuntimeEvent, "agent">, end = ""): string {
    const before = agent === "main" || agent === this.#task ? 0 : MAX_LABEL + 3;
    return `${truncateText(inLine(text), Math.max(20, outputWidth() - before - end.length))}${end}`;
  }
}

const MAX_REASON = 300;

const turns = (count: number): string => `${count} ${count === 1 ? "turn" : "turns"}`;
