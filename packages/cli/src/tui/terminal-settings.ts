/** The user's settings for the terminal: looks, keys, notifications, and programs of their own.
 *  Invariant: read from the user's own file only; a broken file gives the defaults here, because opening the session reports
 *  what is wrong with it.
 *  Elsewhere: the file (@prefork/guard), what they change (screen.ts, external-editor.ts). */

import { homedir } from "node:os";
import { loadSettings, type TerminalSettings } from "@prefork/guard";
import type { Io } from "../io.ts";

export const DEFAULT_SETTINGS: TerminalSettings = {
  ...{ theme: "auto", keys: "default", notify: "off", mouse: false, screenReader: false },
};

export const readTerminalSettings = async ({ env }: Pick<Io, "env">): Promise<TerminalSettings> => {
  const home = env.HOME || homedir();
  try {
    const loaded = await loadSettings({ home, project: home, trusted: false });
    return loaded.kind === "policy" ? loaded.terminal : DEFAULT_SETTINGS;
  } catch {
    return DEFAULT_SETTINGS;
  }
};
