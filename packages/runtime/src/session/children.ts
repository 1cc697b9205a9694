/** What the agents beside the main one are made of: forks, agents that start empty, and either of them woken again.
 *  Invariant: nothing of the parent is changed by its child: what was read is copied, setters are the child's own, rights
 *  are the parent's at the time of the start, and every way to start another agent is closed.
 *  Elsewhere: bytes and runs (../fork), what an agent is (make-agent.ts). */

import { basename } from "node:path";
import { type Client, childTtl, directiveText, type Json, modelFacts, type Protocol, text } from "@prefork/wire";
import { type Agent, type AgentSettings, type Guarding, toolEnvironment } from "../agent/index.ts";
import { agentPrompt, escapeTags, noteText } from "../context/index.ts";
import type { EventBody } from "../events.ts";
import {
  type AgentStart,
  type Child,
  type ChildTold,
  checkClaims,
  editedIn,
  type ForkPlan,
  type ForkStart,
  type Report,
  type WakeStart,
} from "../fork/index.ts";
import {
  createJournal,
  forkJournal,
  type Journal,
  type JournalEntry,
  type JournalWriter,
  openJournal,
  type Replayed,
  readJournal,
  readSession,
  type SessionStore,
  unkeptJournal,
} from "../journal/index.ts";
import { beginLineage, Lineage, resumeLineage } from "../loop/index.ts";
import type { Ask, Delegation } from "../ports.ts";
import { Inbox, type Mail, type Questions, type TaskResult } from "../tasks/index.ts";
import type { Registry } from "../tools/index.ts";
import type { Extensions } from "./extensions.ts";
import { type Making, makeAgent, PRODUCT, routed } from "./make-agent.ts";
import type { FilledOptions } from "./options.ts";

export type ChildrenOf = {
  readonly options: FilledOptions;
  readonly store: SessionStore;
  readonly parent: () => Agent;
  readonly journal: JournalWriter;
  readonly client: Client;
  readonly protocol: Protocol;
  readonly registry: Registry;
  readonly settings: AgentSettings;
  readonly questions: Questions | undefined;
  readonly extensions: Extensions;
};

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

export class Children {
  readonly #of: ChildrenOf;
  readonly #guardings = new Set<Guarding>();
  readonly #environment: Readonly<Record<string, string>>;

  constructor(of: ChildrenOf) {
    this.#of = of;
    this.#environment = toolEnvironment(of.options.environment);
  }

