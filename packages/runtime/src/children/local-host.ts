/** Children that run in this process, in their parent's checkout or in a worktree: forks, agents that start empty, and
 *  either of them resumed.
 *  A child never changes its parent: it copies the read state, has its own setters, and keeps the rights that its parent
 *  had when it started. It cannot start other agents.
 *  Elsewhere: the port (../ports.ts), what is sent and when (../fork), running a child (child.ts), what an agent is (../agent). */

import { basename } from "node:path";
import type { ToolFilter } from "@prefork/guard";
import type { MemoryFolder } from "@prefork/guard/internal";
import {
  type Addition,
  childTtl,
  directiveText,
  type FrozenPrefix,
  type Json,
  type Message,
  modelFacts,
  text,
} from "@prefork/wire";
import {
  Account,
  type Agent,
  type AgentEngine,
  type AgentExtensions,
  type AgentGuard,
  type AgentOptions,
  type AgentParts,
  type AgentSettings,
  beginLineage,
  type Engines,
  Lineage,
  type LineageState,
  makeAgent,
  type NextRequest,
  PRODUCT,
  resumeLineage,
  toolEnvironment,
  withRoutingKey,
} from "../agent/index.ts";
import { agentPrompt, noteText } from "../context/index.ts";
import type { RuntimeEvent } from "../events.ts";
import { cacheKeyHash, findDivergence, type GrownFamily, resumedMarkers } from "../fork/index.ts";
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
  type SessionStore,
} from "../journal/index.ts";
import type { Ask, ChildHost, ChildParent, ChildPlan, Delegation, ForkPlan, OpenChild, Report } from "../ports.ts";
import { Inbox } from "../tasks/index.ts";
import { ReadState, type Registry } from "../tools/index.ts";
import { checkReport, EditTracker, readEditedFiles } from "./check-report.ts";
import { ChildRun } from "./child.ts";
import { RunAudit } from "./run-audit.ts";
import { ChildWorkspace, FileClaims } from "./workspace.ts";
import type { ChildWorktree, ChildWorktrees } from "./worktrees.ts";
import { appendNotice } from "./worktrees.ts";

/** Set in the journal of a child that moved into a worktree while it worked. */
const MOVED_SLOT = "worktree";

/** What this process still has in memory of a child that is about to be opened. Another host would grow the prefix again
 *  from the journal that the plan names, and would refuse a child with a filter, which is a function of the caller's. */
export type ChildOrigin = {
  readonly fork?: { readonly parent: LineageState; readonly family: GrownFamily; readonly order: number };
  readonly filter?: ToolFilter | undefined;
};

export type LocalHostOptions = {
  readonly options: AgentOptions;
  readonly store: SessionStore;
  readonly parent: () => Agent;
  readonly journal: JournalWriter;
  readonly engines: Engines;
  /** The address of the session's engine when the session began, if it was recorded. */
  readonly firstAddress: string | undefined;
  readonly registry: Registry;
  readonly settings: AgentSettings;
  readonly extensions: AgentExtensions;
  readonly worktrees: ChildWorktrees;
  /** By task. Whoever starts a child puts it here, and opening the child takes it. */
  readonly origins: Map<string, ChildOrigin>;
  /** Reports what happens in the session, before the code that caused it continues. */
  readonly follow: (follower: (event: RuntimeEvent) => void) => Disposable;
};

const CLOSED = "Not available in a fork: do this part of the work yourself, and report when it is done.";

const closed = async (): Promise<{ readonly text: string; readonly isError: true }> => ({
  text: CLOSED,
  isError: true,
});

const NO_DELEGATION: Delegation = {
  agent: closed,
  sendMessage: closed,
  taskOutput: closed,
  taskStop: closed,
  mcpCall: closed,
};

export class LocalHost implements ChildHost {
  readonly #options: LocalHostOptions;
  readonly #guards = new Set<AgentGuard>();
  readonly #environment: Readonly<Record<string, string>>;
  readonly #claims = new FileClaims();

