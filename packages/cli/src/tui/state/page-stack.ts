/** Pages one above the other: a page that was opened from another one leads back to it.
 *  Invariant: at most eight pages are kept below the one on the screen; a page is never below itself. While no page is
 *  open, the pages below wait for the page that a choice may open, and the next key drops them.
 *  Elsewhere: keys on a page (page-keys.ts), how pages look (../views: pages.ts). */

import type { Page, State } from "./state.ts";

const MAX_BELOW = 8;

export const withoutPage = ({ page: _page, ...state }: State): State => ({ ...state, pagesBelow: [] });

/** Opens a page above the one on the screen, or above the list that it was chosen from. A page that is open already, or
 *  below, is replaced. */
export const openPageAbove = (state: State, page: Page): State => {
  const stack = [...state.pagesBelow, ...(state.page ? [state.page] : [])];
  const same = stack.findIndex((open) => isSamePage(open, page));
  const below = same === -1 ? stack : stack.slice(0, same);
  return { ...state, page, pagesBelow: below.slice(-MAX_BELOW) };
};

export const closePage = (state: State): State => {
  const below = state.pagesBelow.at(-1);
  return below ? { ...state, page: below, pagesBelow: state.pagesBelow.slice(0, -1) } : withoutPage(state);
};

/** Something on the page was chosen. If that opens another page, closing it leads back here. */
export const leavePage = ({ page, ...state }: State): State =>
  page ? { ...state, pagesBelow: [...state.pagesBelow, page].slice(-MAX_BELOW) } : state;

const isSamePage = (one: Page, other: Page): boolean => {
  if (one.kind === "conversation") return other.kind === "conversation" && one.agent === other.agent;
  return other.kind === one.kind && one.title === other.title;
};
