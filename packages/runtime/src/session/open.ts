/** The one place where all rooms meet: a new session, or one that goes on from its journal.
 *  Invariant: a session that cannot be opened leaves nothing open behind it; a resumed one sends the bytes of its journal
 *  and not those that today's prompt and tools would give.
 *  Elsewhere: what a session does (session.ts), what it is made of (options.ts). */

import { realpath } from "node:fs/promises";
import { type Head, InputError, type Json, type Message, modelFacts, noUsage } from "@prefork/wire";
import {
  Agent,
  type AgentSettings,
  Guarding,
  leftOpenOf,
  nothingLeftOpen,
  OpenCalls,
  SurroundingsWatch,
  ToolWorld,
  toolEnvironment,
} from "../agent/index.ts";
import { budgetFor, systemPrompt } from "../context/index.ts";
import type { EventBody } from "../events.ts";
import { ForkHost, forkAllowed } from "../fork/index.ts";
import { createJournal, type JournalWriter, openJournal, type Replayed, type SessionStore } from "../journal/index.ts";
import { Account, beginLineage, estimateTokens, type Lineage, resumeLineage } from "../loop/index.ts";
import type { Ask, Delegation } from "../ports.ts";
import { Questions, TaskTable } from "../tasks/index.ts";
import { createRegistry, type Registry } from "../tools/index.ts";
import { type ChildrenOf, openChild } from "./children.ts";
import { EventHub } from "./event-hub.ts";
import { type FilledOptions, type SessionLimits, type SessionOptions, withDefaults } from "./options.ts";
import { Session } from "./session.ts";

const PRODUCT = "prefork";

export const createSession = async (given: SessionOptions): Promise<Session> => {
  const options = await located(withDefaults(given));
  const registry = createRegistry(options.tools);
  const { cwd, model, engine, limits } = options;
  mustBePriced(model, limits);
  const journal = await createJournal(storeOf(options), {
    cwd,
    model,
    protocol: engine.protocol.name,
    product: PRODUCT,
  });
  return closingOnFailure(journal, async () => {
    const line = beginLineage(journal, engine.protocol, { head: headOf(options, registry) });
    return compose({ options, registry, journal, line });
  });
};

/** `id` in full; `findSession` knows shorter ones. */
export const resumeSession = async (id: string, given: SessionOptions): Promise<Session> => {
  const options = await located(withDefaults(given));
  const registry = createRegistry(options.tools);
  const { journal, replayed } = await openJournal(storeOf(options), id);
  return closingOnFailure(journal, async () => {
    const line =
      resumeLineage(journal, replayed) ??
      beginLineage(journal, options.engine.protocol, { head: headOf(options, registry) });
    if (given.model !== undefined && given.model !== line.state.head.model)
      switchModel(line, given.model, replayed.messages);
    return compose({ options, registry, journal, line, replayed });
  });
};

/** Sessions as they are kept. */
export const storeOf = ({ state, clock, ids }: Pick<FilledOptions, "state" | "clock" | "ids">): SessionStore => ({
  state,
  now: clock.now,
  newId: () => ids.next("session").replace(/^session-/, ""),
});

const located = async (options: FilledOptions): Promise<FilledOptions> => {
  try {
    const cwd = await realpath(options.cwd);
    return { ...options, cwd, directories: await Promise.all(options.directories.map((folder) => realpath(folder))) };
  } catch (error) {
    throw new InputError(`a folder of the workspace is not there: ${error instanceof Error ? error.message : error}`);
  }
};

const closingOnFailure = async (journal: JournalWriter, open: () => Promise<Session>): Promise<Session> => {
  try {
    return await open();
  } catch (error) {
    await journal.close();
    throw error;
  }
};

/** Rendered once: what stands here is sent with every request of the epoch. */
const headOf = ({ model, settings, appendSystemPrompt: append }: FilledOptions, { specs }: Registry): Head => ({
  model,
  tools: specs,
  system: systemPrompt({ forks: true, ...(append === undefined ? {} : { append }) }),
  settings,
});

/** Another model reads nothing of this one's cache, and takes back none of its thinking. */
const switchModel = (line: Lineage, model: string, messages: readonly Message[]): void => {
  const kept = messages.flatMap((message): readonly Message[] => {
    const content = message.content.filter(({ type }) => type !== "thinking" && type !== "redacted_thinking");
    return content.length === 0 ? [] : [{ ...message, content }];
  });
  line.startEpoch("model", { head: { ...line.state.head, model }, messages: kept });
};

/** Asked before anything is made or opened. */
const mustBePriced = (model: string, { usd }: SessionLimits): void => {
  if (usd !== undefined && !modelFacts(model))
    throw new InputError(`the price of ${model} is not known, so a budget in dollars cannot be kept; leave it out`);
};

type Composing = {
  readonly options: FilledOptions;
  readonly registry: Registry;
  readonly journal: JournalWriter;
  readonly line: Lineage;
  readonly replayed?: Replayed;
};