  constructor(options: LocalHostOptions) {
    this.#options = options;
    this.#environment = toolEnvironment(options.options.environment);
  }

  /** If some of them get a worktree, the state of the checkout is taken before anybody begins, because the first one may
   *  change the checkout. */
  async prepare(plans: readonly ChildPlan[]): Promise<void> {
    const inWorktree = plans.find(({ fork }) => fork.isolation !== undefined);
    if (inWorktree) await this.#options.worktrees.takeSnapshot(inWorktree.siblings);
  }

  async open(plan: ChildPlan, parent: ChildParent, signal: AbortSignal): Promise<OpenChild> {
    const { origins } = this.#options;
    const { task } = plan.fork;
    const opening: OpeningChild = { plan, parent, signal, origin: origins.get(task) ?? {} };
    origins.delete(task);
    const { begins } = plan;
    if (begins.kind === "fork") return this.#openFork(opening, begins.additions);
    return begins.kind === "empty" ? this.#openEmpty(opening) : this.#resume(opening, begins);
  }

  /** A child that continues its parent's bytes. */
  async #openFork(opening: OpeningChild, additions: readonly Addition[]): Promise<OpenChild> {
    const { fork } = opening.origin;
    if (!fork) throw new Error(`${opening.plan.fork.task} has no prefix in this process`);
    const { parent, family, order } = fork;
    const from = { prefix: family.base, model: parent.head.model, protocol: parent.protocol.name, ...this.#addressed };
    return this.#openInWorkspace(
      opening,
      (facts) => forkJournal(this.#options.store, this.#options.journal, { ...facts, ...from }),
      async (opened) => {
        const { journal, workspace } = opened;
        const line = new Lineage(journal, { ...parent, prefix: family.base, markers: [], turns: 0 }, entersIn(opening));
        if (family.shared) line.adopt(family.shared);
        const { notice } = workspace;
        for (const addition of notice === undefined ? additions : appendNotice(additions, notice))
          if (addition.kind === "blocks") line.extend(addition.blocks, { source: "directive" });
          else line.enter(addition.message, { source: "directive" });
        const first = family.requests[order];
        if (first) line.planNext({ ...first, admit: admitBy(opening.parent) });
        const { world } = this.#options.parent();
        // In a worktree nothing was read yet: the parent read other files.
        const reads = workspace.isWorktree ? ReadState.empty() : world.reads.clone();
        const sent = family.expectations[order]?.parent;
        const child = await this.#makeAgent(opening, {
          ...opened,
          line,
          inherited: { reads, replacements: world.replacements },
        });
        return this.#run(opening, { ...child, sent });
      },
    );
  }

  /** A child that knows nothing but its prompt. */
  async #openEmpty(opening: OpeningChild): Promise<OpenChild> {
    const { options, registry, store, journal: writer } = this.#options;
    const parent = this.#options.parent();
    const { protocol } = parent.engine;
    const { model } = parent.line.state.head;
    const { fork } = opening.plan;
    const facts = {
      model,
      protocol: protocol.name,
      ...this.#addressed,
      startedBy: { session: writer.id, task: fork.task },
    };
    return this.#openInWorkspace(
      opening,
      (more) => createJournal(store, { ...more, ...facts }),
      async (opened) => {
        const { journal, workspace } = opened;
        const settings = withRoutingKey(options.settings, protocol, journal.id);
        const line = beginLineage(journal, protocol, {
          head: { model, tools: registry.specs, system: agentPrompt(), settings },
        });
        const child = await this.#makeAgent(opening, { ...opened, line });
        const { notice } = workspace;
        const prompt = notice === undefined ? fork.directive : `${fork.directive}\n\n${notice}`;
        await child.agent.enterPrompt(prompt, NEVER);
        opening.parent.append({ kind: "message", message: { role: "user", content: [text(prompt)] } });
        return this.#run(opening, child);
      },
    );
  }

  /** A child that has ended, from its journal. */
  async #resume(opening: OpeningChild, { session, mail }: Resuming): Promise<OpenChild> {
    const { worktrees, store, settings } = this.#options;
    const { fork } = opening.plan;
    const { journal, replayed } = await openJournal(store, session);
    return this.#closingOnFailure({ journal }, async () => {
      const hasWorktree = fork.isolation !== undefined || replayed.state.has(MOVED_SLOT);
      const workspace = this.#workspaceFor(opening, {
        journal,
        worktree: hasWorktree ? await worktrees.reopen(fork) : undefined,
      });
      const line = resumeLineage(journal, replayed, entersIn(opening));
      if (!line) throw new Error(`session ${session} has nothing to resume from`);
      const state = new Map([...readsOf(replayed.inherited), ...replayed.state]);
      const engine = this.#engineFor(line, replayed);
      const made = await this.#makeAgent(opening, { journal, line, workspace, replayed, state, engine });
      const { shared, inherited, turns } = replayed;
      if (turns === 0 && shared && inherited) {
        const conditions = {
          facts: modelFacts(shared.model),
          ttl: settings.ttl,
          now: this.#options.options.clock.now(),
        };
        const marking = { ...conditions, tail: fork.limits.turns !== 1 };
        const markers = (grown: FrozenPrefix) => resumedMarkers(grown, { ...inherited, shared }, marking);
        line.planNext({ markers, admit: admitBy(opening.parent) });
      }
      const child = this.#run(opening, made);
      for (const words of mail) child.steer(words);
      await made.agent.resumeWith(mail.length > 0 ? [] : [text(noteText({ kind: "resumed", text: RESUMED }))], NEVER);
      return child;
    });
  }

  get #addressed(): { readonly address?: string } {
    const { address } = this.#options.parent().engine.engine;
    return address === undefined ? {} : { address };
  }

  /** The engine that its journal names: the parent's, unless the session has moved since. */
  #engineFor({ state: { protocol, head } }: Lineage, { opened }: Replayed): AgentEngine {
    const named = { protocol: protocol.name, address: opened?.address ?? this.#options.firstAddress };
    return this.#options.engines.resume(head.model, named);
  }

  /** Opens what a new child needs before its line can begin: a worktree if its plan says so, and a journal. */
  async #openInWorkspace(
    opening: OpeningChild,
    createKept: (facts: JournalFacts) => Promise<JournalWriter>,
    open: (opened: OpenedWorkspace) => Promise<OpenChild>,
  ): Promise<OpenChild> {
    const { fork, siblings } = opening.plan;
    const { worktrees, options } = this.#options;
    const worktree =
      fork.isolation === undefined ? undefined : await worktrees.create(fork, { siblings, signal: opening.signal });
    const facts = { cwd: worktree?.folders.to ?? options.cwd, product: PRODUCT };
    const journal: Journal = await (fork.skipTranscript ? ephemeralJournal(fork.task) : createKept(facts));
    return this.#closingOnFailure({ journal, worktree }, () =>
      open({ journal, workspace: this.#workspaceFor(opening, { journal, worktree }) }),
    );
  }

  #workspaceFor({ plan, signal }: OpeningChild, { journal, worktree }: OpenedResources): ChildWorkspace {
    const { options, worktrees, registry } = this.#options;
    const moved = (): void => void journal.appendAll([{ entry: { kind: "state", slot: MOVED_SLOT, value: true } }]);
    const { touches: touchesOf } = registry;
    const claims = this.#claims;
    return new ChildWorkspace({
      plan: plan.fork,
      options,
      isolated: worktrees,
      claims,
      touchesOf,
      moved,
      worktree,
      signal,
    });
  }

  /** A child that cannot be opened leaves nothing open and no unfinished worktree. */
  async #closingOnFailure<T>({ journal, worktree }: OpenedResources, open: () => Promise<T>): Promise<T> {
    try {
      return await open();
    } catch (error) {
      await journal.close();
      if (worktree) await this.#options.worktrees.settle(worktree, { end: "failed", answer: "", label: worktree.task });
      throw error;
    }
  }

  async #makeAgent(opening: OpeningChild, making: ChildAgentOptions): Promise<ChildAgent> {
    const { registry, settings, extensions } = this.#options;
    const { plan, origin } = opening;
    const { fork } = plan;
    const { journal, line, workspace, replayed, inherited } = making;
    const { filter } = origin;
    const parent = this.#options.parent();
    const ask = askFor(opening.parent, workspace);
    const inbox = new Inbox(journal, replayed);
    const edits = new EditTracker();
    const earlier = replayed ? readEditedFiles(await this.#entriesOf(journal.id), registry.touches) : [];
    const isFork = fork.agentType === "fork" && fork.directive !== "";
    const audit =
      filter?.memory &&
      (await this.#audit(filter.memory, fork, {
        workspace,
        hasReadOnlySandbox: () => agent.world.hasReadOnlySandbox(),
      }));
    const parts: AgentParts = {
      ...{ registry, journal, line, extensions, replayed, inherited, ask },
      options: workspace.options,
      engine: making.engine ?? parent.engine,
      account: new Account(fork.limits, { above: opening.parent.budget, spent: plan.spent }),
      settings: {
        ...settings,
        name: fork.agentId ?? fork.task,
        scope: fork.label,
        ttl: childTtl(modelFacts(line.state.head.model)),
        ...(isFork ? { directive: directiveOf(fork, workspace) } : {}),
      },
      rights: {
        policy: workspace.policy(parent.guard.policy),
        mode: parent.guard.mode,
        asks: ask ? "parent" : "nobody",
        filter,
        unwatched: typeof audit === "string" ? audit : undefined,
      },
      delegation: { ...NO_DELEGATION, ...extensions.delegation() },
      environment: { ...this.#environment, PREFORK_LINEAGE: `fork:${fork.task}` },
      ...(workspace.isWorktree ? workspace.agentParts : { files: parent.world.files }),
      bounds: workspace.bounds,
      notices: () => inbox.tail(),
      emit: (event) => {
        edits.observe(event);
        opening.parent.emit(event);
      },
      remember: (rule) => this.#remember(rule),
      lastPrompt: isFork ? "" : fork.directive,
      state: making.state ?? replayed?.state ?? new Map(),
    };
    const agent: Agent = await makeAgent(parts).catch(async (error: unknown) => {
      if (audit instanceof RunAudit) await audit[Symbol.asyncDispose]();
      throw error;
    });
    this.#guards.add(agent.guard);
    workspace.attach(agent);
    return { agent, workspace, inbox, journal, audit, edited: () => [...earlier, ...edits.files] };
  }

  #run({ plan: { fork }, parent, signal }: OpeningChild, child: ChildAgent): OpenChild {
    const { agent, workspace, inbox, journal, audit, edited, sent } = child;
    const { state, prefix } = agent.line;
    return new ChildRun({
      ...{ plan: fork, parent, agent, workspace, inbox, signal },
      session: fork.skipTranscript ? undefined : journal.id,
      cacheKeyHash: cacheKeyHash({ ...state, prefix: sent ?? prefix }),
      diverged: sent && findDivergence(sent, prefix),
      newNoticeId: () => this.#options.options.ids.next("notice"),
      audit:
        audit instanceof RunAudit
          ? async () => {
              const { event, ...audited } = await audit.end();
              if (event) parent.emit({ ...event, taskId: fork.task });
              return audited;
            }
          : undefined,
      check: (report, answer) => {
        // A report without the requested form may name a file anywhere.
        const unnamed = report ? edited() : edited().filter((path) => !answer.includes(basename(path)));
        const { changed, cwd } = workspace;
        const known = changed ? { gitStatus: changed } : {};
        return checkReport({ report: report ?? NO_REPORT, text: answer, edited: unnamed, cwd, ...known });
      },
      close: async () => {
        this.#guards.delete(agent.guard);
        try {
          await agent[Symbol.asyncDispose]();
          if (audit instanceof RunAudit) await audit[Symbol.asyncDispose]();
        } finally {
          await journal.close();
        }
      },
    });
  }

  /** Records its folders before it begins; a text says why that is not possible. */
  #audit(
    memory: MemoryFolder,
    plan: ForkPlan,
    {
      workspace,
      hasReadOnlySandbox,
    }: { readonly workspace: ChildWorkspace; readonly hasReadOnlySandbox: () => Promise<boolean> },
  ): Promise<RunAudit | string> {
    const { options, journal, parent, follow } = this.#options;
    const { cwd, directories } = workspace.options;
    return RunAudit.begin({
      ...{ memory, cwd, hasReadOnlySandbox, follow },
      roots: [cwd, ...directories],
      agent: plan.agentId ?? plan.task,
      ignoredFolders: [options.state],
      keep: journal.outputs.path,
      othersRun: parent()
        .world.shells.list()
        .some(({ state }) => state.kind === "running"),
    });
  }

  /** The answer "always" applies to the whole session: to the parent and to all children that run now. */
  async #remember(rule: string): Promise<void> {
    const { parent, options } = this.#options;
    for (const guard of [parent().guard, ...this.#guards]) guard.allow(rule);
    await options.permissions.remember?.(rule);
  }

  async #entriesOf(session: string): Promise<readonly JournalEntry[]> {
    const { entries } = await readJournal(this.#options.store, session);
    return entries.map(({ entry }) => entry);
  }
}