  /** A child that goes on from its parent's bytes. */
  readonly openFork = async (start: ForkStart): Promise<Child> => {
    const { plan, parent, family, place, words, told } = start;
    const { head, protocol } = parent;
    const from = { prefix: family.base, model: head.model, protocol: protocol.name };
    const journal = await this.#journalFor(plan, (store, writer, facts) =>
      forkJournal(store, writer, { ...facts, ...from }),
    );
    return closingOnFailure(journal, async () => {
      const first = family.requests[place];
      const line = new Lineage(journal, { ...parent, prefix: family.base, markers: [], turns: 0 }, told.entered);
      if (family.shared) line.take(family.shared);
      for (const entering of words)
        if (entering.kind === "blocks") line.extend(entering.blocks, { source: "directive" });
        else line.enter(entering.message, { source: "directive" });
      if (first) line.plan(first);
      const { world } = this.#of.parent();
      const inherited = { reads: world.reads.clone(), replacements: world.replacements };
      return this.#child(start, { journal, line, inherited, filter: start.options.filter });
    });
  };

  /** A child that knows nothing but its prompt. */
  readonly openAgent = async (start: AgentStart): Promise<Child> => {
    const { plan, told } = start;
    const { options, protocol, registry, parent } = this.#of;
    const { model } = parent().line.state.head;
    const journal = await this.#journalFor(plan, (store, writer, facts) =>
      createJournal(store, {
        ...{ ...facts, model, protocol: protocol.name },
        startedBy: { session: writer.id, task: plan.task },
      }),
    );
    return closingOnFailure(journal, async () => {
      const settings = routed(options.settings, protocol, journal.id);
      const head = { model, tools: registry.specs, system: agentPrompt(), settings };
      const line = beginLineage(journal, protocol, { head });
      const child = await this.#child(start, { journal, line });
      await child.agent.enterPrompt(plan.directive, NEVER);
      told.entered({ role: "user", content: [text(plan.directive)] });
      return child;
    });
  };

  /** A child that has ended, from its journal. */
  readonly wake = async (start: WakeStart): Promise<Child> => {
    const { task, told, filter } = start;
    const { journal, replayed } = await openJournal(this.#of.store, task.session ?? "");
    return closingOnFailure(journal, async () => {
      const line = resumeLineage(journal, replayed, told.entered);
      if (!line) throw new Error(`session ${task.session} holds nothing to go on from`);
      const state = new Map([...readsOf(replayed.inherited), ...replayed.state]);
      const child = await this.#child(start, { journal, line, replayed, state, filter });
      const { shared, inherited, turns } = replayed;
      if (turns === 0 && shared && inherited) line.plan(start.again({ ...inherited, shared }));
      const { mail = [] } = task;
      for (const words of mail) child.steer(words);
      await child.agent.takeUp(mail.length > 0 ? [] : [text(noteText({ kind: "resumed", text: RESUMED }))], NEVER);
      return child;
    });
  };

  /** What a task had come to, for one that nobody let finish. */
  async leftBy(session: string): Promise<LeftBehind> {
    const { replayed } = await readSession(this.#of.store, session);
    const said = replayed.messages
      .slice(replayed.inherited?.messages.length ?? 0)
      .flatMap(({ role, content }) =>
        role === "assistant" ? content.flatMap((block) => (block.type === "text" ? [block.text] : [])) : [],
      );
    const { turns, usage, usd } = replayed;
    const begun = `It had made ${turns} ${turns === 1 ? "turn" : "turns"}; its entries are in session ${session}.`;
    const text = said.length === 0 ? begun : `${begun} What it had said:\n${said.at(-1)}`;
    return { text, turns, usage, usd };
  }

  async #journalFor(
    { skipTranscript, task }: ForkPlan,
    make: (store: SessionStore, parent: JournalWriter, facts: JournalFacts) => Promise<JournalWriter>,
  ): Promise<Journal> {
    const { store, journal, options } = this.#of;
    return skipTranscript ? unkeptJournal(task) : make(store, journal, { cwd: options.cwd, product: PRODUCT });
  }

  async #child(start: AgentStart, made: Made): Promise<Child & { readonly agent: Agent }> {
    const { options, client, registry, settings, extensions } = this.#of;
    const { plan, told, account } = start;
    const { journal, line, replayed, inherited, state, filter } = made;
    const parent = this.#of.parent();
    const { policy, mode } = parent.guarding;
    const ask = this.#askFor(told);
    const inbox = new Inbox(journal, replayed);
    const edits = new Edits();
    const earlier = replayed ? editedIn(await this.#entriesOf(journal.id)) : [];
    const { model } = line.state.head;
    const isFork = plan.agentType === "fork" && plan.directive !== "";
    const making: Making = {
      ...{ options, registry, client, journal, line, account, extensions },
      settings: {
        ...settings,
        name: plan.agentId ?? plan.task,
        scope: plan.label,
        ttl: childTtl(modelFacts(model)),
        ...(isFork ? { directive: directiveText(plan.directive, plan.protocol) } : {}),
      },
      rights: { policy, mode, asks: ask ? "parent" : "nobody", ...(filter ? { filter } : {}) },
      delegation: { ...NOBODY_ELSE, ...extensions.delegation() },
      environment: { ...this.#environment, PREFORK_LINEAGE: `fork:${plan.task}` },
      files: parent.world.files,
      notices: () => inbox.tail(),
      emit: (event) => {
        edits.noticed(event);
        told.emit(event);
      },
      ...(ask ? { ask, remember: (rule) => this.#remember(rule) } : {}),
      lastPrompt: isFork ? "" : plan.directive,
      ...(replayed ? { replayed } : {}),
      ...(inherited ? { inherited } : {}),
      ...(state ? { state } : {}),
    };
    const agent = await makeAgent(making);
    this.#guardings.add(agent.guarding);
    return {
      agent,
      ...(plan.skipTranscript ? {} : { session: journal.id }),
      line,
      run: (limits, signal) => agent.run(limits, signal),
      steer: (mail) => inbox.add({ id: mail.id, task: "parent", text: messageText(mail) }),
      goOn: () => inbox.notices.length > 0 && agent.enterNotices(),
      shut: (reason) => agent.guarding.shut(reason),
      check: (report, said) => {
        const edited = [...earlier, ...edits.files];
        // Words without a form may name a file anywhere.
        const unnamed = report ? edited : edited.filter((path) => !said.includes(basename(path)));
        return checkClaims({ report: report ?? NO_REPORT, text: said, edited: unnamed, cwd: options.cwd });
      },
      [Symbol.asyncDispose]: async () => {
        this.#guardings.delete(agent.guarding);
        try {
          await agent[Symbol.asyncDispose]();
        } finally {
          await journal.close();
        }
      },
    };
  }

  /** Who says "always" says it for the session: for the parent, and for all that run now. */
  async #remember(rule: string): Promise<void> {
    const { parent, options } = this.#of;
    for (const guarding of [parent().guarding, ...this.#guardings]) guarding.allow(rule);
    await options.permissions.remember?.(rule);
  }

  async #entriesOf(session: string): Promise<readonly JournalEntry[]> {
    const { entries } = await readJournal(this.#of.store, session);
    return entries.map(({ entry }) => entry);
  }

  /** A child's questions wait in its parent's queue. */
  #askFor(told: ChildTold): Ask | undefined {
    const { questions } = this.#of;
    if (!questions) return undefined;
    return async (question, signal) => {
      told.waits(true);
      try {
        return await questions.ask(question, signal);
      } finally {
        told.waits(false);
      }
    };
  }
}

/** The files that the calls of a child have changed. */
class Edits {
  readonly files = new Set<string>();
  readonly #proposed = new Map<string, string>();

  noticed(event: EventBody): void {
    if (event.type === "call_proposed") {
      const { file_path: path } = event.args;
      if ((event.tool === "Edit" || event.tool === "Write") && typeof path === "string")
        this.#proposed.set(event.callId, path);
    } else if (event.type === "call_ended") {
      const path = this.#proposed.get(event.callId);
      this.#proposed.delete(event.callId);
      if (path !== undefined && event.fault === undefined) this.files.add(path);
    }
  }
}

export type LeftBehind = Pick<TaskResult, "text" | "turns" | "usage" | "usd">;

const NO_REPORT: Report = { scope: "", result: "", keyFiles: [], filesChanged: [], issues: "" };

type JournalFacts = { readonly cwd: string; readonly product: string };

type Made = Pick<Making, "journal" | "line" | "replayed" | "inherited" | "state"> & {
  readonly filter?: Making["rights"]["filter"] | undefined;
};

const NEVER = new AbortController().signal;

const closingOnFailure = async <T>(journal: Journal, open: () => Promise<T>): Promise<T> => {
  try {
    return await open();
  } catch (error) {
    await journal.close();
    throw error;
  }
};

const RESUMED =
  "You were interrupted and go on here. Calls that were under way are answered above; look at the present state where their effect is unknown, finish your part and report as you were told.";

const messageText = ({ message, by }: Mail): string =>
  `${by === "user" ? "Message of the user to you:" : "Message of the main agent to you (no human wrote it):"}\n${escapeTags(message)}\nTake it into account, finish your part and report in the same form as before.`;

/** What the parent had read when the fork was made: the fork knows it too. */
const readsOf = (inherited: Replayed | undefined): readonly (readonly [string, Json])[] =>
  [...(inherited?.state ?? [])].filter(([slot]) => slot.startsWith("read:"));
