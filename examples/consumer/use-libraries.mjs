/** Uses every library as somebody who has only their tarballs would, and prints what came of it as JSON.
 *  Runs where it is copied to: an empty project, on the oldest Node that the libraries support.
 *  Elsewhere: who copies it (scripts/packed.test.ts, scripts/verify-install.ts). */

import { classify } from "@prefork/guard";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { listSessions } from "@prefork/runtime/observe";
import { say, startSimulator } from "@prefork/simulator";
import { knownModels } from "@prefork/wire";
import { Worktrees } from "@prefork/worktrees";
import { diffRequests } from "@prefork/xray";
import { startProxy } from "@prefork/xray/proxy";

const cwd = process.cwd();
const state = `${cwd}/state`;
const simulator = await startSimulator({ script: () => say("alone") });
const proxy = await startProxy({ upstream: simulator.url });
const engine = anthropicEngine({ baseUrl: proxy.url, credential: { kind: "api-key", value: "any" } });
const session = await createSession({ engine, home: cwd, state });
const { text } = await session.prompt("go").result();
await session.close();
const body = (content) =>
  JSON.stringify({ model: "claude-sonnet-5", max_tokens: 1, messages: [{ role: "user", content }] });
const sessions = await listSessions({ state, now: Date.now, newId: () => "" });
// There is no repository here.
const worktrees = await Worktrees.open({ cwd, state }).catch(({ name }) => name);
const { answered } = await proxy.close();
await simulator.close();
console.log(
  JSON.stringify({
    wire: knownModels.has("claude-sonnet-5"),
    simulator: text,
    xray: diffRequests(body("a"), body("b")).divergence?.path,
    proxy: answered,
    guard: classify("ls | head -1").verdict,
    worktrees,
    sessions: sessions.length,
  }),
);
