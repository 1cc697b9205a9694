/** A screen, or plain lines?
 *  Invariant: the renderer is not loaded for plain lines, and settings are read before the first frame only if they mention
 *  a screen reader.
 *  Elsewhere: the two (screen-view.ts, plain.ts), the setting (TerminalSettings of @prefork/guard). */

import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Io } from "../io.ts";
import type { ViewFactory } from "./terminal-view.ts";

/** Terminals that cannot move the cursor. */
const WITHOUT_CURSOR: readonly string[] = ["", "dumb", "unknown", "network", "dialup"];

export const chooseView = async (flags: { readonly screenReader?: boolean }, io: Io): Promise<ViewFactory> => {
  const isPlain =
    (flags.screenReader ?? WITHOUT_CURSOR.includes(io.env.TERM ?? "")) || (await asksForLines(flags.screenReader, io));
  if (!isPlain) return (await import("./screen-view.ts")).screenView;
  const { PlainLines } = await import("./plain.ts");
  return (options) => new PlainLines(options);
};

const asksForLines = async (flag: boolean | undefined, { env }: Io): Promise<boolean> => {
  if (flag !== undefined) return flag;
  const home = env.HOME || homedir();
  const text = await readFile(join(home, ".prefork", "settings.json"), "utf8").catch(() => "");
  if (!text.includes("screenReader")) return false;
  const { readTerminalSettings } = await import("./terminal-settings.ts");
  return (await readTerminalSettings({ env })).screenReader;
};