const compose = async ({ options, registry, journal, line, replayed }: Composing): Promise<Session> => {
  const { cwd, directories, home, permissions, clock, ids, limits, window } = options;
  const { policy, mode, ask } = permissions;
  const roots = [cwd, ...directories];
  const hub = new EventHub();
  const state = replayed?.state ?? new Map();
  const guarding = new Guarding({
    ...{ policy, mode, roots, cwd, home },
    outputs: journal.outputs.path,
    readingTools: options.tools.filter(({ readOnly }) => readOnly).map(({ name }) => name),
    tools: options.tools.map(({ name }) => name),
    asks: ask ? "person" : "nobody",
  });
  const { model } = line.state.head;
  mustBePriced(model, limits);
  const client = options.engine.connect({
    onRetry: ({ reason, message }, attempt) => hub.emit({ type: "request_retried", attempt, reason, message }),
  });
  const agentSettings: AgentSettings = {
    ...{ name: "main", maxTokens: options.maxTokens, ttl: options.ttl, window, compactAt: options.compactAt },
    thinks: options.settings.thinking !== undefined && options.settings.thinking.type !== "disabled",
  };
  const questions = ask && new Questions({ ask });
  const asks: Ask | undefined = questions && ((question, signal) => questions.ask(question, signal));
  const forks = composeForks({
    ...{ options, registry, journal, client, hub, state },
    settings: agentSettings,
    notices: replayed?.notices ?? [],
    parent: () => agent,
    ...(asks ? { ask: asks } : {}),
  });
  const opening = ToolWorld.open({
    ...{ cwd, roots: [...roots, ...policy.directories], home, journal, clock, ids, state },
    agent: "main",
    sandbox: policy.sandbox,
    environment: toolEnvironment(options.environment),
    budget: budgetFor(window),
    mayShow: (path) => guarding.mayShow(path),
    delegation: forks.delegation,
    emit: (event) => hub.emit(event),
  });
  const world = await opening.catch((error: unknown) => {
    client.close();
    throw error;
  });
  const prompt = state.get("prompt");
  const { remember } = permissions;
  const agent: Agent = new Agent({
    settings: agentSettings,
    ...{ journal, line, client, guarding, world, registry, clock, ids },
    ...(asks ? { ask: asks } : {}),
    ...(remember ? { remember } : {}),
    family: forks.host.family,
    notices: forks.host.notices,
    facts: modelFacts(model),
    account: new Account(limits, replayed ? { spent: { usage: replayed.usage, usd: replayed.usd } } : {}),
    watch: new SurroundingsWatch({ cwd, home, clock, sections: [] }, state),
    openCalls: new OpenCalls(line, replayed ? leftOpenOf(replayed, { registry, guarding }) : nothingLeftOpen),
    emit: (event) => hub.emit(event),
    lastPrompt: typeof prompt === "string" ? prompt : "",
  });
  const before = eventsBefore({ options, journal, line, ...(replayed ? { replayed } : {}) });
  return new Session({ options, agent, journal, client, hub, before, host: forks.host, table: forks.table });
};

type ForkParts = Omit<ChildrenOf, "store"> & {
  readonly hub: EventHub;
  readonly state: ReadonlyMap<string, Json>;
  readonly notices: Replayed["notices"];
};

const composeForks = (
  parts: ForkParts,
): { readonly host: ForkHost; readonly table: TaskTable; readonly delegation: Delegation } => {
  const { options, journal, hub, state, notices, settings } = parts;
  const { clock, ids, permissions, environment } = options;
  const table = new TaskTable({
    ...{ journal, state, notices },
    newNoticeId: () => ids.next("notice"),
  });
  const host = new ForkHost({
    ...{ table, clock, ids },
    mostAtOnce: options.mostTasks ?? 20,
    gate: () => {
      const { line } = parts.parent();
      return forkAllowed({
        flag: options.forks !== "off" && environment.PREFORK_FORK_SUBAGENT !== "0",
        coordinator: false,
        interactive: permissions.ask !== undefined,
        policyStated: permissions.stated,
        insideFork: environment.PREFORK_LINEAGE?.startsWith("fork:") ?? false,
        headroom: settings.window - estimateTokens(line.prefix.byteLength, line.state.measured) - settings.maxTokens,
      });
    },
    familyStart: (line) => ({ facts: modelFacts(line.state.head.model), ttl: settings.ttl }),
    openChild: openChild({ ...parts, store: storeOf(options) }),
    emit: (event, agent) => hub.emit(event, agent),
  });
  interruptLost(table, clock.now());
  const { agent, taskOutput, taskStop } = host;
  return { host, table, delegation: { agent, taskOutput, taskStop } };
};

/** Tasks that an earlier life of the session left running are told as interrupted; what they did is in their journals. */
const interruptLost = (table: TaskTable, at: number): void => {
  for (const { id, session = "" } of table.running) {
    const text = `Interrupted: the session ended while this task ran. What it had done until then is kept in session ${session}.`;
    const result = { summary: "interrupted", text, usage: noUsage, usd: 0, turns: 0, toolUses: 0, ms: 0 };
    table.step(id, { type: "ended", end: "interrupted", at, result });
  }
};

const eventsBefore = ({ options, journal, line, replayed }: Omit<Composing, "registry">): readonly EventBody[] => {
  const { epoch, head, prefix } = line.state;
  return [
    {
      type: "session_opened",
      sessionId: journal.id,
      resumed: replayed !== undefined,
      cwd: options.cwd,
      model: head.model,
      engine: options.engine.name,
      mode: options.permissions.mode,
    },
    ...options.permissions.policy.notices.map((notice): EventBody => ({ type: "settings_noticed", notice })),
    ...(replayed?.problems ?? []).map(
      ({ line: number, detail }): EventBody => ({ type: "journal_troubled", problem: `line ${number}: ${detail}` }),
    ),
    ...(replayed
      ? []
      : [{ type: "epoch_started", epoch, reason: "start", bytes: prefix.byteLength } satisfies EventBody]),
  ];
};
