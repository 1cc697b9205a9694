/** Options that many git subcommands share: those that show changes, and those that show history.
 *  Invariant: none of them writes, starts a helper, checks a signature or looks into a submodule; each letter takes a
 *  value here exactly where it takes one in git, or the letters behind it are not seen.
 *  Elsewhere: the subcommands (git.ts). */

export const DIFF =
  "patch no-patch unified? raw patch-with-raw patch-with-stat minimal patience histogram diff-algorithm= stat? stat-width= " +
  "stat-name-width= stat-count= stat-graph-width= numstat shortstat dirstat? summary compact-summary name-only name-status " +
  "color? no-color color-moved? no-color-moved word-diff? word-diff-regex= color-words? no-renames rename-empty " +
  "no-rename-empty check full-index binary abbrev? break-rewrites? find-renames? find-copies? find-copies-harder " +
  "irreversible-delete diff-filter= pickaxe-all pickaxe-regex relative? no-relative text ignore-cr-at-eol " +
  "ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= inter-hunk-context= " +
  "function-context exit-code quiet no-ext-diff no-textconv src-prefix= dst-prefix= no-prefix default-prefix line-prefix= " +
  "anchored= indent-heuristic no-indent-heuristic ita-invisible-in-index cc combined-all-paths skip-to= rotate-to= ws-error-highlight=";
export const DIFF_FLAGS = "pusRratzWwbD";
export const DIFF_VALUED = "SGOlI";
export const DIFF_GLUED = "UMCBX";
/** They search for text, which may start with a dash. */
export const DASHED = "S G grep";

export const LOG =
  "oneline graph no-graph all branches? tags? remotes? glob= exclude= since= after= until= before= author= committer= grep= " +
  "all-match invert-grep regexp-ignore-case extended-regexp fixed-strings basic-regexp perl-regexp merges no-merges " +
  "first-parent follow decorate? no-decorate clear-decorations decorate-refs= decorate-refs-exclude= pretty? format= " +
  "abbrev-commit no-abbrev-commit no-abbrev date= relative-date reverse topo-order date-order author-date-order max-count= " +
  "skip= left-right left-only right-only cherry-pick cherry-mark cherry boundary simplify-by-decoration full-history dense " +
  "sparse simplify-merges ancestry-path? show-pulls walk-reflogs source log-size notes? no-notes encoding= expand-tabs? " +
  "no-expand-tabs children parents mailmap use-mailmap no-mailmap no-use-mailmap no-walk? do-walk min-parents= max-parents= " +
  "no-min-parents no-max-parents bisect reflog not diff-merges= no-diff-merges full-diff root";
export const LOG_FLAGS = "iEFPgmcq";
export const LOG_VALUED = "nL";
