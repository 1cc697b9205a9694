/** The help of the commands about prompt caches, of demonstrations, and of checks of the guard. */

import type { HelpPage } from "./page.ts";

export const CACHE_PAGES: Readonly<Record<string, HelpPage>> = {
  cache: {
    about: ["These commands work with any agent and any client, not only with prefork."],
    examples: [
      ["prefork cache cost --prefix 100k --forks 5", "what five forks would cost"],
      ["prefork cache xray first.json second.json", "why the second request missed the cache"],
      ["prefork cache proxy", "watch an agent's requests"],
    ],
  },
  cost: {
    about: [
      "Nothing is sent. Tokens can be written as 700, 31,390, 100k or 1.5M. With --fresh it also says from which size on a fresh sub-agent would be cheaper.",
    ],
    examples: [
      ["prefork cache cost --prefix 100k --forks 5", "every way to launch five forks"],
      ["prefork cache cost --prefix 40k --forks 3 --fresh 8k --rediscover 20k", "with fresh sub-agents"],
      ["prefork cache cost --prefix 100k --forks 5 --model gpt-6.1-sol --json", "another model, for programs"],
    ],
  },
  xray: {
    about: ["Compares each request with the earlier ones and names the first byte that differs, and what it cost."],
    examples: [
      ["prefork cache xray first.json second.json", "compare two requests"],
      ["prefork cache xray session.ndjson --usage usage.json", "a whole session, with what the provider reported"],
    ],
    exitCodes: [
      ["0", "nothing was lost, or a negligible amount"],
      ["1", "something was lost"],
      ["2", "usage error"],
    ],
  },
  proxy: {
    about: [
      "Set the printed address as the base URL of your agent and let it work; Ctrl-C prints the summary. Keys pass through and are never stored. Reports contain no text of any request. More: docs/proxy.md in the repository.",
    ],
    lists: { Address: [["GET /_proxy/report", "the report so far, as JSON"]] },
    examples: [
      ["prefork cache proxy", "print an address, and report hits and misses"],
      ["prefork cache proxy --port 8123 --record requests", "on a fixed port, and record for prefork cache xray"],
      ["prefork cache proxy --upstream https://gateway.example --json", "another provider, one JSON object per line"],
    ],
  },
  sim: {
    about: [
      "Point a client at the printed URL (ANTHROPIC_BASE_URL=<url>, OPENAI_BASE_URL=<url>/v1, GOOGLE_GEMINI_BASE_URL=<url>); any key works. More: docs/simulator.md in the repository.",
    ],
    lists: {
      Rules: [
        ["anthropic", "/v1/messages: markers, 20 positions of look-back, 5 minutes or an hour"],
        ["openai", "/v1/responses, /v1/chat/completions: breakpoints from GPT-5.6 on, older models by their own rules"],
        [
          "openai-legacy",
          "the same paths, every model by the older rules: automatic, from 1,024 tokens, in steps of 128",
        ],
        ["gemini", "/v1beta/models/…, /v1beta/cachedContents: automatic, and stored by name"],
        ["gemini-explicit", "the same paths, but only what is stored by name is cached"],
        ["deepseek", "/chat/completions, /anthropic/v1/messages: units of 64 tokens"],
        ["minimax", "/anthropic/v1/messages, /v1/chat/completions: automatic from 512 tokens; markers on M2"],
        ["dashscope", "/compatible-mode/v1/chat/completions: markers or automatic, readable when complete"],
        ["vllm", "/v1/chat/completions, /v1/messages: blocks of 16 tokens, shared at once; no key"],
        ["llamacpp", "/v1/chat/completions, /v1/messages: slots that share nothing; no key"],
      ],
      Addresses: [
        ["GET /_sim/ledger", "one row per request: expected, read, written, uncached, billed, first divergence"],
        ["POST /_sim/clock", '{"advanceMs": 300000} advances the clock, so that entries expire'],
        ["POST /_sim/faults", '{"kind": "status", "status": 529} makes the next request fail'],
      ],
    },
    examples: [
      ["prefork cache sim", "simulate Anthropic on a free port"],
      ["prefork cache sim --rules openai --port 8123", "simulate OpenAI on a fixed port"],
      ["prefork cache sim --script answers.ts --json", "answer with your own script"],
    ],
  },
  tour: {
    about: ["Needs no key: the built-in rehearsal engine answers, and the simulator caches and bills."],
    examples: [
      ["prefork tour", "the agent and five forks, and their bill"],
      ["prefork tour --forks 3 --keep", "three forks; keep the repository to look at it"],
    ],
    exitCodes: [["1", "a fork did not report"]],
  },
  demo: {
    examples: [
      ["prefork demo", "a parent and five forks"],
      ["prefork demo --forks 10 --in-flight trim", "ten forks that do not see the unfinished turn"],
      ["prefork demo --cold --json", "with a cold cache, for programs"],
    ],
  },
  "check-command": {
    about: ["Prints one JSON object per command: whether it is read-only, and why not."],
    examples: [
      ['prefork check-command "git log -1 | head"', "check one command"],
      ['prefork check-command --run "ls -la"', "run it too, if it is read-only"],
      ["prefork check-command --cwd src < commands.ndjson", "check many, one JSON object per line"],
    ],
  },
  "check-path": {
    about: [
      'Reads JSON lines {"tool", "args"} from standard input and prints {"allowed", "reason"} for each. Reading tools are allowed everywhere, Bash only for read-only commands, and everything else is denied.',
    ],
    lists: {
      Lines: [
        ["Write", '{"tool": "Write", "args": {"file_path": "/dir/notes.md", "content": "text"}}'],
        ["Edit", '{"tool": "Edit", "args": {"file_path": "/dir/a.md", "old_string": "a", "new_string": "b"}}'],
      ],
    },
    examples: [
      ["prefork check-path --root notes < calls.ndjson", "check calls against one folder"],
      ["prefork check-path --root notes --write < calls.ndjson", "perform those that are allowed"],
    ],
  },
};
