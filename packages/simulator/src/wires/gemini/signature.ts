/** How is a call signed, so that it can be sent back?
 *  Invariant: our signature is valid for the model that made it; foreign ones are not checked.
 *  Elsewhere: who requires them (validate-turns.ts). */

import { hash } from "node:crypto";

const OWN = "sim1";

const text = (model: string, thinking: string): string =>
  [OWN, hash("sha256", model).slice(0, 20), hash("sha256", thinking).slice(0, 20)].join(".");

/** Signatures are base64 here. */
export const signatureFor = (model: string, thinking: string): string =>
  Buffer.from(text(model, thinking)).toString("base64");

export const isForeignSignature = (signature: string, model: string): boolean => {
  const [maker, made] = Buffer.from(signature, "base64").toString("utf8").split(".");
  return maker === OWN && made !== hash("sha256", model).slice(0, 20);
};
