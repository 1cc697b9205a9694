/** The one place where all modules meet: a new session, or one that resumes from its journal.
 *  A session that cannot be opened leaves nothing open. A resumed one sends the bytes of its journal, not those that
 *  today's prompt and tools would give.
 *  Elsewhere: what a session does (session.ts), its options (options.ts). */

import { realpath } from "node:fs/promises";
import { draftsIn } from "@prefork/guard";
import { eraseKeysFromBlock, removeAbandonedDrafts } from "@prefork/guard/internal";
import {
  addUsage,
  type Block,
  type Head,
  highestPrices,
  InputError,
  type Message,
  modelFacts,
  type Protocol,
  type ToolResultBlock,
  text,
} from "@prefork/wire";
import {
  Account,
  type Agent,
  type AgentSettings,
  beginLineage,
  Engines,
  type Lineage,
  makeAgent,
  PRODUCT,
  promptIn,
  resumeLineage,
  toolEnvironment,
  withRoutingKey,
} from "../agent/index.ts";
import { systemPrompt } from "../context/index.ts";
import type { EventBody } from "../events.ts";
import { type Extensions, openExtensions } from "../extensions/index.ts";
import { type CacheSafeParams, parsePlan, StoredPrefixes, withStoredPrefixes } from "../fork/index.ts";
import {
  ADDRESS_SLOT,
  createJournal,
  type JournalWriter,
  type OpenCall,
  openJournal,
  type Replayed,
} from "../journal/index.ts";
import type { Spent } from "../ports.ts";
import { describeState, Questions, type Task, tasksIn } from "../tasks/index.ts";
import { createRegistry, type Registry } from "../tools/index.ts";
import { composeBackground, sessionStore } from "./background.ts";
import { EventHub } from "./event-hub.ts";
import { SessionFiles } from "./files.ts";
import { type ResolvedOptions, resolveOptions, type SessionOptions } from "./options.ts";
import { RECOVERED } from "./rewind.ts";
import { Session } from "./session.ts";

export const createSession = async (given: SessionOptions): Promise<Session> => {
  const options = await located(resolveOptions(given));
  const { cwd, model, engine } = options;
  mustBePriced(model, options);
  const extensions = await openExtensions(options);
  return closingOnFailure(extensions, async () => {
    const registry = createRegistry([...options.tools, ...extensions.freezeTools()]);
    const journal = await createJournal(sessionStore(options), {
      ...{ cwd, model, product: PRODUCT },
      protocol: engine.protocol.name,
      ...(engine.address === undefined ? {} : { address: engine.address }),
    });
    return closingOnFailure(journal, async () => {
      const line = beginLineage(journal, engine.protocol, { head: headOf(options, registry, journal) });
      return compose({ options, registry, journal, line, extensions });
    });
  });
};

/** `id` is the full id; `findSession` finds it from a shorter one. */
export const resumeSession = async (id: string, given: SessionOptions): Promise<Session> => {
  const options = await located(resolveOptions(given));
  const { journal, replayed } = await openJournal(sessionStore(options), id);
  return closingOnFailure(journal, async () => {
    const extensions = await openExtensions(options);
    return closingOnFailure(extensions, async () => {
      const resumed = resumeLineage(journal, replayed);
      const registry = createRegistry([...options.tools, ...extensions.freezeTools(resumed?.state.head.tools)]);
      const { engine, model } = options;
      const line = resumed ?? beginLineage(journal, engine.protocol, { head: headOf(options, registry, journal) });
      const isOtherModel = given.model !== undefined && given.model !== line.state.head.model;
      if (isOtherModel || engine.protocol.name !== line.state.protocol.name)
        switchModel(line, { model, protocol: engine.protocol, cacheKey: journal.id }, replayed.messages);
      if (engine.address !== undefined && engine.address !== addressIn(replayed))
        journal.append({ kind: "state", slot: ADDRESS_SLOT, value: engine.address });
      return compose({ options, registry, journal, line, replayed, extensions });
    });
  });
};

/** The last address of a session's engine, if it was noted. */
export const addressIn = ({ state, opened }: Pick<Replayed, "state" | "opened">): string | undefined => {
  const moved = state.get(ADDRESS_SLOT);
  return typeof moved === "string" ? moved : opened?.address;
};

const located = async (options: ResolvedOptions): Promise<ResolvedOptions> => {
  await removeAbandonedDrafts(draftsIn(options.state));
  eraseKeysFromBlock(); // whatever a session starts runs as this user, and could read it there
  try {
    const cwd = await realpath(options.cwd);
    return { ...options, cwd, directories: await Promise.all(options.directories.map((folder) => realpath(folder))) };
  } catch (error) {
    throw new InputError(`cannot open a folder of the workspace: ${error instanceof Error ? error.message : error}`);
  }
};

