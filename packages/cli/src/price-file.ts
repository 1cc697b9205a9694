/** The user's own prices: a JSON file that overrides the built-in table.
 *  Invariant: a file is used as a whole, or refused with one line that names the file and the JSON path; a known model may
 *  be changed in part, but an unknown one must be complete, so that no price is guessed.
 *  Elsewhere: applying it (withPrices of @prefork/wire), the built-in prices (@prefork/wire: cost/models.ts). */

import { readFile } from "node:fs/promises";
import { knownModels, type ModelFacts, modelFacts, type PriceOverride, withPrices } from "@prefork/wire";
import * as z from "zod";
import { UsageError } from "./io.ts";

const dollars = z.number().nonnegative().max(1e6); // per million tokens
const tokens = z.number().int().nonnegative();
const write = z.strictObject({
  "5m": dollars.exactOptional(),
  "30m": dollars.exactOptional(),
  "1h": dollars.exactOptional(),
  "12h": dollars.exactOptional(),
});
const prices = { input: dollars, write, read: dollars, output: dollars };
const rest = {
  tiers: z.array(z.strictObject({ above: tokens, ...prices })).exactOptional(),
  fast: z.strictObject({ input: dollars, output: dollars }).exactOptional(),
  minimumPrefix: tokens.exactOptional(),
  storage: dollars.exactOptional(), // an hour
  earlierThinking: z.enum(["keep-all", "last-turn"]).exactOptional(),
};

const complete = z.strictObject({ ...prices, ...rest });
const partial = z.strictObject({
  input: dollars.exactOptional(),
  write: write.exactOptional(),
  read: dollars.exactOptional(),
  output: dollars.exactOptional(),
  ...rest,
});
const file = z.strictObject({ models: z.record(z.string().min(1), z.unknown()) });

/** ["models", "my.model", "tiers", 0] → models["my.model"].tiers[0]. */
const jsonPath = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    const name = String(key);
    if (!/^[A-Za-z_][\w-]*$/.test(name)) return `${text}[${JSON.stringify(name)}]`;
    return text === "" ? name : `${text}.${name}`;
  }, "");

const complaint = (issue: z.core.$ZodIssue): { readonly path: readonly PropertyKey[]; readonly text: string } => {
  if (issue.code === "unrecognized_keys") return { path: [...issue.path, issue.keys[0] ?? ""], text: "unknown field" };
  if (issue.code === "invalid_type" && issue.input === undefined) return { path: issue.path, text: "missing" };
  return { path: issue.path, text: issue.message.replace(/^Invalid input: /, "") };
};

const checked = <T>(schema: z.ZodType<T>, value: unknown, place: { name: string; path: readonly string[] }): T => {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const { path, text } = issue ? complaint(issue) : { path: [], text: "not valid" };
  const where = jsonPath([...place.path, ...path]);
  throw new UsageError(`${place.name}: ${where === "" ? "" : `${where}: `}${text}`);
};

const parsedJson = (text: string, name: string): unknown => {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new UsageError(`${name}: not JSON: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
};

const asOverride = (entry: z.infer<typeof partial>): PriceOverride => {
  const { input, write, read, output, tiers, ...others } = entry;
  const given = { input, write, read, output };
  return {
    ...others,
    prices: Object.fromEntries(Object.entries(given).filter(([, price]) => price !== undefined)),
    ...(tiers ? { tiers: tiers.map(({ above, ...tierPrices }) => ({ above, prices: tierPrices })) } : {}),
  };
};

/** The overrides in a file's text; errors call the file `name`. */
export const parsePriceFile = (text: string, name: string): ReadonlyMap<string, PriceOverride> => {
  const { models } = checked(file, parsedJson(text, name), { name, path: [] });
  const overrides = Object.entries(models).map(([id, value]) => {
    const schema = modelFacts(id) === undefined ? complete : partial;
    return [id, asOverride(checked(schema, value, { name, path: ["models", id] }))] as const;
  });
  return new Map(overrides);
};

const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EISDIR: "is a directory",
  EACCES: "permission denied",
};

/** The built-in table, overridden by the user's file if one is given. */
export const priceTable = async (path: string | undefined): Promise<ReadonlyMap<string, ModelFacts>> => {
  if (path === undefined) return knownModels;
  const { tamperingRisk } = await import("@prefork/guard");
  const risk = await tamperingRisk(path);
  if (risk !== undefined) throw new UsageError(`${path} is not used: ${risk}`);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "cannot be read";
    throw new UsageError(`${path}: ${READ_FAILURES[code] ?? code}`, { cause: error });
  }
  return withPrices(knownModels, parsePriceFile(text, path));
};
