/** What the tools of one agent work with: files, shells, what was read, the to-do list, the environment of commands.
 *  Every agent has its own. What must survive is journalled after each batch, and nothing is journalled twice.
 *  Elsewhere: the tools (../tools), when they run (dispatch.ts). */

import {
  draftsIn,
  type OpenedReadOnlySandbox,
  type OpenedSandbox,
  openReadOnlySandbox,
  openSandbox,
  probeSandbox,
} from "@prefork/guard";
import { endStragglers, isProviderKey, MARK, newMark } from "@prefork/guard/internal";
import type { ImageBlock, Json, TextBlock, ToolResultBlock } from "@prefork/wire";
import { type Budget, budgetFor, type IncomingResult, ReplacementState } from "../context/index.ts";
import type { Todo } from "../events.ts";
import type { PlainEntry } from "../journal/index.ts";
import {
  createOutputStore,
  type OutputStore,
  openToolFiles,
  ReadState,
  Shells,
  type ToolContext,
  type ToolFiles,
} from "../tools/index.ts";
import type { ApprovedCall } from "./dispatch.ts";
import type { AgentGuard } from "./guard.ts";
import type { AgentParts, Content } from "./options.ts";

/** The parts of an agent that its tools work with. */
type ToolWorldParts = Pick<
  AgentParts,
  | "options"
  | "settings"
  | "engine"
  | "journal"
  | "rights"
  | "environment"
  | "delegation"
  | "emit"
  | "state"
  | "inherited"
  | "files"
  | "effects"
  | "visible"
  | "shellEvents"
>;

/** The folders that tools work in; `visible`: what commands in the sandbox must see in addition. */
type Workplace = { readonly cwd: string; readonly roots: readonly string[]; readonly visible?: readonly string[] };

const READ_SLOT = "read:";
const TODO_SLOT = "todos";

export class ToolWorld implements AsyncDisposable {
  reads: ReadState;
  readonly shells: Shells;
  readonly #parts: ToolWorldParts;
  readonly #guard: Pick<AgentGuard, "mayShow">;
  readonly #budget: Budget;
  #workplace: Workplace;
  #files: ToolFiles;
  readonly #keeping: OutputStore;
  readonly #replacements: ReplacementState;
  /** The parent's replacements when this agent began. */
  readonly #inherited: ReplacementState | undefined;
  /** How many batches had a call with this id. */
  readonly #uses = new Map<string, number>();
  #todos: readonly Todo[];
  #layers: Promise<Layers> | undefined;
  /** A variable in the environment of all its commands, by which leftover processes are found. */
  readonly #mark: string;
  #hasRun = false;