type Closing = { readonly close: () => Promise<void> };

const closingOnFailure = async (opened: Closing, open: () => Promise<Session>): Promise<Session> => {
  try {
    return await open();
  } catch (error) {
    await opened.close();
    throw error;
  }
};

/** Rendered once, and sent with every request of the epoch. */
const headOf = (options: ResolvedOptions, { specs }: Registry, { id }: Pick<JournalWriter, "id">): Head => {
  const { model, engine, appendSystemPrompt: append } = options;
  const forks = options.forks !== "off";
  return {
    model,
    tools: specs,
    system: systemPrompt({ forks, ...(append === undefined ? {} : { append }) }),
    settings: withRoutingKey(options.settings, engine.protocol, id),
  };
};

/** Drops the provider's own spelling, which means nothing to another provider. */
const withoutSpelling = (block: Block): Block => {
  if (!("raw" in block)) return block;
  const { raw: _raw, ...plain } = block;
  return plain;
};

type Switch = { readonly model: string; readonly protocol: Protocol; readonly cacheKey: string };

const MODEL_SPECIFIC: readonly Block["type"][] = ["thinking", "redacted_thinking", "provider"];

/** Another model cannot read this one's cache, and accepts neither its thinking nor blocks that only it understands. */
const switchModel = (line: Lineage, { model, protocol, cacheKey }: Switch, messages: readonly Message[]): void => {
  const kept = messages.flatMap((message): readonly Message[] => {
    const content = message.content.filter(({ type }) => !MODEL_SPECIFIC.includes(type)).map(withoutSpelling);
    return content.length === 0 ? [] : [{ ...message, content }];
  });
  const { head } = line.state;
  const settings = withRoutingKey(head.settings, protocol, cacheKey);
  line.startEpoch("model", { head: { ...head, model, settings }, protocol, messages: kept });
};

/** Checked before anything is created or opened. */
const mustBePriced = (model: string, { limits, settings }: Pick<ResolvedOptions, "limits" | "settings">): void => {
  const { speed } = settings;
  const facts = modelFacts(model);
  if (limits.usd === undefined || (facts && highestPrices(facts, 0, { speed }))) return;
  const what = facts ? `${model} at the speed ${speed}` : model;
  throw new InputError(`the price of ${what} is unknown, so a budget in dollars cannot be enforced; remove the budget`);
};

type Composing = {
  readonly options: ResolvedOptions;
  readonly registry: Registry;
  readonly journal: JournalWriter;
  readonly line: Lineage;
  readonly extensions: Extensions;
  readonly replayed?: Replayed;
};

