/** Images in a prompt: a pasted path of an image file, or an image on the clipboard.
 *  Invariant: the prompt names each image where it was pasted (`[image a.png, 640×480]`), and only an image whose name is
 *  still in the prompt is sent; at most 5 MB each; a file that is no image stays the text that was pasted.
 *  Elsewhere: pasting (input.ts), sending (effects.ts). */

import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { getImageDimensions } from "@earendil-works/pi-tui";
import type { SessionControl } from "@prefork/runtime";
import { safeLine } from "./state/index.ts";

export type Prompt = Parameters<SessionControl["prompt"]>[0];

const MAX_BYTES = 5_000_000;
/** Images that were sent can be sent again from the history. */
const MAX_KEPT = 10;

type PromptImage = { readonly mediaType: string; readonly data: string };

export class PromptImages {
  readonly #kept = new Map<string, PromptImage>();

  /** The name of the image to type into the prompt; undefined if the text is no path of one. */
  async fromPath(pasted: string, cwd: string): Promise<string | undefined> {
    const path = pathIn(pasted, cwd);
    const bytes = path === undefined ? undefined : await readBounded(path);
    return path === undefined || bytes === undefined ? undefined : this.add(basename(path), bytes);
  }

  /** Undefined if the bytes are no image, or too many. */
  add(name: string, bytes: Buffer): string | undefined {
    const mediaType = mediaTypeOf(bytes);
    if (mediaType === undefined || bytes.length > MAX_BYTES) return undefined;
    const data = bytes.toString("base64");
    const size = getImageDimensions(data, mediaType);
    if (!size) return undefined;
    const shown = safeLine(name, 60).replace(/[[\]]/g, "_");
    const label = (suffix: string): string => `[image ${shown}${suffix}, ${size.widthPx}×${size.heightPx}]`;
    let chip = label("");
    for (let number = 2; this.#kept.has(chip) && this.#kept.get(chip)?.data !== data; number++)
      chip = label(` (${number})`);
    this.#kept.delete(chip);
    this.#kept.set(chip, { mediaType, data });
    for (const old of this.#kept.keys()) if (this.#kept.size > MAX_KEPT) this.#kept.delete(old);
    return chip;
  }

  /** The prompt as it is sent: the images that it names, then its text. */
  promptOf(text: string): Prompt {
    const named = [...this.#kept].filter(([chip]) => text.includes(chip));
    if (named.length === 0) return text;
    return [
      ...named.map(([, { mediaType, data }]) => ({
        type: "image" as const,
        source: { kind: "base64" as const, mediaType, data },
      })),
      { type: "text", text },
    ];
  }
}

/** What a terminal pastes when a file is dropped on it: a path, quoted or with escaped spaces, or a file address. */
export const pathIn = (pasted: string, cwd: string): string | undefined => {
  const text = pasted.trim();
  if (text.length > 1_000 || text.includes("\n") || !/\.(?:png|jpe?g|gif|webp)['"]?$/i.test(text)) return undefined;
  try {
    if (text.startsWith("file://")) return fileURLToPath(text);
  } catch {
    return undefined;
  }
  const quoted = /^(['"])(.*)\1$/.exec(text)?.[2];
  const path = quoted ?? text.replace(/\\(.)/g, "$1");
  return resolve(cwd, path.replace(/^~(?=\/)/, homedir()));
};

/** Undefined: not a regular file, too large, or not readable. */
const readBounded = async (path: string): Promise<Buffer | undefined> => {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK); // a pipe would wait for a writer
    const facts = await file.stat();
    return facts.isFile() && facts.size <= MAX_BYTES ? await file.readFile() : undefined;
  } catch {
    return undefined;
  }
};

/** By the first bytes: a name says nothing. */
const mediaTypeOf = (bytes: Buffer): string | undefined => {
  const starts = (hex: string, at = 0): boolean => bytes.subarray(at, at + hex.length / 2).toString("hex") === hex;
  if (starts("89504e470d0a1a0a")) return "image/png";
  if (starts("ffd8ff")) return "image/jpeg";
  if (starts("474946383761") || starts("474946383961")) return "image/gif";
  return starts("52494646") && starts("57454250", 8) ? "image/webp" : undefined;
};
