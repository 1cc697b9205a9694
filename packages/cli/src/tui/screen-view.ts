/** The screen as the program uses it.
 *  Elsewhere: drawing and keys (screen.ts), plain lines instead (plain.ts). */

import { Completions } from "./completion.ts";
import { Screen } from "./screen.ts";
import type { ViewFactory } from "./terminal-view.ts";
import { chooseTheme } from "./views/index.ts";

export const screenView: ViewFactory = ({ io, state, onKey, onSubmit, onScrollLimit }) => {
  const { colour: hasColour, env } = io;
  const completions = new Completions({ io, state: () => state() });
  const theme = chooseTheme("system", { hasColour, env });
  const screen = new Screen({ theme, completions, state, onKey, onSubmit, onScrollLimit });
  return {
    input: screen.input,
    start: () => screen.start(),
    stop: () => screen.stop(),
    draw: () => screen.draw(),
    redraw: () => screen.redraw(),
    writeSequence: (sequence) => io.out(sequence),
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
