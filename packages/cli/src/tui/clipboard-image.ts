/** The image on the clipboard.
 *  Invariant: nothing is read before the person asks for it (Ctrl-V); programs are started without a shell, for two seconds at
 *  most; without a way to read it, there is none.
 *  Elsewhere: images in a prompt (prompt-images.ts). */

import { execFile } from "node:child_process";
import { getNativeClipboard } from "@earendil-works/pi-tui";

type Env = Readonly<Record<string, string | undefined>>;

const MAX_BYTES = 6_000_000;

/** Undefined if the clipboard has no image, or cannot be read here. */
export const readClipboardImage = async (env: Env): Promise<Buffer | undefined> => {
  try {
    const bytes = await getNativeClipboard()?.getImage();
    if (bytes && bytes.length > 0) return Buffer.from(bytes);
  } catch {
    // another way may work
  }
  for (const [program, ...args] of programsFor(env)) {
    const bytes = await outputOf(program, args);
    if (bytes !== undefined && bytes.length > 0) return bytes;
  }
  return undefined;
};

const programsFor = ({ WAYLAND_DISPLAY, DISPLAY }: Env): readonly (readonly [string, ...string[]])[] => [
  ...(WAYLAND_DISPLAY ? [["wl-paste", "--no-newline", "--type", "image/png"] as const] : []),
  ...(DISPLAY ? [["xclip", "-selection", "clipboard", "-t", "image/png", "-o"] as const] : []),
  ...(process.platform === "darwin" ? [["pngpaste", "-"] as const] : []),
];

const outputOf = (program: string, args: readonly string[]): Promise<Buffer | undefined> =>
  new Promise((resolve) => {
    execFile(program, args, { encoding: "buffer", timeout: 2_000, maxBuffer: MAX_BYTES }, (error, stdout) =>
      resolve(error ? undefined : stdout),
    );
  });
