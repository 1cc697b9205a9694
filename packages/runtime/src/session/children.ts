/** What a fork is made of: a line that goes on from its parent's, tools and a guard of its own.
 *  Invariant: nothing of the parent is changed by its child: what was read is copied, setters are the child's own, rights
 *  are the parent's at the time of the fork, and every way to start another agent is closed.
 *  Elsewhere: its bytes and its run (../fork), what an agent is (../agent). */

import { type Client, childTtl, modelFacts } from "@prefork/wire";
import {
  Agent,
  type AgentSettings,
  Guarding,
  nothingLeftOpen,
  OpenCalls,
  SurroundingsWatch,
  ToolWorld,
  toolEnvironment,
} from "../agent/index.ts";
import { budgetFor } from "../context/index.ts";
import type { Child, ChildStart } from "../fork/index.ts";
import { forkJournal, type JournalWriter, type SessionStore } from "../journal/index.ts";
import { Account, Lineage } from "../loop/index.ts";
import type { Ask, Delegation } from "../ports.ts";
import type { Registry } from "../tools/index.ts";
import type { FilledOptions } from "./options.ts";

export type ChildrenOf = {
  readonly options: FilledOptions;
  readonly store: SessionStore;
  readonly parent: () => Agent;
  readonly journal: JournalWriter;
  readonly client: Client;
  readonly registry: Registry;
  readonly settings: AgentSettings;
  readonly ask?: Ask;
};

/** Turns of one fork. */
const MOST_TURNS = 200;

const CLOSED = "Not available in a fork: do this part of the work yourself, and report when it is done.";

const closed = async (): Promise<{ readonly text: string; readonly isError: true }> => ({
  text: CLOSED,
  isError: true,
});

const NOBODY_ELSE: Delegation = {
  agent: closed,
  sendMessage: closed,
  taskOutput: closed,
  taskStop: closed,
  mcpCall: closed,
};

export const openChild =
  (of: ChildrenOf) =>
  async (start: ChildStart): Promise<Child> => {
    const { options, store, journal: parentJournal } = of;
    const { cwd } = options;
    const { head, protocol, prefix } = start.line.state;
    const journal = await forkJournal(store, parentJournal, {
      ...{ cwd, prefix, model: head.model, protocol: protocol.name, product: "prefork" },
    });
    try {
      const agent = await compose(of, { start, journal });
      return {
        session: journal.id,
        run: (signal) => agent.run({ maxTurns: MOST_TURNS }, signal),
        [Symbol.asyncDispose]: async () => {
          try {
            await agent[Symbol.asyncDispose]();
          } finally {
            await journal.close();
          }
        },
      };
    } catch (error) {
      await journal.close();
      throw error;
    }
  };

type Composing = { readonly start: ChildStart; readonly journal: JournalWriter };

const compose = async (of: ChildrenOf, { start, journal }: Composing): Promise<Agent> => {
  const { options, client, registry, settings, ask } = of;
  const parent = of.parent();
  const { cwd, directories, home, clock, ids, window } = options;
  const { task, label, directive, first, emit } = start;
  const line = childLine(start, journal);
  const { policy, mode } = parent.guarding;
  const roots = [cwd, ...directories];
  const guarding = new Guarding({
    ...{ policy, mode, roots, cwd, home },
    outputs: journal.outputs.path,
    readingTools: options.tools.filter(({ readOnly }) => readOnly).map(({ name }) => name),
    tools: options.tools.map(({ name }) => name),
    asks: ask ? "parent" : "nobody",
  });
  const world = await ToolWorld.open({
    ...{ cwd, roots: [...roots, ...policy.directories], home, journal, clock, ids, emit },
    agent: task,
    state: new Map(),
    reads: parent.world.reads.clone(),
    sandbox: policy.sandbox,
    environment: { ...toolEnvironment(options.environment), PREFORK_LINEAGE: `fork:${task}` },
    budget: budgetFor(window),
    mayShow: (path) => guarding.mayShow(path),
    delegation: NOBODY_ELSE,
  });
  line.plan(first);
  const facts = modelFacts(line.state.head.model);
  return new Agent({
    settings: { ...settings, name: task, scope: label, ttl: childTtl(facts) },
    ...{ journal, line, client, registry, guarding, world, clock, ids, emit },
    ...(ask ? { ask } : {}),
    facts,
    account: new Account({}, { above: parent.account }),
    watch: new SurroundingsWatch({ cwd, home, clock, sections: [] }, new Map()),
    openCalls: new OpenCalls(line, nothingLeftOpen),
    lastPrompt: directive,
  });
};

/** The parent's line up to the end of what is shared, then the words that are this child's alone. */
const childLine = ({ line: parent, words }: ChildStart, journal: JournalWriter): Lineage => {
  const line = new Lineage(journal, { ...parent.state, markers: [], turns: 0 });
  if (line.prefix.tip?.role === "user") line.extend(words, { source: "directive" });
  else line.enter({ role: "user", content: words }, { source: "directive" });
  return line;
};
