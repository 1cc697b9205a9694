/** Options that many git subcommands share: those of commands that show changes, and those of commands that show history;
 *  and the lists of words that git.ts looks up.
 *  Invariant: none of these options writes, starts a helper, verifies a signature or looks into a submodule. A letter takes a
 *  value here exactly when it takes one in git; otherwise the letters after it would be misread.
 *  Elsewhere: the subcommands (git.ts). */

/** Of commands that show changes. */
export const DIFF = {
  flags: "pusRratzWwbD",
  valued: "SGOlI",
  glued: "UMCBX",
  long:
    "patch no-patch unified? raw patch-with-raw patch-with-stat minimal patience histogram diff-algorithm= stat? stat-width= " +
    "stat-name-width= stat-count= stat-graph-width= numstat shortstat dirstat? summary compact-summary name-only name-status " +
    "color? no-color color-moved? no-color-moved word-diff? word-diff-regex= color-words? no-renames rename-empty " +
    "no-rename-empty check full-index binary abbrev? break-rewrites? find-renames? find-copies? find-copies-harder " +
    "irreversible-delete diff-filter= pickaxe-all pickaxe-regex relative? no-relative text ignore-cr-at-eol " +
    "ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= inter-hunk-context= " +
    "function-context exit-code quiet no-ext-diff no-textconv src-prefix= dst-prefix= no-prefix default-prefix line-prefix= " +
    "anchored= indent-heuristic no-indent-heuristic ita-invisible-in-index cc combined-all-paths skip-to= rotate-to= ws-error-highlight=",
} as const;

/** Their values are text to search for, which may start with a dash. */
export const DASH_VALUES = "S G grep";

/** Of commands that show history. */
export const LOG = {
  flags: "iEFPgmcq",
  valued: "nL",
  long:
    "oneline graph no-graph all branches? tags? remotes? glob= exclude= since= after= until= before= author= committer= grep= " +
    "all-match invert-grep regexp-ignore-case extended-regexp fixed-strings basic-regexp perl-regexp merges no-merges " +
    "first-parent follow decorate? no-decorate clear-decorations decorate-refs= decorate-refs-exclude= pretty? format= " +
    "abbrev-commit no-abbrev-commit no-abbrev date= relative-date reverse topo-order date-order author-date-order max-count= " +
    "skip= left-right left-only right-only cherry-pick cherry-mark cherry boundary simplify-by-decoration full-history dense " +
    "sparse simplify-merges ancestry-path? show-pulls walk-reflogs source log-size notes? no-notes encoding= expand-tabs? " +
    "no-expand-tabs children parents mailmap use-mailmap no-mailmap no-use-mailmap no-walk? do-walk min-parents= max-parents= " +
    "no-min-parents no-max-parents bisect reflog not diff-merges= no-diff-merges full-diff root",
} as const;

/** Subcommands that are known to change something. */
export const WRITING: readonly string[] = (
  "add am checkout cherry-pick clone commit fetch gc init merge mv prune " +
  "pull push rebase reset restore revert rm switch update-index update-ref"
).split(" ");

/** Settings that only change how output looks. */
export const DISPLAY_SETTINGS =
  /^(color\.\w+=(always|never|auto|true|false)|core\.quote[pP]ath=(true|false|on|off)|core\.pager=cat|log\.(decorate|abbrevCommit|follow|mailmap|showRoot)=(true|false)|diff\.(renames|renameLimit|context|noprefix|mnemonicPrefix)=\w+|column\.ui=\w+)$/;

/** Formats that git defines, or that are spelled out. A name that a repository defines could stand for anything. */
export const PRETTY = /^(oneline|short|medium|full|fuller|reference|email|raw|mboxrd|)$|^t?format:|%/;