  private constructor(parts: ToolWorldParts, { guard, workplace, files }: Opened) {
    const { inherited, state, journal, options, environment } = parts;
    this.#parts = parts;
    this.#guard = guard;
    this.#workplace = workplace;
    this.#files = files;
    this.#budget = budgetFor(parts.engine.window);
    this.reads = inherited?.reads ?? ReadState.fromJson(readsIn(state));
    this.#inherited = inherited?.replacements.clone();
    this.#replacements = inherited?.replacements ?? new ReplacementState();
    this.#keeping = createOutputStore(journal.outputs.path);
    this.shells = new Shells({ ids: options.ids, keepStream: this.#keeping.keepStream, ...parts.shellEvents });
    this.#todos = todosIn(state);
    this.#mark = newMark(environment);
  }

  static async open(parts: ToolWorldParts, guard: Pick<AgentGuard, "mayShow">): Promise<ToolWorld> {
    const { options, rights, visible = [] } = parts;
    const { cwd, directories } = options;
    const workplace = { cwd, roots: [cwd, ...directories, ...rights.policy.directories], visible };
    // A child works with its parent's open folders, lent to it.
    const files = parts.files?.lend((from) => guard.mayShow(from)) ?? (await openFiles(parts, { guard, workplace }));
    return new ToolWorld(parts, { guard, workplace, files: await withMemory(parts, files) });
  }

  /** From now on its tools work in other folders. What was read before was read elsewhere. */
  async moveTo(workplace: Workplace): Promise<void> {
    const opened = await openFiles(this.#parts, { guard: this.#guard, workplace });
    const files = await withMemory(this.#parts, opened);
    await this.#leave();
    this.#files = files;
    this.#workplace = workplace;
    this.#layers = undefined;
    this.reads = ReadState.empty();
  }

  /** The conversation went back: what was read and planned since then is not in it. */
  goBack(state: ReadonlyMap<string, Json>): void {
    this.reads = ReadState.fromJson(readsIn(state));
    this.#todos = todosIn(state);
    this.#parts.emit({ type: "todos_changed", todos: this.#todos });
  }

  /** Does a sandbox keep commands from writing outside its folders? */
  async isBounded(): Promise<boolean> {
    const layers = await this.#layersOf().catch(() => undefined);
    return layers?.sandbox.kind === "on";
  }

  /** Did its commands run where nothing can be written? */
  async hasReadOnlySandbox(): Promise<boolean> {
    const layers = await this.#layers?.catch(() => undefined);
    return layers?.readOnlySandbox.kind === "on";
  }

  get files(): ToolFiles {
    return this.#files;
  }

  /** A copy: later decisions of either side do not affect the other. */
  get replacements(): ReplacementState {
    return this.#replacements.clone();
  }

  get todos(): readonly Todo[] {
    return this.#todos;
  }

  async context({ callId, plan, approved, startsPrograms }: ApprovedCall, signal: AbortSignal): Promise<ToolContext> {
    const { settings, options, environment, delegation, emit } = this.#parts;
    const { cwd } = this.#workplace;
    const layers = startsPrograms ? await this.#layersOf() : undefined;
    return {
      ...{
        callId,
        agent: settings.name,
        signal,
        cwd,
        environment: { ...environment, [MARK]: this.#mark },
        delegation,
        approved,
        files: this.#files,
        reads: this.reads,
        shells: this.shells,
      },
      ...(plan ? { plan } : {}),
      ...(layers?.readOnlySandbox.kind === "on" ? { readOnlySandbox: layers.readOnlySandbox.sandbox } : {}),
      ...(layers?.sandbox.kind === "on" ? { sandbox: layers.sandbox.sandbox } : {}),
      now: options.clock.now,
      todos: { get: () => this.#todos, set: (todos) => this.#setTodos(todos) },
      ...this.#keeping,
      onCommandStart: () => {
        this.#hasRun ||= layers?.sandbox.kind !== "on"; // in the sandbox nothing is left
      },
      progress: (text) => emit({ type: "call_progressed", callId, text }),
    };
  }

  /** A result that is too long for the conversation enters as a preview; the full text is kept in a file. */
  async shorten(callId: string, tool: string, blocks: Content): Promise<Content> {
    const toolUseId = this.#nameOf(callId);
    const entering: IncomingResult = { toolUseId, tool, blocks };
    if (!this.#replacements.idsToKeep([entering], this.#budget).includes(toolUseId)) return blocks;
    return (await this.#replace([entering], [toolUseId], [callId]))[0] ?? blocks;
  }

  /** The same for all results of one turn together. */
  async shortenBatch(
    results: readonly ToolResultBlock[],
    toolOf: (callId: string) => string,
  ): Promise<readonly ToolResultBlock[]> {
    const batch = results.map(
      ({ toolUseId: callId, content }): IncomingResult => ({
        toolUseId: this.#nameOf(callId),
        tool: toolOf(callId),
        blocks: withoutDocuments(content),
      }),
    );
    const long = this.#replacements.idsToKeep(batch, this.#budget);
    const callIds = results.map(({ toolUseId }) => toolUseId);
    const contents = await this.#replace(batch, long, callIds);
    for (const callId of callIds) this.#uses.set(callId, (this.#uses.get(callId) ?? this.#usesBefore(callId)) + 1);
    return results.map((result, at) =>
      long.includes(batch[at]?.toolUseId ?? "") ? { ...result, content: contents[at] ?? result.content } : result,
    );
  }

  /** A provider may reuse an id in a later turn; what was decided for the first result does not apply to the next. */
  #nameOf(callId: string): string {
    return nameOfUse(callId, this.#uses.get(callId) ?? this.#usesBefore(callId));
  }

  /** A provider may give a fork an id that its parent has used. */
  #usesBefore(callId: string): number {
    let uses = 0;
    while (this.#inherited?.get(nameOfUse(callId, uses)) !== undefined) uses++;
    return uses;
  }

  /** What tools have read since the last call of this method, as journal entries. */
  takeLearned(): readonly PlainEntry[] {
    return this.reads.takeNewPaths().flatMap((path): readonly PlainEntry[] => {
      const seen = this.reads.get(path);
      return seen ? [{ kind: "state", slot: READ_SLOT + path, value: { path, ...seen } }] : [];
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shells.stopAll();
    if (this.#hasRun) await endStragglers(this.#mark);
    await this.#leave();
  }

  async #leave(): Promise<void> {
    const layers = await this.#layers?.catch(() => undefined);
    if (layers?.sandbox.kind === "on") await layers.sandbox.sandbox[Symbol.asyncDispose]();
    await this.#files.close();
  }

  async #replace(
    batch: readonly IncomingResult[],
    long: readonly string[],
    callIds: readonly string[],
  ): Promise<readonly Content[]> {
    const kept = await Promise.all(
      batch.map(async (entering): Promise<IncomingResult> => {
        if (!long.includes(entering.toolUseId)) return entering;
        const file = await this.#keep(`result-${entering.toolUseId}`, textIn(entering.blocks));
        return file === "" ? entering : { ...entering, file };
      }),
    );
    const { journal, emit } = this.#parts;
    const decisions = this.#replacements.decide(kept, this.#budget);
    return decisions.map((decision, at) => {
      const { toolUseId, blocks } = kept[at] as IncomingResult;
      if (decision.kind === "whole" || !long.includes(toolUseId)) return blocks;
      const { bytes, file = "", preview } = decision;
      journal.appendAll([{ entry: { kind: "state", slot: `replacement:${toolUseId}`, value: { bytes, file } } }]);
      emit({ type: "result_replaced", callId: callIds[at] ?? toolUseId, bytes, file });
      return preview;
    });
  }

  /** Empty if it could not be kept; the preview says so. */
  async #keep(name: string, content: string): Promise<string> {
    try {
      return await this.#keeping.keep(name, content);
    } catch {
      return "";
    }
  }

  #setTodos(todos: readonly Todo[]): void {
    this.#parts.journal.appendAll([{ entry: { kind: "state", slot: TODO_SLOT, value: todos } }]);
    this.#todos = todos;
    this.#parts.emit({ type: "todos_changed", todos });
  }

  /** Opened once, when the first tool runs that starts a program. A session that only talks or reads pays nothing. */
  #layersOf(): Promise<Layers> {
    this.#layers ??= openLayers(this.#parts, this.#workplace);
    return this.#layers;
  }
}

type Opened = {
  readonly guard: Pick<AgentGuard, "mayShow">;
  readonly workplace: Workplace;
  readonly files: ToolFiles;
};

const openFiles = (
  { options, effects }: ToolWorldParts,
  { guard, workplace: { cwd, roots } }: Omit<Opened, "files">,
): Promise<ToolFiles> =>
  openToolFiles({
    ...{ roots, cwd, mayRead: (from) => guard.mayShow(from), drafts: draftsIn(options.state) },
    beforeWrite: effects?.beforeWrite,
  });

/** Adds the memory folder outside the workspace that it may write in, by all of its names. */
const withMemory = async ({ rights }: ToolWorldParts, files: ToolFiles): Promise<ToolFiles> =>
  rights.filter?.memory ? files.withFolder(rights.filter.memory.names) : files;

type Layers = { readonly readOnlySandbox: OpenedReadOnlySandbox; readonly sandbox: OpenedSandbox };

const openLayers = async (
  { rights, options: { home } }: ToolWorldParts,
  { cwd, roots, visible = [] }: Workplace,
): Promise<Layers> => {
  const mode = rights.policy.sandbox;
  const probe = mode === "off" ? undefined : await probeSandbox();
  const probed = probe === undefined ? {} : { probe };
  const writable = roots.filter((root) => root !== cwd);
  const [readOnlySandbox, sandbox] = await Promise.all([
    openReadOnlySandbox({ mode, home, ...probed }),
    openSandbox({ mode, workspace: cwd, home, writable, visible, ...probed }),
  ]);
  for (const layer of [readOnlySandbox, sandbox])
    if (layer.kind === "refused") throw new Error(`the sandbox is required: ${layer.reason}`);
  return { readOnlySandbox, sandbox };
};

const textIn = (blocks: Content): string =>
  blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");

const nameOfUse = (callId: string, uses: number): string => (uses === 0 ? callId : `${callId}~${uses + 1}`);

const withoutDocuments = (content: ToolResultBlock["content"]): readonly (TextBlock | ImageBlock)[] =>
  content.filter((block) => block.type !== "document");

const readsIn = (state: ReadonlyMap<string, Json>): Json =>
  [...state].flatMap(([slot, value]) => (slot.startsWith(READ_SLOT) ? [value] : []));

const STATUSES: readonly string[] = ["pending", "in_progress", "completed"];

const todosIn = (state: ReadonlyMap<string, Json>): readonly Todo[] => {
  const value = state.get(TODO_SLOT);
  return Array.isArray(value) ? value.filter(isTodo) : [];
};

const isTodo = (value: Json): value is Todo =>
  typeof value === "object" &&
  value !== null &&
  "content" in value &&
  typeof value.content === "string" &&
  "status" in value &&
  STATUSES.includes(String(value.status));

/** What approved commands see of the user's environment: all of it except the keys that this program or its providers use,
 *  and variables that would start something in every shell. Read-only commands see none of it. */

const STARTS_SOMETHING: readonly string[] = [
  "BASH_ENV",
  "ENV",
  "PROMPT_COMMAND",
  "LD_PRELOAD",
  "LD_AUDIT",
  "SHELLOPTS",
  "BASHOPTS",
];

export const toolEnvironment = (env: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || isProviderKey(name) || STARTS_SOMETHING.includes(name) || name.startsWith("BASH_FUNC_")
        ? []
        : [[name, value]],
    ),
  );
