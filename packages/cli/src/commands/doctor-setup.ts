/** `prefork doctor`, second half: would a prompt start here? Checks the working folder, the settings, the key and the
 *  model.
 *  Invariant: the code of `prefork -p` decides; nothing is sent, nothing is changed, and no key is shown.
 *  Elsewhere: layers of protection (doctor.ts), what the settings mean (@prefork/guard). */

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { modelFacts } from "@prefork/wire";
import { type Io, UsageError } from "../io.ts";
import { chooseEngine, type EngineChoice, type EngineFlags, planSession } from "../print/index.ts";

export type Layer = {
  readonly name: string;
  readonly active: boolean;
  readonly detail: string;
  /** What it protects; absent if it does not protect anything by itself. */
  readonly covers?: string;
  /** How to activate it. */
  readonly wayOut?: string;
  /** Set if `prefork -p` would not start because of it. */
  readonly isBroken?: true;
};

/** Undefined if the folder was deleted while this process ran. */
export const workingFolder = (): string | undefined => {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
};

export const GO_ELSEWHERE = "change to an existing folder: cd ~";

const folderLayer = (cwd: string | undefined): Layer => {
  const name = "working folder";
  if (cwd !== undefined) return { name, active: true, detail: cwd };
  return { name, active: false, isBroken: true, detail: "it was deleted or moved", wayOut: GO_ELSEWHERE };
};

const SETTINGS = [
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".prefork/settings.json",
  ".prefork/settings.local.json",
  ".mcp.json",
];

const settingsLayer = async (cwd: string | undefined, io: Io): Promise<Layer> => {
  const name = "settings";
  if (cwd === undefined)
    return { name, active: false, detail: "not checked, because there is no working folder", wayOut: GO_ELSEWHERE };
  try {
    const { notices } = await planSession({ cwd }, io);
    const home = join(io.env.HOME || homedir(), ".prefork/settings.json");
    const isUsed = !notices.some((notice) => notice.startsWith("settings of this folder are not used"));
    const ofFolder = isUsed ? SETTINGS.map((file) => join(cwd, file)) : []; // nothing in an untrusted folder is read
    const places = [home, ...ofFolder].filter((path) => existsSync(path));
    const found =
      places.length === 0
        ? "there are none, so the defaults apply"
        : `no mistakes in ${[...new Set(places)].join(", ")}`;
    return { name, active: true, detail: [found, ...notices].join("; ") };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const wayOut = "fix the file; until then prefork -p does not start";
    return { name, active: false, isBroken: true, detail: error.message, wayOut };
  }
};

/** Characters that a header cannot carry, or that are often copied along with a key. */
const mistakeIn = (key: string): string | undefined => {
  if (/^(["']).*\1$/s.test(key)) return "it is in quotation marks";
  if (/\s/.test(key)) return "it contains white space";
  return /^[\x21-\x7e]*$/.test(key) ? undefined : "it contains characters that no key has";
};

const keyLayer = (choice: EngineChoice): Layer => {
  const name = "key";
  if (choice.kind === "rehearsal") {
    const detail = "none is set, so the built-in rehearsal engine answers, without a language model";
    return { name, active: false, detail, wayOut: "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY" };
  }
  const { profile, credential, baseUrl } = choice;
  const address = baseUrl === undefined ? "" : ` at ${baseUrl}`;
  if (credential === undefined) return { name, active: true, detail: `${profile.name}${address} needs no key` };
  const mistake = mistakeIn(credential.value);
  const detail = `${profile.name}${address} answers; its key is set (not tried)`;
  if (mistake === undefined) return { name, active: true, detail };
  const variables = profile.keys.join(" or ") || "the key";
  return {
    name,
    active: false,
    isBroken: true,
    detail: `the key for ${profile.name}: ${mistake}`,
    wayOut: `set ${variables} again`,
  };
};

const modelLayer = ({ model }: EngineChoice): Layer => {
  const name = "model";
  const facts = modelFacts(model);
  if (facts === undefined) {
    const detail = `${model} is not in the table of models, so its cost is unknown and budgets do not work`;
    return { name, active: false, detail, wayOut: "check the spelling, or work without --max-budget-usd" };
  }
  const { input, output } = facts.prices;
  return {
    name,
    active: true,
    detail: `${model}: $${input} per million input tokens, $${output} per million output tokens`,
  };
};

const engineLayers = (flags: EngineFlags, { env }: Io): readonly Layer[] => {
  try {
    const choice = chooseEngine(flags, env);
    return [keyLayer(choice), modelLayer(choice)];
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const wayOut = "set the missing variable, or choose another provider";
    return [{ name: "key", active: false, isBroken: true, detail: error.message, wayOut }];
  }
};

export const setupLayers = async (flags: EngineFlags, io: Io): Promise<readonly Layer[]> => {
  const cwd = workingFolder();
  return [folderLayer(cwd), await settingsLayer(cwd, io), ...engineLayers(flags, io)];
};
