/** The screen as the program uses it.
 *  Elsewhere: drawing and keys (screen.ts), plain lines instead (plain.ts). */

import { Completions } from "./completion.ts";
import type { ImagePasting } from "./input.ts";
import type { PromptImages } from "./prompt-images.ts";
import { Screen } from "./screen.ts";
import type { ViewFactory } from "./terminal-view.ts";
import { chooseTheme } from "./views/index.ts";

export const screenView: ViewFactory = ({ io, state, onKey, onSubmit, onScrollLimit, onHint }) => {
  const { colour: hasColour, env } = io;
  const completions = new Completions({ io, state: () => state() });
  const theme = chooseTheme("system", { hasColour, env });
  const pasted: { images?: PromptImages } = {};
  const loadImages = async (): Promise<PromptImages> => {
    const { PromptImages: Images } = await import("./prompt-images.ts");
    pasted.images ??= new Images();
    return pasted.images;
  };
  const images: ImagePasting = {
    fromPath: async (text) => (await loadImages()).fromPath(text, state().cwd),
    fromClipboard: async () => {
      const { readClipboardImage } = await import("./clipboard-image.ts");
      const bytes = await readClipboardImage(env);
      const name = bytes && (await loadImages()).add("clipboard", bytes);
      if (name === undefined) onHint("There is no image of up to 5 MB on the clipboard, or it cannot be read here.");
      return name;
    },
  };
  const screen = new Screen({ theme, completions, state, onKey, onSubmit, onScrollLimit, images });
  return {
    input: screen.input,
    start: () => screen.start(),
    stop: () => screen.stop(),
    finish: () => screen.finish(),
    draw: () => screen.draw(),
    redraw: () => screen.redraw(),
    writeSequence: (sequence) => io.out(sequence),
    promptOf: (text) => pasted.images?.promptOf(text) ?? text,
    isFocused: () => screen.isFocused,
    setTheme: (name) => screen.setTheme(chooseTheme(name, { hasColour, env })),
    // The terminal is asked for its background while the settings are read.
    applySettings: async (settings) => {
      const answer = hasColour ? screen.background() : undefined;
      const { theme: wanted, keys, notify, mouse } = await settings;
      screen.input.setKeys(keys);
      screen.useMouse(mouse);
      if (notify !== "off") screen.reportFocus();
      screen.setTheme(chooseTheme(wanted, { hasColour, env, background: await answer }));
    },
  };
};