const compose = async ({ options, registry, journal, line, replayed, extensions }: Composing): Promise<Session> => {
  const { permissions, clock, limits } = options;
  const { policy, mode, ask, remember } = permissions;
  const hub = new EventHub({
    session: journal.id,
    now: clock.now,
    familyOf: (agent) => background.table.find(agent)?.family,
  });
  const { model } = line.state.head;
  mustBePriced(model, { limits, settings: line.state.head.settings });
  const contents = options.forking?.store === false ? undefined : options.engine.stores?.();
  const stored = new StoredPrefixes({ contents, journal, clock, emit: (event) => hub.emit(event) });
  const engines = new Engines({ ...options, wrap: (client) => withStoredPrefixes(client, stored) });
  const settings: AgentSettings = {
    ...{ name: "main", maxTokens: options.maxTokens, ttl: options.ttl, compactAt: options.compactAt },
    thinks: options.settings.thinking !== undefined && options.settings.thinking.type !== "disabled",
  };
  const questions =
    ask &&
    new Questions({
      ask,
      ...(options.signal ? { signal: options.signal } : {}),
      covers: (rule, question) => agent.guard.covers(rule, question),
      onWaiting: ({ id: questionId, agent: asker, scope: _scope, ...question }, isWaiting) =>
        hub.emit(
          isWaiting ? { type: "question_opened", questionId, ...question } : { type: "question_closed", questionId },
          asker,
        ),
    });
  const background = composeBackground({
    ...{ options, registry, journal, engines, stored, hub, settings, questions, line, extensions },
    parent: () => agent,
    ...(replayed ? { replayed } : {}),
  });
  const { launcher, taskTools, inbox, table, slot, shells } = background;
  const files = new SessionFiles({
    ...{ cwd: options.cwd, environment: options.environment, journal },
    isOn: options.snapshots === "on",
    notice: (notice) => hub.emit({ type: "settings_noticed", notice }),
  });
  const making = makeAgent({
    ...{ options, registry, journal, line, settings, extensions, remember },
    engine: engines.open(model),
    effects: files.effects,
    rights: { policy, mode, asks: ask ? "person" : "nobody" },
    environment: toolEnvironment(options.environment),
    delegation: {
      ...extensions.delegation(launcher.agent),
      agent: launcher.agent,
      taskOutput: taskTools.taskOutput,
      taskStop: taskTools.taskStop,
      sendMessage: taskTools.sendMessage,
    },
    account: new Account(limits, replayed ? { spent: spentIn(replayed) } : {}),
    family: launcher.family,
    slowCalls: launcher.slowCalls,
    notices: () => inbox.tail(({ id, task }) => hub.emit({ type: "notification_entered", id, taskId: task })),
    tasks: () => table.running.map((task) => ({ id: task.id, label: task.label, state: describeState(task) })),
    shellEvents: shells,
    emit: (event) => {
      if (event.type === "turn_ended" || event.type === "epoch_started")
        slot.save(snapshotOf(agent, options), options.querySource);
      if (event.type === "turn_ended") void stored.releaseEnded();
      hub.emit(event);
    },
    lastPrompt: promptIn(replayed?.state),
    ask: questions && ((question, signal) => questions.ask(question, signal)),
    replayed: replayed && answeredByTasks(replayed),
    state: replayed?.state ?? new Map(),
  });
  const agent: Agent = await making.catch((error: unknown) => {
    engines.close();
    throw error;
  });
  if (replayed) slot.save(snapshotOf(agent, options), options.querySource);
  hub.follow((event) => extensions.notify(event));
  for (const event of eventsBefore({ options, journal, line, ...(replayed ? { replayed } : {}) })) hub.emit(event);
  for (const event of extensions.follow((later) => hub.emit(later))) hub.emit(event);
  await background.takeOver(clock.now());
  if (replayed && (await files.recover(replayed.state))) hub.emit({ type: "settings_noticed", notice: RECOVERED });
  const live = {
    ...{ agent, inbox },
    saveSnapshot: () => void slot.save(snapshotOf(agent, options), options.querySource),
    emit: (event: EventBody) => hub.emit(event),
  };
  const rewinding = { journal, files, live, inherited: replayed?.inherited, now: clock.now };
  const parts = { options, agent, journal, engines, stored, hub, extensions, questions, rewinding };
  return new Session({ ...parts, ...background });
};

/** A call waited for its agent when the process died. If the agent had ended and its end is not announced otherwise, its
 *  report is the answer. */
const answeredByTasks = (replayed: Replayed): Replayed => {
  const { state, notices, openCalls } = replayed;
  const isUnreported = ({ id }: Task): boolean => !notices.some(({ source }) => source === id);
  const answered = openCalls.map((open): OpenCall => {
    const task = tasksIn(state).findLast(({ plan }) => parsePlan(plan)?.call === open.call.id);
    if (open.status !== "started" || task?.state.kind !== "ended" || !task.result || !isUnreported(task)) return open;
    const isError = task.state.end !== "reported";
    const content = [text(task.result.text)];
    const result: ToolResultBlock = {
      type: "tool_result",
      toolUseId: open.call.id,
      content,
      ...(isError ? { isError } : {}),
    };
    return { call: open.call, status: "ended", result, ms: task.result.ms };
  });
  return { ...replayed, openCalls: answered };
};

/** What the main line and all its tasks have spent. */
const spentIn = ({ usage, usd, state }: Replayed): Spent => {
  const tasks = tasksIn(state).flatMap(({ spent }) => spent ?? []);
  return {
    usage: tasks.reduce((sum, spent) => addUsage(sum, spent.usage), usage),
    usd: tasks.reduce((sum, spent) => sum + spent.usd, usd),
  };
};

/** By reference: taking one costs nothing. */
const snapshotOf = ({ line }: Agent, { maxTokens, querySource }: ResolvedOptions): CacheSafeParams => ({
  ...line.state,
  maxTokens,
  querySource,
});

const eventsBefore = ({
  options,
  journal,
  line,
  replayed,
}: Omit<Composing, "registry" | "extensions">): readonly EventBody[] => {
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
    ...[...options.permissions.policy.notices, ...options.notices].map(
      (notice): EventBody => ({ type: "settings_noticed", notice }),
    ),
    ...(replayed?.problems ?? []).map(
      ({ line: number, kind: damage, detail }): EventBody => ({
        type: "journal_troubled",
        problem: `line ${number}: ${detail}`,
        damage,
      }),
    ),
    ...(replayed?.openEpoch?.epoch === epoch
      ? []
      : [
          {
            ...{ type: "epoch_started", epoch, bytes: prefix.byteLength },
            reason: replayed?.openEpoch ? "model" : "start",
          } satisfies EventBody,
        ]),
  ];
};
