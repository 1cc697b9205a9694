/** `prefork doctor`, second half: would a prompt start here? The working folder, the settings, the key and the model.
 *  Invariant: decided by the code that `prefork -p` runs; nothing is sent, nothing is changed, and no key is shown.
 *  Elsewhere: layers of protection (doctor.ts), what the settings mean (@prefork/runtime). */

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
  /** Which runs it protects; left out where it is no protection by itself. */
  readonly covers?: string;
  /** What to do about a layer that is not active. */
  readonly wayOut?: string;
  /** `prefork -p` would not start; left out where it would. */
  readonly isBroken?: true;
};

/** Undefined where it was deleted under this process. */
export const workingFolder = (): string | undefined => {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
};

export const GO_ELSEWHERE = "change to a folder that exists: cd ~";

const folderLayer = (cwd: string | undefined): Layer => {
  const name = "working folder";
  if (cwd !== undefined) return { name, active: true, detail: cwd };
  return { name, active: false, isBroken: true, detail: "it was deleted, or moved away", wayOut: GO_ELSEWHERE };
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
    return { name, active: false, detail: "not looked at without a working folder", wayOut: GO_ELSEWHERE };
  try {
    const { notices } = await planSession({ cwd }, io);
    const home = join(io.env.HOME || homedir(), ".prefork/settings.json");
    const isUsed = !notices.some((notice) => notice.startsWith("settings of this folder are not used"));
    const ofFolder = isUsed ? SETTINGS.map((file) => join(cwd, file)) : []; // before trust nothing of them is read
    const places = [home, ...ofFolder].filter((path) => existsSync(path));
    const found =
      places.length === 0 ? "none, so the defaults apply" : `no mistakes in ${[...new Set(places)].join(", ")}`;
    return { name, active: true, detail: [found, ...notices].join("; ") };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const wayOut = "repair the file: prefork -p does not start with it";
    return { name, active: false, isBroken: true, detail: error.message, wayOut };
  }
};

/** What a header cannot carry, or what a copied key often brings along. */
const mistakeIn = (key: string): string | undefined => {
  if (/^(["']).*\1$/s.test(key)) return "it has quotation marks around it";
  if (/\s/.test(key)) return "it has white space in it";
  return /^[\x21-\x7e]*$/.test(key) ? undefined : "it has characters that no key has";
};

const keyLayer = (choice: EngineChoice): Layer => {
  const name = "key";
  if (choice.kind === "rehearsal") {
    const detail = "none is set, so the embedded rehearsal engine answers, without a language model";
    return { name, active: false, detail, wayOut: "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY" };
  }
  const { profile, credential, baseUrl } = choice;
  const address = baseUrl === undefined ? "" : ` at ${baseUrl}`;
  if (credential === undefined) return { name, active: true, detail: `${profile.name}${address} is asked without one` };
  const mistake = mistakeIn(credential.value);
  const detail = `${profile.name}${address} answers; its key is set and was not tried`;
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
    const detail = `${model} is not in the table of models, so its cost is not known and no budget can be held`;
    return { name, active: false, detail, wayOut: "check its spelling, or work without --max-budget-usd" };
  }
  const { input, output } = facts.prices;
  return { name, active: true, detail: `${model}: $${input} for a million tokens of input, $${output} of output` };
};

const engineLayers = (flags: EngineFlags, { env }: Io): readonly Layer[] => {
  try {
    const choice = chooseEngine(flags, env);
    return [keyLayer(choice), modelLayer(choice)];
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const wayOut = "set what is named, or choose another provider";
    return [{ name: "key", active: false, isBroken: true, detail: error.message, wayOut }];
  }
};

export const setupLayers = async (flags: EngineFlags, io: Io): Promise<readonly Layer[]> => {
  const cwd = workingFolder();
  return [folderLayer(cwd), await settingsLayer(cwd, io), ...engineLayers(flags, io)];
};
