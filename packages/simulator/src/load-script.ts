/** Loads a script from a file.
 *  Invariant: whatever is wrong with the file becomes one line that names it.
 *  Elsewhere: what a script is (script.ts). */

import { stat } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { SimulatorError } from "./errors.ts";
import type { SimScript } from "./script.ts";

const extensions = [".ts", ".js", ".mjs"];

/** Loads an ES module that exports a function as `script` or by default. */
export const loadScript = async (path: string): Promise<SimScript> => {
  if (!extensions.includes(extname(path)))
    throw new SimulatorError("script", `script ${path}: expected a .ts, .js or .mjs file`);
  const file = await stat(path).catch(() => undefined);
  if (file === undefined || !file.isFile()) throw new SimulatorError("script", `script ${path}: no such file`);
  const loaded = await import(pathToFileURL(resolve(path)).href).catch((cause: unknown) => {
    const reason = cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : String(cause);
    throw new SimulatorError("script", `script ${path}: ${reason}`, { cause });
  });
  const exported =
    (loaded as { script?: unknown; default?: unknown }).script ?? (loaded as { default?: unknown }).default;
  if (typeof exported !== "function")
    throw new SimulatorError("script", `script ${path}: exports no function named \`script\` and no default function`);
  return exported as SimScript;
};