/** A child's questions go to its parent, worded for a person. */
const askFor = ({ ask }: ChildParent, workspace: ChildWorkspace): Ask | undefined =>
  ask && (async (question, signal) => ask(await workspace.rewriteQuestion(question), signal));

/** Passes each message that enters the context on to the parent. */
const entersIn =
  ({ parent }: OpeningChild) =>
  (message: Message): void =>
    parent.append({ kind: "message", message });

const admitBy =
  ({ awaitTurn, reportTurn }: ChildParent): NextRequest["admit"] =>
  async (signal) => {
    await awaitTurn(signal);
    return { readable: () => reportTurn("readable"), failed: () => reportTurn("failed") };
  };

const NO_REPORT: Report = { scope: "", result: "", keyFiles: [], filesChanged: [], issues: "" };

type JournalFacts = { readonly cwd: string; readonly product: string };

/** A child that is being opened. */
type OpeningChild = {
  readonly plan: ChildPlan;
  readonly parent: ChildParent;
  readonly signal: AbortSignal;
  readonly origin: ChildOrigin;
};

type Resuming = Extract<ChildPlan["begins"], { readonly kind: "resume" }>;

type OpenedResources = { readonly journal: Journal; readonly worktree?: ChildWorktree | undefined };

type OpenedWorkspace = { readonly journal: Journal; readonly workspace: ChildWorkspace };

