/** What the agents beside the main one are made of: forks, agents that start empty, and either of them woken again.
 *  Invariant: nothing of the parent is changed by its child: what was read is copied, setters are the child's own, rights
 *  are the parent's at the time of the start, and every way to start another agent is closed.
 *  Elsewhere: bytes and runs (../fork, runs.ts), what an agent is (../agent: agent.ts). */

import { basename } from "node:path";
import type { MemoryFolder } from "@prefork/guard/internal";
import { childTtl, directiveText, type Json, modelFacts, text } from "@prefork/wire";
import {
  type Agent,
  type AgentEngine,
  type AgentExtensions,
  type AgentOptions,
  type AgentParts,
  type AgentSettings,
  beginLineage,
  type Engines,
  type Guarding,
  Lineage,
  makeAgent,
  PRODUCT,
  resumeLineage,
  routed,
  toolEnvironment,
} from "../agent/index.ts";
import { agentPrompt, escapeTags, noteText } from "../context/index.ts";
import type { EventBody, RuntimeEvent } from "../events.ts";
import type { ForkPlan } from "../fork/index.ts";
import {
  createJournal,
  ephemeralJournal,
  forkJournal,
  type Journal,
  type JournalEntry,
  type JournalWriter,
  openJournal,
  type Replayed,
  readJournal,
  readSession,
  type SessionStore,
} from "../journal/index.ts";
import type { Ask, Delegation } from "../ports.ts";
import { Inbox, type Mail, type Questions, type TaskResult } from "../tasks/index.ts";
import { ReadState, type Registry } from "../tools/index.ts";
import { WriteClaims } from "./bounds.ts";
import { ChildPlace } from "./child-place.ts";
import { checkClaims, editedIn } from "./claims.ts";
import type { AgentStart, ForkStart } from "./family-starts.ts";
import type { WakeStart } from "./host.ts";
import type { IsolatedWork, Placed } from "./isolation.ts";
import type { Report } from "./report.ts";
import { RunAudit } from "./run-audit.ts";
import type { Child, ChildTold } from "./running.ts";
import { withLast } from "./worktree-notice.ts";

/** Set in the journal of a child that moved into a copy while it worked. */
const MOVED_SLOT = "worktree";

