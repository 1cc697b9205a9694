/** A screen that is measured: ours, or a bare pi-tui program that shows the same lines. Prints one JSON object.
 *  Invariant: both get the same events at the same rate and the same keys, and write to a terminal that costs nothing.
 *  Elsewhere: what the figures are compared with (bench/tui). */

import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Editor, type Terminal, Text, TuiMainScreen } from "@earendil-works/pi-tui";
import type { EventBody, RuntimeEvent } from "@prefork/runtime";
import { Screen } from "../../src/tui/screen.ts";
import { type Action, initialState, reduce, type State, stripRows } from "../../src/tui/state/index.ts";

const [COLUMNS, ROWS] = [120, 40];
const FORKS = 50;
const TICK_MS = 20;

/** Keeps nothing but the moment at which a marked key appeared. */
class NullTerminal implements Terminal {
  readonly columns = COLUMNS;
  readonly rows = ROWS;
  readonly kittyProtocolActive = false;
  input: (data: string) => void = () => undefined;
  onWrite: (data: string) => void = () => undefined;
  start(onInput: (data: string) => void): void {
    this.input = onInput;
  }
  write(data: string): void {
    this.onWrite(data);
  }
  stop(): void {}
  async drainInput(): Promise<void> {}
  moveBy(): void {}
  hideCursor(): void {}
  showCursor(): void {}
  clearLine(): void {}
  clearFromCursor(): void {}
  clearScreen(): void {}
  setTitle(): void {}
  setProgress(): void {}
}

export type Shown = { readonly terminal: NullTerminal; readonly fork: (index: number, text: string) => void };

const event = (body: EventBody, agent: string): RuntimeEvent =>
  ({ ...body, agent, seq: 1, at: Date.now(), session: "s", level: "info", family: "f" }) as RuntimeEvent;

const startFork = (index: number): RuntimeEvent =>
  event(
    {
      ...{ type: "fork_started", taskId: `task-${index}`, runId: "r", parent: "main", label: `part ${index}` },
      ...{ querySource: "agent:builtin:fork", mode: "fire-and-forget", skipTranscript: false, cacheKeyHash: "k" },
    },
    "main",
  );

class Ours implements Shown {
  readonly terminal = new NullTerminal();
  state: State = initialState({ cwd: "/w", columns: COLUMNS, rows: ROWS, now: Date.now() });
  readonly #screen: Screen;

  constructor() {
    this.#screen = new Screen({
      theme: "dark",
      terminal: this.terminal,
      state: () => this.state,
      onKey: (key, input) => this.#do({ type: "key", key, input, at: Date.now() }) ?? false,
      onSubmit: () => undefined,
    });
    this.#screen.start();
    for (let index = 0; index < FORKS; index++) this.#do({ type: "event", event: startFork(index) });
  }

  say(messages: number): void {
    for (let index = 0; index < messages; index++)
      this.#do({
        type: "printed",
        block: { kind: "answer", text: `Message ${index} with **some** words and \`code\`.`, isDone: true },
      });
  }

  fork(index: number, text: string): void {
    this.#do({ type: "event", event: event({ type: "text_grew", turn: 1, text }, `task-${index}`) });
  }

  #do(action: Action): boolean | undefined {
    const step = reduce(this.state, action);
    this.state = step.state;
    this.#screen.draw();
    return step.isHandled;
  }
}

/** What somebody would write without a state: one text per visible line, changed in place. */
class Bare implements Shown {
  readonly terminal = new NullTerminal();
  readonly #tui = new TuiMainScreen(this.terminal);
  readonly #lines: readonly Text[];
  readonly #counts = new Array<number>(FORKS).fill(0);

  constructor() {
    const visible = stripRows(new Ours().state).length > 0 ? Math.floor(ROWS / 3) - 1 : 0;
    this.#lines = Array.from({ length: visible }, (_, index) => new Text(`part ${index} starting`, 0, 0));
    for (const line of this.#lines) this.#tui.addChild(line);
    const plain = (text: string): string => text;
    const selectList = {
      selectedPrefix: plain,
      selectedText: plain,
      description: plain,
      scrollInfo: plain,
      noMatch: plain,
    };
    const editor = new Editor(this.#tui, { borderColor: plain, selectList });
    this.#tui.addChild(editor);
    this.#tui.addChild(new Text("model · context · cost", 0, 0));
    this.#tui.setFocus(editor);
    this.#tui.start();
  }

  fork(index: number, text: string): void {
    const count = (this.#counts[index] ?? 0) + text.length;
    this.#counts[index] = count;
    this.#lines[index]?.setText(`part ${index} writing ${count}`);
    this.#tui.requestRender();
  }
}

type Streamed = { readonly cpuMs: number; readonly keyMs: number };

/** Streams for this long, with a key ten times a second. */
const stream = async (shown: Shown, ms: number): Promise<Streamed> => {
  const latencies: number[] = [];
  const before = process.cpuUsage();
  const started = performance.now();
  for (let tick = 0; performance.now() - started < ms; tick++) {
    for (let index = 0; index < FORKS; index++) shown.fork(index, "some more words of an answer, ");
    if (tick % 5 === 0) latencies.push(await press(shown.terminal, String.fromCharCode(97 + (tick % 26))));
    await sleep(TICK_MS);
  }
  const { user, system } = process.cpuUsage(before);
  const sorted = latencies.toSorted((one, other) => one - other);
  return { cpuMs: (user + system) / 1000, keyMs: sorted[Math.floor(sorted.length / 2)] ?? Number.NaN };
};

/** Milliseconds until the screen shows the key. */
const press = (terminal: NullTerminal, key: string): Promise<number> =>
  new Promise((resolve) => {
    const pressed = performance.now();
    terminal.onWrite = (data) => {
      if (data.includes(key)) resolve(performance.now() - pressed);
    };
    terminal.input(key);
  });

const heapMiB = async (): Promise<number> => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  await sleep(10);
  collect();
  return process.memoryUsage().heapUsed / 2 ** 20;
};

/** An hour of fifty forks that write ten times a second, as fast as the machine can. */
const hour = async (seconds: number): Promise<{ readonly early: number; readonly late: number }> => {
  const ours = new Ours();
  let early = Number.NaN;
  for (let second = 0; second < seconds; second++) {
    for (let part = 0; part < 10; part++)
      for (let index = 0; index < FORKS; index++)
        ours.fork(index, part === 9 ? "and a paragraph ends.\n\nNext " : "words of an answer that goes on, ");
    if (second % 20 === 0) await sleep(0);
    if (second === Math.floor(seconds / 4)) early = await heapMiB();
  }
  return { early, late: await heapMiB() };
};

const [what = "", count = "1500"] = process.argv.slice(2);
const run = async (): Promise<object> => {
  switch (what) {
    case "ours":
      return stream(new Ours(), Number(count));
    case "bare":
      return stream(new Bare(), Number(count));
    case "short":
    case "long": {
      const ours = new Ours();
      ours.say(what === "short" ? 50 : 5_000);
      await sleep(200);
      return stream(ours, Number(count));
    }
    case "hour":
      return hour(Number(count));
    default:
      throw new Error(`unknown: ${what}`);
  }
};
process.stdout.write(`${JSON.stringify(await run())}\n`, () => process.exit(0));
