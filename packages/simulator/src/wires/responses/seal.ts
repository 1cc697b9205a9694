/** How does reasoning leave the provider so that only the provider can read it again?
 *  Invariant: our seal opens only unchanged, and only for models of the family that made it; foreign seals pass,
 *  because they cannot be checked here.
 *  Elsewhere: who uses it (validate-items.ts, prompt.ts). */

import { hash } from "node:crypto";

const OWN = "sim1";

const digest = (text: string): string => hash("sha256", text).slice(0, 20);

/** `gpt-6.1-sol` and `gpt-6-luna` are one family. */
const familyOf = (model: string): string => /^(?:[\w-]+\/)?([a-z]+-?\d+)/.exec(model)?.[1] ?? model;

export const seal = (thinking: string, model: string): string =>
  [OWN, digest(familyOf(model)), digest(thinking), Buffer.from(thinking).toString("base64url")].join(".");

export const opens = (sealed: string, model: string): boolean => {
  const thinking = unseal(sealed);
  return thinking === undefined || sealed === seal(thinking, model);
};

/** The thinking; undefined for a foreign seal. */
export const unseal = (sealed: string): string | undefined => {
  const [maker, , , text = ""] = sealed.split(".");
  return maker === OWN ? Buffer.from(text, "base64url").toString("utf8") : undefined;
};

/** An id that this simulator gave. */
export const isOwnId = (id: string): boolean => id.includes("_sim");
