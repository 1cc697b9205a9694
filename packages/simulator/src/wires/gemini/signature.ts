/** How is a call signed, so that it can come back?
 *  Invariant: a signature of ours is good for the model that made it; those from elsewhere pass unchecked.
 *  Elsewhere: who asks for them (validate-turns.ts). */

import { hash } from "node:crypto";

const OWN = "sim1";

const text = (model: string, thinking: string): string =>
  [OWN, hash("sha256", model).slice(0, 20), hash("sha256", thinking).slice(0, 20)].join(".");

/** Bytes travel as base64 here. */
export const signatureFor = (model: string, thinking: string): string =>
  Buffer.from(text(model, thinking)).toString("base64");

export const isForeignSignature = (signature: string, model: string): boolean => {
  const [maker, made] = Buffer.from(signature, "base64").toString("utf8").split(".");
  return maker === OWN && made !== hash("sha256", model).slice(0, 20);
};
