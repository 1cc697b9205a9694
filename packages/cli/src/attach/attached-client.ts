/** One client of a session, as the session's process sees it: reads its requests and sends it replies and events.
 *  Invariant: whatever a client sends, the answer is a frame, and neither the session nor another client is harmed. A
 *  client that goes away takes nothing with it: a prompt that it sent continues.
 *  Elsewhere: the frames (frames.ts), what waits to be sent (outbox.ts), the socket (serve.ts). */

import type { Socket } from "node:net";
import type { SessionControl } from "@prefork/runtime";
import {
  FrameSplitter,
  type Goodbye,
  MAX_REQUEST_BYTES,
  PROTOCOL_VERSION,
  type Request,
  requestSchema,
  type SessionAbout,
} from "./frames.ts";
import { Outbox } from "./outbox.ts";

/** Requests of one client that are not answered yet. */
const MAX_PENDING = 64;
const MAX_SUBSCRIPTIONS = 8;

export type AttachedClientParts = { readonly control: SessionControl; readonly about: () => SessionAbout };

export class AttachedClient {
  readonly #control: SessionControl;
  readonly #outbox: Outbox;
  readonly #socket: Socket;
  readonly #subscriptions = new Map<number, Disposable>();
  readonly #prompts = new Map<number, AbortController>();
  #pending = 0;

  constructor(socket: Socket, { control, about }: AttachedClientParts) {
    this.#control = control;
    this.#socket = socket;
    this.#outbox = new Outbox(socket);
    using kept = control.subscribe();
    const { keptFrom } = kept;
    this.#outbox.send({
      ...{ type: "hello", version: PROTOCOL_VERSION, ...about(), keptFrom },
      questions: control.questions(),
    });
    const frames = new FrameSplitter(MAX_REQUEST_BYTES, (line) => this.#read(line));
    socket.on("data", (chunk: Buffer) => {
      if (frames.push(chunk)) return;
      this.close({ type: "goodbye", reason: "broken", message: `a request has more than ${MAX_REQUEST_BYTES} bytes` });
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#unsubscribeAll());
  }

  close(goodbye: Goodbye): void {
    this.#socket.pause(); // nothing that it still sends is read
    this.#outbox.close(goodbye);
    this.#unsubscribeAll();
  }

  #unsubscribeAll(): void {
    for (const subscription of this.#subscriptions.values()) subscription[Symbol.dispose]();
    this.#subscriptions.clear();
  }

  #read(line: string): void {
    const request = parseRequest(line);
    if (!request.ok) {
      const { id, message } = request;
      this.#outbox.send({ type: "error", ...(id === undefined ? {} : { id }), message });
      return;
    }
    const { id } = request.value;
    if (this.#pending >= MAX_PENDING) {
      this.#outbox.send({ type: "error", id, message: `${MAX_PENDING} requests are waiting for their replies` });
      return;
    }
    this.#pending += 1;
    void this.#perform(request.value)
      .then(
        (result) => this.#outbox.send({ type: "reply", id, result }),
        (error: unknown) => this.#outbox.send({ type: "error", id, message: messageOf(error) }),
      )
      .finally(() => {
        this.#pending -= 1;
      });
  }

  async #perform(request: Request): Promise<unknown> {
    const control = this.#control;
    switch (request.method) {
      case "subscribe":
        return this.#subscribe(request.id, request.fromSeq);
      case "unsubscribe":
        this.#subscriptions.get(request.of)?.[Symbol.dispose]();
        this.#subscriptions.delete(request.of);
        return null;
      case "prompt":
        return await this.#prompt(request);
      case "cancel":
        this.#prompts.get(request.of)?.abort();
        return null;
      case "answer":
        return await control.answer(request.questionId, request.answer);
      case "steer":
        await control.steer(request.text, request.taskId);
        return null;
      case "stop":
        await control.stop(request.taskId);
        return null;
      case "background":
        control.background(request.taskId);
        return null;
      case "tree":
        return await control.tree();
      case "rewind":
        return await control.rewind(request.options);
    }
  }

  /** The reply comes before the first event. */
  #subscribe(id: number, fromSeq: number | undefined): { readonly keptFrom: number } {
    if (this.#subscriptions.size >= MAX_SUBSCRIPTIONS || this.#subscriptions.has(id))
      throw new Error(`a client may have ${MAX_SUBSCRIPTIONS} subscriptions, each with its own id`);
    const subscription = this.#control.subscribe(fromSeq);
    this.#subscriptions.set(id, subscription);
    setImmediate(() => void this.#sendEvents(id, subscription));
    return { keptFrom: subscription.keptFrom };
  }

  async #sendEvents(id: number, subscription: ReturnType<SessionControl["subscribe"]>): Promise<void> {
    for await (const event of subscription) {
      // An event does not hold the whole question: what the task is for is missing.
      if (event.type === "question_opened" || event.type === "question_closed")
        this.#outbox.send({ type: "questions", questions: this.#control.questions() });
      this.#outbox.send({ type: "event", id, event });
    }
    this.#subscriptions.delete(id);
  }

  async #prompt({ id, prompt, tasks }: Extract<Request, { method: "prompt" }>): Promise<unknown> {
    const cancelled = new AbortController();
    this.#prompts.set(id, cancelled);
    try {
      return await this.#control.prompt(prompt, {
        signal: cancelled.signal,
        ...(tasks === undefined ? {} : { tasks }),
      });
    } finally {
      this.#prompts.delete(id);
    }
  }
}

type ReadRequest =
  | { readonly ok: true; readonly value: Request }
  | { readonly ok: false; readonly id?: number; readonly message: string };

const parseRequest = (line: string): ReadRequest => {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return { ok: false, message: "the request is not JSON" };
  }
  const parsed = requestSchema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const [issue] = parsed.error.issues;
  const at = issue?.path.join(".") ?? "";
  const message = `the request is not valid${at === "" ? "" : `, at ${at}`}: ${issue?.message ?? ""}`;
  const id = typeof value === "object" && value !== null && "id" in value ? value.id : undefined;
  return { ok: false, ...(typeof id === "number" && Number.isSafeInteger(id) ? { id } : {}), message };
};

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