export type ChildrenOf = {
  readonly options: AgentOptions;
  readonly store: SessionStore;
  readonly parent: () => Agent;
  readonly journal: JournalWriter;
  readonly engines: Engines;
  /** Where the session's engine was when it began; unknown where nobody noted it. */
  readonly firstAddress: string | undefined;
  readonly registry: Registry;
  readonly settings: AgentSettings;
  readonly questions: Questions | undefined;
  readonly extensions: AgentExtensions;
  readonly isolated: IsolatedWork;
  /** Tells of what happens in the session, before whoever caused it goes on. */
  readonly follow: (follower: (event: RuntimeEvent) => void) => Disposable;
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
  readonly #claims = new WriteClaims();

  constructor(of: ChildrenOf) {
    this.#of = of;
    this.#environment = toolEnvironment(of.options.environment);
  }

  /** A child that goes on from its parent's bytes. */
  readonly openFork = async (start: ForkStart): Promise<Child> => {
    const { plan, parent, family, siblings, place: order, words, told } = start;
    const { head, protocol } = parent;
    const from = { prefix: family.base, model: head.model, protocol: protocol.name, ...this.#addressed };
    const placed = await this.#placeFor(plan, { siblings, signal: told.signal });
    const journal = await this.#journalFor({ plan, placed }, (store, writer, facts) =>
      forkJournal(store, writer, { ...facts, ...from }),
    );
    return this.#closingOnFailure({ journal, placed }, async () => {
      const place = this.#place(plan, { journal, placed, signal: told.signal });
      const first = family.requests[order];
      const line = new Lineage(journal, { ...parent, prefix: family.base, markers: [], turns: 0 }, told.entered);
      if (family.shared) line.take(family.shared);
      const { notice } = place;
      for (const entering of notice === undefined ? words : withLast(words, notice))
        if (entering.kind === "blocks") line.extend(entering.blocks, { source: "directive" });
        else line.enter(entering.message, { source: "directive" });
      if (first) line.plan(first);
      const { world } = this.#of.parent();
      // What was read, was read in another folder.
      const reads = placed ? ReadState.empty() : world.reads.clone();
      const inherited = { reads, replacements: world.replacements };
      return this.#child(start, { journal, line, place, inherited, filter: start.options.filter });
    });
  };

  /** A child that knows nothing but its prompt. */
  readonly openAgent = async (start: AgentStart): Promise<Child> => {
    const { plan, siblings, told } = start;
    const { options, registry, parent } = this.#of;
    const { protocol } = parent().engine;
    const { model } = parent().line.state.head;
    const placed = await this.#placeFor(plan, { siblings, signal: told.signal });
    const journal = await this.#journalFor({ plan, placed }, (store, writer, facts) =>
      createJournal(store, {
        ...{ ...facts, model, protocol: protocol.name, ...this.#addressed },
        startedBy: { session: writer.id, task: plan.task },
      }),
    );
    return this.#closingOnFailure({ journal, placed }, async () => {
      const place = this.#place(plan, { journal, placed, signal: told.signal });
      const settings = routed(options.settings, protocol, journal.id);
      const head = { model, tools: registry.specs, system: agentPrompt(), settings };
      const line = beginLineage(journal, protocol, { head });
      const child = await this.#child(start, { journal, line, place });
      const { notice } = place;
      const prompt = notice === undefined ? plan.directive : `${plan.directive}\n\n${notice}`;
      await child.agent.enterPrompt(prompt, NEVER);
      told.entered({ role: "user", content: [text(prompt)] });
      return child;
    });
  };

  /** A child that has ended, from its journal. */
  readonly wake = async (start: WakeStart): Promise<Child> => {
    const { task, told, filter, plan } = start;
    const { journal, replayed } = await openJournal(this.#of.store, task.session ?? "");
    return this.#closingOnFailure({ journal }, async () => {
      const hasCopy = plan.isolation !== undefined || replayed.state.has(MOVED_SLOT);
      const placed = hasCopy ? await this.#of.isolated.again(plan) : undefined;
      const place = this.#place(plan, { journal, placed, signal: told.signal });
      const line = resumeLineage(journal, replayed, told.entered);
      if (!line) throw new Error(`session ${task.session} holds nothing to go on from`);
      const state = new Map([...readsOf(replayed.inherited), ...replayed.state]);
      const child = await this.#child(start, {
        journal,
        line,
        place,
        replayed,
        state,
        filter,
        engine: this.#engineFor(line, replayed),
      });
      const { shared, inherited, turns } = replayed;
      if (turns === 0 && shared && inherited) line.plan(start.again({ ...inherited, shared }));
      const { mail = [] } = task;
      for (const words of mail) child.steer(words);
      await child.agent.takeUp(mail.length > 0 ? [] : [text(noteText({ kind: "resumed", text: RESUMED }))], NEVER);
      return child;
    });
  };

  get #addressed(): { readonly address?: string } {
    const { address } = this.#of.parent().engine.engine;
    return address === undefined ? {} : { address };
  }

  /** The engine that its journal names: the parent's, unless the session has moved since. */
  #engineFor({ state: { protocol, head } }: Lineage, { opened }: Replayed): AgentEngine {
    const named = { protocol: protocol.name, address: opened?.address ?? this.#of.firstAddress };
    return this.#of.engines.resume(head.model, named);
  }

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

  async #placeFor(plan: ForkPlan, among: Parameters<IsolatedWork["place"]>[1]): Promise<Placed | undefined> {
    return plan.isolation === undefined ? undefined : this.#of.isolated.place(plan, among);
  }

  #place(plan: ForkPlan, { journal, placed, signal }: Opening & { readonly signal: AbortSignal }): ChildPlace {
    const { options, isolated } = this.#of;
    const moved = (): void => void journal.appendAll([{ entry: { kind: "state", slot: MOVED_SLOT, value: true } }]);
    const { touches: touchesOf } = this.#of.registry;
    return new ChildPlace({ plan, options, isolated, claims: this.#claims, touchesOf, moved, placed, signal });
  }

  /** A child that cannot be opened leaves nothing open, and no copy without an end. */
  async #closingOnFailure<T>({ journal, placed }: Opening, open: () => Promise<T>): Promise<T> {
    try {
      return await open();
    } catch (error) {
      await journal.close();
      if (placed) await this.#of.isolated.settle(placed, { end: "failed", said: "", label: placed.task });
      throw error;
    }
  }

  async #journalFor(
    { plan: { skipTranscript, task }, placed }: { readonly plan: ForkPlan; readonly placed: Placed | undefined },
    make: (store: SessionStore, parent: JournalWriter, facts: JournalFacts) => Promise<JournalWriter>,
  ): Promise<Journal> {
    const { store, journal, options } = this.#of;
    return skipTranscript
      ? ephemeralJournal(task)
      : make(store, journal, { cwd: placed?.folders.to ?? options.cwd, product: PRODUCT });
  }

  async #child(start: AgentStart, made: Made): Promise<Child & { readonly agent: Agent }> {
    const { registry, settings, extensions, options: session } = this.#of;
    const { plan, told, account } = start;
    const { journal, line, place, replayed, inherited, filter } = made;
    const { options } = place;
    const parent = this.#of.parent();
    const { mode } = parent.guarding;
    const policy = place.policy(parent.guarding.policy);
    const ask = this.#askFor(told, place);
    const inbox = new Inbox(journal, replayed);
    const edits = new Edits();
    const earlier = replayed ? editedIn(await this.#entriesOf(journal.id), registry.touches) : [];
    const { model } = line.state.head;
    const isFork = plan.agentType === "fork" && plan.directive !== "";
    const audit =
      filter?.memory && (await this.#audit(filter.memory, plan, { place, hasCell: () => agent.world.hasCell() }));
    const parts: AgentParts = {
      ...{ options, registry, journal, line, account, extensions, replayed, inherited },
      engine: made.engine ?? parent.engine,
      settings: {
        ...settings,
        name: plan.agentId ?? plan.task,
        scope: plan.label,
        ttl: childTtl(modelFacts(model)),
        ...(isFork ? { directive: directiveOf(plan, place) } : {}),
      },
      rights: {
        ...{ policy, mode, asks: ask ? ("parent" as const) : ("nobody" as const) },
        filter,
        unwatched: typeof audit === "string" ? audit : undefined,
      },
      delegation: { ...NOBODY_ELSE, ...extensions.delegation() },
      environment: { ...this.#environment, PREFORK_LINEAGE: `fork:${plan.task}` },
      ...(place.isOwn ? place.making : { files: parent.world.files }),
      bounds: place.bounds,
      notices: () => inbox.tail(),
      emit: (event) => {
        edits.noticed(event);
        told.emit(event);
      },
      ask,
      remember: (rule) => this.#remember(rule),
      lastPrompt: isFork ? "" : plan.directive,
      state: made.state ?? replayed?.state ?? new Map(),
    };
    const agent: Agent = await makeAgent(parts).catch(async (error: unknown) => {
      if (audit instanceof RunAudit) await audit[Symbol.asyncDispose]();
      throw error;
    });
    this.#guardings.add(agent.guarding);
    place.livesIn(agent);
    return {
      agent,
      ...(plan.skipTranscript ? {} : { session: journal.id }),
      line,
      run: (limits, signal) => agent.run(limits, signal),
      steer: (mail) => inbox.add({ id: mail.id, task: "parent", text: messageText(mail) }),
      goOn: () => inbox.notices.length > 0 && agent.enterNotices(),
      reconsider: async () => {
        const words = await place.conflicts();
        if (words !== undefined) inbox.add({ id: session.ids.next("notice"), task: "parent", text: escapeTags(words) });
      },
      settle: (end, said) => place.settle(end, said),
      ...(audit instanceof RunAudit
        ? {
            audit: async () => {
              const { event, ...audited } = await audit.end();
              if (event) told.emit({ ...event, taskId: plan.task });
              return audited;
            },
          }
        : {}),
      shut: (reason) => agent.guarding.shut(reason),
      check: (report, said) => {
        const edited = [...earlier, ...edits.files];
        // Words without a form may name a file anywhere.
        const unnamed = report ? edited : edited.filter((path) => !said.includes(basename(path)));
        const { changed, cwd } = place;
        const known = changed ? { gitStatus: changed } : {};
        return checkClaims({ report: report ?? NO_REPORT, text: said, edited: unnamed, cwd, ...known });
      },
      [Symbol.asyncDispose]: async () => {
        this.#guardings.delete(agent.guarding);
        try {
          await agent[Symbol.asyncDispose]();
          if (audit instanceof RunAudit) await audit[Symbol.asyncDispose]();
        } finally {
          await journal.close();
        }
      },
    };
  }

  /** What its folders hold before it begins; a text where they hold too much for that. */
  #audit(
    memory: MemoryFolder,
    plan: ForkPlan,
    { place, hasCell }: { readonly place: ChildPlace; readonly hasCell: () => Promise<boolean> },
  ): Promise<RunAudit | string> {
    const { options, journal, parent, follow } = this.#of;
    const { cwd, directories } = place.options;
    return RunAudit.begin({
      ...{ memory, cwd, hasCell, follow },
      roots: [cwd, ...directories],
      agent: plan.agentId ?? plan.task,
      ours: [options.state],
      keep: journal.outputs.path,
      othersRun: parent()
        .world.shells.list()
        .some(({ state }) => state.kind === "running"),
    });
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
  #askFor(told: ChildTold, place: ChildPlace): Ask | undefined {
    const { questions } = this.#of;
    if (!questions) return undefined;
    return async (question, signal) => {
      told.waits(true);
      try {
        return await questions.ask(await place.asked(question), signal);
      } finally {
        told.waits(false);
      }
    };
  }
}

