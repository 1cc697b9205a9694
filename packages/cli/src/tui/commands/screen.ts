/** /theme: how the screen looks.
 *  Elsewhere: themes (../views: theme.ts). */

import type { ThemeName } from "../views/index.ts";
import type { SlashCommand } from "./command.ts";

const THEMES: readonly ThemeName[] = ["dark", "light", "system", "colour-blind", "none"];

const theme: SlashCommand = {
  name: "theme",
  args: "[name]",
  summary: "colours: dark, light, system, colour-blind or none",
  group: "Screen",
  run: (args, context) => {
    const named = THEMES.find((name) => name === args.trim());
    if (named) return context.setTheme(named);
    context.dispatch({
      type: "pageOpened",
      page: {
        ...{ kind: "list", title: "Theme", command: "theme", selected: 0, filter: "", hint: "use it" },
        items: THEMES.map((name) => ({ id: name, label: name })),
      },
    });
  },
  chosen: (id, context) => {
    const named = THEMES.find((name) => name === id);
    if (named) context.setTheme(named);
  },
};

export const screenCommands: readonly SlashCommand[] = [theme];
