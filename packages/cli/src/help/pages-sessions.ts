/** The help of the commands about sessions and their work. */

import type { HelpPage } from "./page.ts";

const STATE: HelpPage["files"] = [
  ["~/.local/state/prefork", "sessions, tasks and trust; with XDG_STATE_HOME: $XDG_STATE_HOME/prefork"],
];

const KEYS: HelpPage["environment"] = [
  ["ANTHROPIC_API_KEY", "key for Anthropic (or ANTHROPIC_AUTH_TOKEN)"],
  ["OPENAI_API_KEY", "key for OpenAI"],
  ["GEMINI_API_KEY", "key for Gemini; with --provider, the provider's own variable"],
  ["ANTHROPIC_BASE_URL", "another endpoint; also OPENAI_BASE_URL and GOOGLE_GEMINI_BASE_URL"],
];

const UNREADABLE: HelpPage["exitCodes"] = [["1", "a session could not be read, so the list is incomplete"]];

export const SESSION_PAGES: Readonly<Record<string, HelpPage>> = {
  print: {
    about: [
      'Runs the coding agent on one prompt and prints its answer. On a terminal it asks before risky calls; elsewhere there is nobody to ask, so a call that needs permission is denied. Warnings go to standard error, and with json and events also to "warnings" of the result.',
      "If no key and no base URL is set, the built-in rehearsal engine answers, without a language model.",
    ],
    examples: [
      ['prefork -p "fix the failing test"', "run one prompt here"],
      ['git diff | prefork -p "review this change"', "append standard input to the prompt"],
      ['prefork -p -c --output-format json "now add a test"', "resume the last session, and print JSON"],
    ],
    exitCodes: [
      ["0", "done"],
      ["1", "failed"],
      ["2", "usage error"],
      ["3", "stopped by a limit"],
      ["4", "refused by the model"],
      [
        "5",
        "done but incomplete: every fork failed, the session's journal is damaged, or a merge left conflicts in files",
      ],
      ["130", "interrupted (129 by SIGHUP, 143 by SIGTERM)"],
    ],
    environment: KEYS,
    files: [
      ["~/.prefork/settings.json", "your settings (prefork config)"],
      [".prefork/settings.json", "the project's, used once the folder is trusted (prefork trust)"],
      ...STATE,
    ],
  },
  terminal: {
    about: ["Type ? in the empty input for the keys, and /help for the commands."],
    examples: [
      ["prefork", "open the terminal in this folder"],
      ['prefork "fix the failing test"', "open it with a prompt"],
      ["prefork --continue", "resume the last session in this folder"],
    ],
    environment: [...KEYS, ["NO_COLOR", "no colours"]],
    files: [["~/.prefork/settings.json", "your settings (prefork config)"], ...STATE],
  },
  sessions: {
    about: ["Every prompt belongs to a session, whose journal is on your disk. Without a command: list."],
    examples: [
      ["prefork sessions", "list the sessions of this folder"],
      ["prefork sessions search flaky test", "find sessions that mention both words"],
      ["prefork sessions show 4f2a", "show one, with its last answer"],
    ],
    files: STATE,
  },
  "sessions list": {
    about: [
      "The last used session comes first. The title is the first line of the first prompt, or what you set with prefork sessions rename. The cost includes forks.",
    ],
    examples: [
      ["prefork sessions", "the sessions of this folder"],
      ["prefork sessions list --all", "the sessions of all folders"],
      ["prefork sessions --json", "one JSON object per line, with the last answer's first lines"],
    ],
    exitCodes: UNREADABLE,
    files: STATE,
  },
  "sessions show": {
    examples: [
      ["prefork sessions show 4f2a", "the first letters of an id are enough"],
      ["prefork sessions show --json 4f2a", "the same for programs"],
    ],
  },
  "sessions search": {
    about: [
      "Searches what you wrote and what the agent answered, and the titles; not tool results. The last used session comes first, each with up to three excerpts.",
    ],
    examples: [
      ["prefork sessions search flaky test", "sessions of this folder that have both words"],
      ["prefork sessions search --all --json migration", "all folders, one JSON object per line"],
    ],
    exitCodes: [["1", "no session has all the words, or one could not be read"]],
  },
  "sessions tree": {
    about: [
      "Each prompt, each compaction and each rewind is a node. The current one has a *; those that the session left are marked, and can be continued too. Warm for: how long the provider's cache still has the conversation up to there.",
    ],
    examples: [
      ["prefork sessions tree 4f2a", "the nodes of a session, oldest first"],
      ["prefork sessions tree --json 4f2a", "one JSON object per line"],
    ],
  },
  rewind: {
    about: [
      "Nothing is lost: what the session leaves stays in its tree, and the files as they are now are kept first. Ignored files, submodules, and the largest of more than 64 MiB of changed and untracked files are not restored. Outside a git repository, only files that the agent's Write and Edit changed are.",
      "The session must not be open in another process.",
    ],
    examples: [
      ["prefork rewind 4f2a --to n25 --both --preview", "what would change"],
      ["prefork rewind 4f2a --to n25 --both", "conversation and files as before that prompt"],
      ["prefork rewind 4f2a --to n40 --after", "continue a node that was left"],
    ],
    files: STATE,
  },
  "sessions rename": {
    about: ["A session can be renamed while it is open. The conversation does not change."],
    examples: [
      ["prefork sessions rename 4f2a The flaky clock test", "set a title"],
      ['prefork sessions rename 4f2a ""', "use the first prompt again"],
    ],
  },
  "sessions export": {
    examples: [
      ["prefork sessions export 4f2a", "print the conversation as Markdown"],
      ["prefork sessions export 4f2a -o talk.md", "write it to a new file"],
    ],
  },
  "sessions delete": {
    about: ["All sessions are looked up before the first is deleted. A session that is in use is never deleted."],
    examples: [
      ["prefork sessions delete 4f2a 9c01", "delete two sessions"],
      ["prefork sessions delete --forks 4f2a", "delete one together with its forks"],
    ],
  },
  attach: {
    about: [
      "Opens the terminal on a session that runs elsewhere: its conversation, its forks and its questions, with the keys of prefork itself. Ctrl-C twice or /quit detaches; the session continues. The first answer to a question counts, whoever gives it. With --plain, in a pipe and with TERM=dumb, it prints one line for each call and fork instead. A session without a terminal waits for answers only if it was started with --ask-attached.",
    ],
    examples: [
      ["prefork attach", "the only session that runs, or a list"],
      ["prefork attach --read-only 4f2a", "watch a session, and send nothing"],
      ["prefork attach task-3", "with the page of this task open"],
    ],
    exitCodes: [
      ["0", "detached, or the session or task has ended"],
      ["1", "the session's process died or does not answer"],
    ],
    files: [["/tmp/prefork-<uid>", "the sockets of running sessions; or $XDG_RUNTIME_DIR/prefork"]],
  },
  tasks: {
    about: ["A task is a fork or another agent that a session started. Without a command: list."],
    examples: [
      ["prefork tasks", "the tasks of the last session in this folder"],
      ["prefork tasks show task-3", "one task, with its report"],
      ["prefork ps", "what runs now, in all sessions"],
    ],
    files: STATE,
  },
  "tasks list": {
    examples: [
      ["prefork tasks", "the tasks of the last session in this folder"],
      ["prefork tasks list --session 4f2a --json", "of another session, for programs"],
    ],
    exitCodes: UNREADABLE,
  },
  "tasks show": {
    examples: [
      ["prefork tasks show task-3", "instructions, report and cost"],
      ["prefork tasks show --json 3", "task- may be left out"],
    ],
  },
  "tasks stop": {
    about: ["The task ends after the call that it is in. Its worktree and its journal stay."],
    examples: [
      ["prefork tasks stop task-3", "stop one task"],
      ["prefork tasks stop 3", "the same"],
    ],
  },
  "tasks resume": {
    examples: [
      ["prefork tasks resume task-3", "continue a task that a crash interrupted"],
      ['prefork tasks resume task-3 "also update the docs"', "give a task that has reported more to do"],
    ],
    exitCodes: [["1", "the task ended without a report"]],
    environment: KEYS,
  },
  ps: {
    examples: [
      ["prefork ps", "what runs, is queued or waits, in all sessions"],
      ["prefork ps --all --json", "also what has ended, one JSON object per line"],
    ],
    exitCodes: UNREADABLE,
  },
  explain: {
    about: [
      "For each request: what it read from the cache, wrote to it and cost, why it did not read more, and what the alternatives to forking would have cost.",
    ],
    examples: [
      ["prefork explain", "the last session of this folder"],
      ["prefork explain 4f2a task-3", "one task of a session"],
      ["prefork explain --json latest", "for programs"],
    ],
  },
  worktrees: {
    about: [
      "Forks that change code can work in git worktrees of their own. Without a command: list. To merge their work: prefork worktrees merge",
    ],
    examples: [
      ["prefork worktrees", "list the worktrees of this repository"],
      ["prefork worktrees merge --family --preview", "see what merging the last forks would do"],
      ["prefork worktrees merge --undo", "undo the last merge"],
    ],
  },
  "worktrees list": {
    examples: [
      ["prefork worktrees", "worktrees, and what a crash interrupted"],
      ["prefork worktrees list --all --json", "also removed ones, for programs"],
    ],
  },
  "worktrees show": {
    examples: [
      ["prefork worktrees show task-3", "what changed, and whether it would merge"],
      ["prefork worktrees show --diff 3", "with the changes themselves"],
    ],
  },
  "worktrees path": {
    examples: [
      ['cd "$(prefork worktrees path task-3)"', "go to a task's worktree"],
      ["prefork worktrees path --cwd ../other task-1", "of another checkout"],
    ],
  },
  "worktrees prune": {
    examples: [
      ["prefork worktrees prune", "remove what is merged or empty"],
      ["prefork worktrees prune --force task-3", "also remove unmerged work, after a question"],
    ],
    exitCodes: [["1", "a worktree that --force names was kept"]],
  },
  "worktrees repair": {
    examples: [
      ["prefork worktrees repair", "finish or roll back what a crash interrupted"],
      ["prefork worktrees repair --json", "the same, for programs"],
    ],
  },
  merge: {
    about: ["A check fails while conflicts are left in files, so with markers and a check the merge is undone."],
    lists: {
      "On conflict": [
        ["stop", "do not merge this task, and stop the queue"],
        ["skip", "do not merge it, and continue with the next"],
        ["markers", "write both sides into the files, between conflict markers"],
        ["mine, theirs", "take your checkout's or the fork's side of each conflict"],
        ["hand-back", "the fork resumes in its worktree, resolves the conflicts, and is merged then"],
      ],
      Undo: [
        ["--undo", "undoes the last merge"],
        ["--undo 3", "undoes the last three"],
        ["--undo --family", "undoes all merges of the last command"],
      ],
    },
    examples: [
      ["prefork worktrees merge --family --preview", "see what merging the last forks would do"],
      ['prefork worktrees merge task-3 --check "npm test"', "merge one, and undo it if the tests fail"],
      ["prefork worktrees merge --undo", "undo the last merge"],
    ],
    exitCodes: [
      ["0", "all merged"],
      ["1", "something was not merged or not undone"],
      ["2", "usage error"],
      ["5", "all merged, but conflicts are left in files (markers)"],
      ["130", "interrupted"],
    ],
  },
};
