/** Applies the user's settings for the terminal: looks and keys, status command, notifications.
 *  Invariant: nothing here delays the first frame; a setting that does not work is reported and changes nothing else.
 *  Elsewhere: reading them (terminal-settings.ts), the editor (external-editor.ts). */

import type { TerminalSettings } from "@prefork/guard";
import type { Io } from "../io.ts";
import type { SpentToday } from "./spent-today.ts";
import { type Action, type State, safeText } from "./state/index.ts";
import type { StatusCommand } from "./status-command.ts";
import type { TerminalView } from "./terminal-view.ts";

const RECENT_MS = 15_000;

export type PersonalContext = {
  readonly io: Io;
  readonly screen: Pick<TerminalView, "applySettings" | "isFocused" | "writeSequence">;
  readonly state: () => State;
  readonly dispatch: (action: Action) => void;
};

export class PersonalSettings {
  readonly #context: PersonalContext;
  readonly #settings = Promise.withResolvers<TerminalSettings>();
  #spent: SpentToday | undefined;
  #status: Promise<StatusCommand> | undefined;
  #isStopped = false;

  constructor(context: PersonalContext) {
    this.#context = context;
  }

  get settings(): Promise<TerminalSettings> {
    return this.#settings.promise;
  }

  /** After the first frame. */
  async apply(): Promise<void> {
    const { io, screen } = this.#context;
    const applied = screen.applySettings(this.settings);
    const { readTerminalSettings } = await import("./terminal-settings.ts");
    this.#settings.resolve(await readTerminalSettings(io));
    await applied;
  }

  /** Runs the user's status command, and adds up what was spent today. */
  async refresh(isMoneyToo: boolean): Promise<void> {
    const { io, dispatch } = this.#context;
    if (isMoneyToo) {
      const { SpentToday: Spent } = await import("./spent-today.ts");
      this.#spent ??= new Spent(io);
      const todayUsd = await this.#spent.sum(Date.now()).catch(() => undefined); // no journal can be read: no figure
      if (todayUsd !== undefined) dispatch({ type: "learned", facts: { todayUsd } });
    }
    const { statusCommand } = await this.settings;
    if (statusCommand === undefined || this.#isStopped) return;
    this.#status ??= this.#openStatus(statusCommand);
    (await this.#status).request();
  }

  /** Calls the person, unless they look at the terminal. */
  async notify(text: string): Promise<void> {
    const { io, screen, state } = this.#context;
    const { notify } = await this.settings;
    // Where the terminal does not say it, whoever just typed is there.
    const isThere = screen.isFocused() ?? Date.now() - state().lastKeyAt < RECENT_MS;
    if (notify === "off" || isThere || this.#isStopped) return;
    const { notification } = await import("./notification.ts");
    screen.writeSequence(notification(notify, text, io.env));
  }

  stop(): void {
    this.#isStopped = true;
    void this.#status?.then((status) => status.stop());
  }

  async #openStatus(command: string | readonly string[]): Promise<StatusCommand> {
    const { io, state, dispatch } = this.#context;
    const { StatusCommand: Status, statusFacts } = await import("./status-command.ts");
    return new Status({
      ...{ command, env: io.env },
      facts: () => statusFacts(state()),
      onLine: (statusText) => dispatch({ type: "learned", facts: { statusText } }),
      onFailure: (reason) => {
        const text = safeText(`terminal.statusCommand ${reason}.`);
        dispatch({ type: "printed", block: { kind: "notice", level: "warn", text } });
      },
    });
  }
}
