/** Which parameters of two prompts differ, and where are they said?
 *  Invariant: only those that are in the key and not at their defaults; one difference a parameter.
 *  Elsewhere: reading them (anthropic-settings.ts, openai-settings.ts), which level each one loses (rules.ts). */

import type { XrayCause } from "./cause.ts";
import { locate, type Pair } from "./locate.ts";
import type { Prompt, Setting } from "./piece.ts";
import { type At, itemsAt, memberAt, membersAt, rawText, stringAt } from "./places.ts";
import type { Level, Parameter } from "./rules.ts";
import { gapInside, type Located, wholePlace } from "./spot.ts";

const settingsAt = ({ pieces }: Prompt, level: Level): readonly Setting[] =>
  pieces.find((piece) => piece.level === level && piece.kind === "settings" && piece.at === undefined)?.settings ?? [];

export const settingDifferences = (pair: Pair, level: Level): readonly (Located & { readonly cause: XrayCause })[] => {
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

/** The rest of their entries may be credentials. */
const serverNames = ({ at }: Setting): string =>
  (at ? itemsAt(at) : []).map((server) => stringAt(memberAt(membersAt(server), "name")) ?? "").join(", ");

const KEYS: Readonly<Partial<Record<Parameter, string>>> = {
  cache_key: "prompt_cache_key",
  session_id: "session_id",
  cache_salt: "cache_salt",
  user_id: "user_id",
  cached_content: "cachedContent",
};

/** Gateways choose one of several servers by it, and keep nothing by it themselves. */
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

const settingPlaces = ({ a, b }: Pair, one: Setting | undefined, other: Setting | undefined): Located => {
  if (one?.at && other?.at) return locate(one.at, other.at, { form: "unordered", rule: b.text });
  return {
    path: other?.at?.path ?? one?.at?.path ?? other?.name ?? one?.name ?? "",
    a: one?.at ? wholePlace(one.at) : gapInside(a.body.root),
    b: other?.at ? wholePlace(other.at) : gapInside(b.body.root),
  };
};

/** How many images there are is in the key of the messages; the first that only one side has is pointed at. */
const imagesDifference = ({ a, b }: Pair): Located & { readonly cause: XrayCause } => {
  const isAdded = b.images.length > a.images.length;
  const [fewer, more] = isAdded ? [a, b] : [b, a];
  const known = new Set(fewer.images.map(rawText));
  const extra: At = more.images.find((image) => !known.has(rawText(image))) ?? more.images.at(-1) ?? more.body.root;
  const [there, gap] = [wholePlace(extra), gapInside(fewer.body.root)];
  return {
    cause: { kind: "images", change: isAdded ? "added" : "removed", count: more.images.length - fewer.images.length },
    path: extra.path,
    a: isAdded ? gap : there,
    b: isAdded ? there : gap,
  };
};
