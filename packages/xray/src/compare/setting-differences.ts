/** Which parameters of two prompts differ, and where are they set?
 *  Invariant: only parameters that are in the key and not at their defaults; one difference per parameter.
 *  Elsewhere: reading them (anthropic.ts, openai.ts, gemini.ts), which level each one invalidates (vendors.ts). */

import type { XrayCause } from "./cause.ts";
import { locate, type Pair } from "./locate.ts";
import { gapInside, type LocatedDifference, wholeLocation } from "./location.ts";
import type { Prompt, Setting } from "./piece.ts";
import type { Level, Parameter } from "./rules.ts";
import { type BodyValue, itemsAt, memberAt, membersAt, rawText, stringAt } from "./values.ts";

const settingsAt = ({ pieces }: Prompt, level: Level): readonly Setting[] =>
  pieces.find((piece) => piece.level === level && piece.kind === "settings" && piece.at === undefined)?.settings ?? [];

export const settingDifferences = (
  pair: Pair,
  level: Level,
): readonly (LocatedDifference & { readonly cause: XrayCause })[] => {
  const [ours, theirs] = [settingsAt(pair.a, level), settingsAt(pair.b, level)];
  const order = Object.keys(pair.b.rules.loses);
  const names = [...new Set([...theirs, ...ours].map(({ name }) => name))];
  return names
    .sort((one, other) => order.indexOf(one) - order.indexOf(other))
    .flatMap((name) => {
      const one = ours.find((setting) => setting.name === name);
      const other = theirs.find((setting) => setting.name === name);
      if (one?.text === other?.text) return [];
      if (name === "images") return [imagesDifference(pair)];
      return [{ cause: settingCause(pair.b, one, other), ...settingPlaces(pair, one, other) }];
    });
};

const QUOTED = 60;

const quoted = (setting: Setting | undefined, name: Parameter): string => {
  if (setting === undefined) return name === "betas" ? "none" : "its default";
  const text = name === "mcp_servers" ? serverNames(setting) : setting.text;
  return text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text;
};

/** The rest of their entries may contain credentials. */
const serverNames = ({ at }: Setting): string =>
  (at ? itemsAt(at) : []).map((server) => stringAt(memberAt(membersAt(server), "name")) ?? "").join(", ");

const KEYS: Readonly<Partial<Record<Parameter, string>>> = {
  cache_key: "prompt_cache_key",
  session_id: "session_id",
  cache_salt: "cache_salt",
  user_id: "user_id",
  cached_content: "cachedContent",
};

/** Gateways use it to choose a server, and do not cache by it themselves. */
const isRouting = (name: Parameter, { body }: Prompt): boolean =>
  name === "session_id" || (name === "cache_key" && /claude/i.test(body.model));

const settingCause = (b: Prompt, one: Setting | undefined, other: Setting | undefined): XrayCause => {
  const name = other?.name ?? one?.name ?? "model";
  const changed = { from: quoted(one, name), to: quoted(other, name) };
  const key = KEYS[name];
  if (key !== undefined)
    return { kind: "cache-key", name: key, ...changed, ...(isRouting(name, b) ? { routes: true } : {}) };
  switch (name) {
    case "model":
    case "speed":
    case "thinking":
    case "effort":
      return { kind: name, ...changed };
    case "tool_choice":
      return { kind: "tool-choice", ...changed, ...(b.rules.loses[name] === "messages" ? {} : { unpublished: true }) };
    default:
      return { kind: "parameter", name, ...changed };
  }
};

const settingPlaces = ({ a, b }: Pair, one: Setting | undefined, other: Setting | undefined): LocatedDifference => {
  if (one?.at && other?.at) return locate(one.at, other.at, { form: "unordered", rule: b.text });
  return {
    path: other?.at?.path ?? one?.at?.path ?? other?.name ?? one?.name ?? "",
    a: one?.at ? wholeLocation(one.at) : gapInside(a.body.root),
    b: other?.at ? wholeLocation(other.at) : gapInside(b.body.root),
  };
};

/** The number of images is in the key of the messages; the location is the first image that only one side has. */
const imagesDifference = ({ a, b }: Pair): LocatedDifference & { readonly cause: XrayCause } => {
  const isAdded = b.images.length > a.images.length;
  const [fewer, more] = isAdded ? [a, b] : [b, a];
  const known = new Set(fewer.images.map(rawText));
  const extra: BodyValue =
    more.images.find((image) => !known.has(rawText(image))) ?? more.images.at(-1) ?? more.body.root;
  const [there, gap] = [wholeLocation(extra), gapInside(fewer.body.root)];
  return {
    cause: { kind: "images", change: isAdded ? "added" : "removed", count: more.images.length - fewer.images.length },
    path: extra.path,
    a: isAdded ? gap : there,
    b: isAdded ? there : gap,
  };
};