/** The files that the calls of a child have changed. */
class Edits {
  readonly files = new Set<string>();
  readonly #proposed = new Map<string, readonly string[]>();

  noticed(event: EventBody): void {
    if (event.type === "call_proposed" || event.type === "call_changed")
      this.#proposed.set(event.callId, event.touches?.writes ?? []);
    else if (event.type === "call_ended") {
      const paths = this.#proposed.get(event.callId) ?? [];
      this.#proposed.delete(event.callId);
      if (event.fault === undefined) for (const path of paths) this.files.add(path);
    }
  }
}

export type LeftBehind = Pick<TaskResult, "text" | "turns" | "usage" | "usd">;

const NO_REPORT: Report = { scope: "", result: "", keyFiles: [], filesChanged: [], issues: "" };

type JournalFacts = { readonly cwd: string; readonly product: string };

type Opening = { readonly journal: Journal; readonly placed?: Placed | undefined };

const directiveOf = ({ directive, protocol }: ForkPlan, { notice }: ChildPlace): string =>
  [directiveText(directive, protocol), ...(notice === undefined ? [] : [notice])].join("\n\n");

type Made = Pick<AgentParts, "journal" | "line" | "replayed" | "inherited"> & {
  readonly place: ChildPlace;
  readonly filter?: AgentParts["rights"]["filter"];
  /** Default: what its journal holds. */
  readonly state?: AgentParts["state"];
  /** Default: its parent's. */
  readonly engine?: AgentEngine;
};

const NEVER = new AbortController().signal;

const RESUMED =
  "You were interrupted and go on here. Calls that were under way are answered above; look at the present state where their effect is unknown, finish your part and report as you were told.";

const messageText = ({ message, by }: Mail): string =>
  `${by === "user" ? "Message of the user to you:" : "Message of the main agent to you (no human wrote it):"}\n${escapeTags(message)}\nTake it into account, finish your part and report in the same form as before.`;

/** What the parent had read when the fork was made: the fork knows it too. */
const readsOf = (inherited: Replayed | undefined): readonly (readonly [string, Json])[] =>
  [...(inherited?.state ?? [])].filter(([slot]) => slot.startsWith("read:"));
