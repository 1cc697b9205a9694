/** The help of the commands that set prefork up. */

import type { HelpPage } from "./page.ts";

const SETTINGS: HelpPage["files"] = [
  ["~/.prefork/settings.json", "your own settings (user)"],
  [".prefork/settings.json", "the project's, used once the folder is trusted (project)"],
  [".prefork/settings.local.json", "your own for this project, not committed (local)"],
];

export const SETUP_PAGES: Readonly<Record<string, HelpPage>> = {
  mcp: {
    about: ["Tool servers give the agent more tools. Listing and editing start nothing. Without a command: list."],
    examples: [
      ["prefork mcp", "the servers that a session here would use"],
      ["prefork mcp add files -- npx files-server /srv", "add a program"],
      ["prefork mcp test files", "start it, and list its tools"],
    ],
    files: [
      ["~/.prefork/settings.json", "your own servers"],
      [".mcp.json", "the folder's, used once it is trusted"],
    ],
  },
  "mcp list": {
    examples: [
      ["prefork mcp", "names, programs and files"],
      ["prefork mcp list --json", "for programs; without secrets"],
    ],
  },
  "mcp add": {
    about: ["NAME in --env keeps a secret out of the file and of the command line."],
    examples: [
      ["prefork mcp add files -- npx files-server /srv", "a program and its arguments"],
      ["prefork mcp add issues --env ISSUES_TOKEN -- issues-server", "with a variable of yours"],
      ["prefork mcp add search --url https://mcp.example/v1 --header 'X-Team: tools'", "a URL"],
    ],
  },
  "mcp remove": {
    examples: [
      ["prefork mcp remove files", "from your own settings"],
      ["prefork mcp remove files --scope project", "from this folder's .mcp.json"],
    ],
  },
  "mcp test": {
    examples: [
      ["prefork mcp test files", "list the tools of one server"],
      ["prefork mcp test search", "of another one"],
    ],
    exitCodes: [["1", "the server did not start, or not in time"]],
  },
  trust: {
    about: [
      "Nothing in a folder that could run something is used before you trust it. The command shows what the files would do; any later change must be trusted again.",
    ],
    examples: [
      ["prefork trust --show", "see what would be trusted"],
      ["prefork trust", "trust this folder, and decide about its allow rules"],
      ["prefork trust --revoke ../other", "stop trusting a folder"],
    ],
  },
  config: {
    about: [
      "Without a command: list. To see everything that can be set: prefork config keys. A project's files count only once the folder is trusted, and can only make things stricter.",
    ],
    examples: [
      ["prefork config", "what is set here, and where"],
      ["prefork config set forks.atOnce 10", "change one setting"],
      ["prefork config edit", "open your settings in your editor"],
    ],
    files: SETTINGS,
  },
  "config list": {
    about: ["Layers from the weakest to the strongest: default, user, project, local, environment, flag."],
    examples: [
      ["prefork config", "every value that is set, with its layer and file"],
      ["prefork config list --all", "also the defaults"],
      ["prefork config list --permission-mode plan --json", "as prefork -p with this flag would have it"],
    ],
    environment: [
      ["PREFORK_FORK_SUBAGENT", "0 is forks.enabled false"],
      ["PREFORK_AUTO_BACKGROUND_MS", "is forks.autoBackgroundMs"],
      ["NO_COLOR", 'is terminal.theme "none", unless you set a theme'],
      ["VISUAL, EDITOR", "are terminal.editor, unless you set one"],
    ],
    files: SETTINGS,
  },
  "config keys": {
    examples: [
      ["prefork config keys", "every setting, what it does, and its default"],
      ["prefork config keys --json", "as a JSON schema, for editors"],
    ],
  },
  "config get": {
    examples: [
      ["prefork config get forks.maxTurns", "the value that applies, and all layers that have one"],
      ["prefork config get forks --json", "a group of settings, one JSON object per line"],
    ],
    exitCodes: [["1", "it is not set and has no default"]],
  },
  "config set": {
    about: ["A change that would make the file invalid is not written. Comments and order of the file are kept."],
    examples: [
      ["prefork config set forks.atOnce 10", "a number"],
      ["prefork config set terminal.theme colour-blind", "a text"],
      ["prefork config set --scope project permissions.deny '[\"Read(./secrets/**)\"]'", "a list, for the project"],
    ],
    files: SETTINGS,
  },
  "config unset": {
    examples: [
      ["prefork config unset forks.atOnce", "the default applies again"],
      ["prefork config unset --scope local permissions.ask", "in your settings for this project"],
    ],
  },
  "config edit": {
    about: [
      "The editor is started without a shell. If the new text is invalid, the file stays as it was, and your text is kept beside it as settings.edited.json for the next edit.",
    ],
    examples: [
      ["prefork config edit", "your own settings"],
      ["prefork config edit --scope project", "the project's"],
    ],
    exitCodes: [["2", "the file was not changed; the message says where the mistake is"]],
    environment: [["VISUAL, EDITOR", "the editor, unless terminal.editor is set"]],
    files: SETTINGS,
  },
  "config path": {
    examples: [
      ["prefork config path", "of your own settings"],
      ["prefork config path --scope local", "of your settings for this project"],
    ],
  },
  doctor: {
    about: ["Nothing is sent."],
    examples: [
      ["prefork doctor", "would a prompt start here, and how protected?"],
      ["prefork doctor --provider openai --json", "with another provider, for programs"],
    ],
    exitCodes: [["1", "prefork -p would not start here"]],
  },
  completion: {
    about: [
      "The script completes commands, options, their values, sessions, tasks and settings. Its first lines say how to install it.",
    ],
    examples: [
      ["source <(prefork completion bash)", "use it in this bash or zsh"],
      ["prefork completion zsh > ~/.zfunc/_prefork", "install it for zsh"],
      ["prefork completion fish > ~/.config/fish/completions/prefork.fish", "install it for fish"],
    ],
  },
};