type ChildAgentOptions = OpenedWorkspace &
  Pick<AgentParts, "line" | "replayed" | "inherited"> & {
    /** Default: what its journal holds. */
    readonly state?: AgentParts["state"];
    /** Default: its parent's. */
    readonly engine?: AgentEngine;
  };

type ChildAgent = OpenedWorkspace & {
  readonly agent: Agent;
  readonly inbox: Inbox;
  /** A text says why there is no audit. */
  readonly audit: RunAudit | string | undefined;
  /** Files that its own calls have changed, including earlier runs. */
  readonly edited: () => readonly string[];
  /** Of a fork: what its parent had sent. */
  readonly sent?: FrozenPrefix | undefined;
};

const directiveOf = ({ directive, protocol }: ForkPlan, { notice }: ChildWorkspace): string =>
  [directiveText(directive, protocol), ...(notice === undefined ? [] : [notice])].join("\n\n");

const NEVER = new AbortController().signal;

const RESUMED =
  "You were interrupted and go on here. Calls that were under way are answered above; look at the present state where their effect is unknown, finish your part and report as you were told.";

/** Files that the parent had read when the fork was made. The fork knows them too. */
const readsOf = (inherited: Replayed | undefined): readonly (readonly [string, Json])[] =>
  [...(inherited?.state ?? [])].filter(([slot]) => slot.startsWith("read:"));
