import assert from "node:assert/strict";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import { text, toolResult, userText } from "@prefork/wire";
import { createJournal, exportMarkdown, readSession } from "../../src/journal/index.ts";
import { Live, session, storeIn } from "./histories.ts";

test("a session is exported as Markdown that keeps its structure whatever was said", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const live = new Live(await createJournal(store, { ...session, cwd: "/work/a`b" }));
  live.enter(userText("Look:\n```\nnever closed\n<!-- nor this"), { source: "prompt" });
  live.enter({
    role: "assistant",
    content: [
      { type: "thinking", thinking: "I should ```look```.", signature: "s" },
      text("On it.\n<details>\n~~~\n<b>"),
      { type: "tool_use", id: "a", name: "Ba<sh>", input: '{"command":"ls"}' },
    ],
  });
  live.enter({
    role: "user",
    content: [
      {
        ...toolResult("a", "````\n\u001b[31mred\r\n</details>"),
        isError: true,
      },
      { type: "image", source: { kind: "base64", mediaType: "image/png", data: "aGk=" } },
    ],
  });
  live.compact(userText("summary"));
  live.journal.append({ kind: "exchange_ended", reason: "max-turns" });
  await live.journal.close();
  const { reading } = await readSession(store, "s1");
  assert.equal(
    exportMarkdown(reading.entries),
    [
      "# Session s1",
      "- Folder: ``/work/a`b``\n- Model: `claude-sonnet-5`\n- Started: 1970-01-01T00:00:01.000Z",
      "## User",
      "> Look:\n> ```\n> never closed\n> <!-- nor this",
      "## Assistant",
      "<details>\n<summary>Thinking</summary>\n\n````\nI should ```look```.\n````\n\n</details>",
      "On it.\n\\<details>\n~~~\n<b>\n~~~",
      '<details>\n<summary>Call of Ba&#60;sh&#62;</summary>\n\n```json\n{"command":"ls"}\n```\n\n</details>',
      "## User",
      "<details>\n<summary>Failure of Ba&#60;sh&#62;</summary>\n\n`````\n````\n␛[31mred\n</details>\n`````\n\n</details>",
      "*(image: image/png, 4 letters of base64)*",
      "---",
      "*Context restarted: compaction.*",
      "## User",
      "> summary",
      "*The exchange ended: max-turns.*\n",
    ].join("\n\n"),
  );
});
