/** One prompt of a session, in a process whose executed files are counted.
 *  Elsewhere: counting (index.ts), the provider (simulator-process.ts). */

import { writeFileSync } from "node:fs";
import { join } from "node:path";

export const PROMPTS = { read: "What does greeting.txt say?", forks: "Look at five parts at once." } as const;
export const FORKS = 5;

if (import.meta.main) {
  const [kind = "read", url = "", folder = ""] = process.argv.slice(2);
  const { anthropicEngine, createSession } = await import("@prefork/runtime");
  writeFileSync(join(folder, "greeting.txt"), "good morning\n");
  const engine = anthropicEngine({ baseUrl: url, credential: { kind: "api-key", value: "any" } });
  await using session = await createSession({
    ...{ engine, cwd: folder, home: folder, state: join(folder, "state") },
    permissions: { mode: "default" },
  });
  const { end } = await session.prompt(PROMPTS[kind as keyof typeof PROMPTS]).result();
  if (end !== "done") throw new Error(`the exchange ended: ${end}`);
}
