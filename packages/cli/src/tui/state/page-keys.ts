/** Keys on a page: scrolling, choosing from a list, closing it.
 *  Elsewhere: keys elsewhere (keys.ts), how pages look (../views: pages.ts). */

import { childKey, handled, type KeyPress } from "./child-keys.ts";
import { closePage, leavePage, withoutPage } from "./page-stack.ts";
import type { ListItem, Page, State, Step } from "./state.ts";

export const reducePageKey = (state: State, page: Page, press: KeyPress): Step => {
  if (page.kind === "list") return listKey(state, page, press.key);
  const { key } = press;
  if (key === "escape" || key === "q" || key === "left") return handled(closePage(state));
  const scrolled = scrollBy(key, state.rows);
  if (scrolled !== undefined) {
    const scroll = page.kind === "text" ? page.scroll - scrolled : page.scroll + scrolled;
    return handled({ ...state, page: { ...page, scroll: Math.max(0, scroll) } });
  }
  if (page.kind === "text") return handled(state);
  if (key === "enter" || key === "space") return handled({ ...state, page: { ...page, isExpanded: !page.isExpanded } });
  return childKey(state, page.agent, press) ?? handled(state);
};

/** Lines towards the start (positive) or the end. */
const scrollBy = (key: string, rows: number): number | undefined => {
  const screen = Math.max(1, rows - 3);
  switch (key) {
    case "up":
    case "k":
      return 1;
    case "down":
    case "j":
      return -1;
    case "pageUp":
    case "ctrl+u":
      return screen;
    case "pageDown":
    case "ctrl+d":
      return -screen;
    case "home":
    case "g":
      return 1_000_000;
    case "end":
    case "shift+g":
      return -1_000_000;
    default:
      return undefined;
  }
};

type ListPage = Extract<Page, { readonly kind: "list" }>;

/** The items that contain all words of the filter. */
export const shownItems = ({ items, filter }: ListPage): readonly ListItem[] => {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return items.filter(({ label, detail = "" }) =>
    words.every((word) => `${label} ${detail}`.toLowerCase().includes(word)),
  );
};

const listKey = (state: State, page: ListPage, key: string): Step => {
  const items = shownItems(page);
  const last = Math.max(0, items.length - 1);
  const at = Math.min(page.selected, last);
  const move = (selected: number): Step =>
    handled({ ...state, page: { ...page, selected: Math.min(last, Math.max(0, selected)) } });
  switch (key) {
    case "escape":
      if (page.filter !== "") return handled({ ...state, page: { ...page, filter: "", selected: 0 } });
      return page.otherwise
        ? handled(withoutPage(state), { kind: "chosen", command: page.command, id: page.otherwise.id })
        : handled(closePage(state));
    case "up":
      return move(at - 1);
    case "down":
      return move(at + 1);
    case "pageUp":
      return move(at - 10);
    case "pageDown":
      return move(at + 10);
    case "home":
      return move(0);
    case "end":
      return move(last);
    case "enter": {
      const chosen = items[at];
      return chosen
        ? handled(leavePage(state), { kind: "chosen", command: page.command, id: chosen.id })
        : handled(state);
    }
    case "backspace":
      return handled({ ...state, page: { ...page, filter: page.filter.slice(0, -1), selected: 0 } });
    case "space":
      return handled({ ...state, page: { ...page, filter: `${page.filter} `, selected: 0 } });
    default:
      return key.length === 1
        ? handled({ ...state, page: { ...page, filter: page.filter + key, selected: 0 } })
        : handled(state);
  }
};
