/** A busy client in front of a provider that answers in every way: is every byte on both sides what the other one sent?
 *  Clients leave, providers reset and break off; then what arrived must be the beginning of what was sent, and the other
 *  side must hear of the end.
 *  Elsewhere: what is sent (cases.ts), the short form (pass.test.ts), the long one (npm run soak -- proxy). */

import { createHash } from "node:crypto";
import { once } from "node:events";
import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type RunningProxy, startProxy } from "@prefork/xray/proxy";
import { type Case, caseOf, framedHeaders, type Message, piecesOf } from "./cases.ts";

/** What `npm run soak -- proxy` runs. */
export const FULL_SOAK: SoakOptions = { requests: 10_000, seed: 20, atOnce: 32 };

export type SoakOptions = { readonly requests: number; readonly seed: number; readonly atOnce: number };

export type SoakResult = {
  readonly requests: number;
  readonly whole: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly bytes: { readonly up: number; readonly down: number };
  /** Of all bodies in the order of the cases: as they were sent, as they arrived. */
  readonly hashes: { readonly sent: string; readonly arrived: string };
  readonly broken: readonly string[];
};

type Seen = {
  readonly line: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
  readonly trailers: readonly string[];
  readonly isWhole: boolean;
};

/** What one side received. `closed` resolves when its connection or its exchange is over. */
const receive = async (message: IncomingMessage, line: string, isSlow: boolean): Promise<Seen> => {
  const chunks: Buffer[] = [];
  let isWhole = true;
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      if (isSlow) await delay(1);
    }
  } catch {
    isWhole = false;
  }
  const { rawHeaders, rawTrailers, complete } = message;
  return {
    line,
    headers: rawHeaders,
    body: Buffer.concat(chunks),
    trailers: rawTrailers,
    isWhole: isWhole && complete,
  };
};

// --- the provider ----------------------------------------------------------------------------------------------------

class Provider {
  readonly cases = new Map<number, Case>();
  readonly seen = new Map<number, Seen>();
  readonly heardEnd = new Set<number>();
  readonly server = createServer({ keepAliveTimeout: 60_000 });

  constructor() {
    this.server.on("request", (request, response) => {
      this.#serve(request, response).catch((error: Error) => response.destroy(error));
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const number = Number(request.headers["x-case"]);
    const asked = this.cases.get(number);
    if (!asked) throw new Error(`nobody sent case ${number}`);
    response.on("error", () => undefined);
    response.once("close", () => this.heardEnd.add(number));
    const { fault, isSlow } = asked;
    const { method, url } = request;
    const seen = await receive(request, `${method} ${url}`, isSlow);
    this.seen.set(number, seen);
    if (!seen.isWhole) return;
    if (fault === "provider resets before it answers") {
      request.socket.resetAndDestroy();
      return;
    }
    await this.#answer(asked, response);
  }

  async #answer({ status, reason, answer, hints, fault, method }: Case, response: ServerResponse): Promise<void> {
    if (hints.length > 0) response.writeInformation(103, hints as string[]);
    response.sendDate = false;
    for (const name of ["connection", "transfer-encoding", "content-length"]) response.removeHeader(name);
    const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
    const framed = hasBody
      ? answer
      : ({ ...answer, framing: answer.framing === "length" ? "length" : "none" } as const);
    response.writeHead(status, reason, framedHeaders(framed) as string[]);
    if (!hasBody) {
      response.end();
      return;
    }
    const pieces = piecesOf(answer);
    const breaksAt =
      fault === "provider resets in the middle" || fault === "provider ends in the middle" ? pieces.length >> 1 : -1;
    for (const [index, piece] of pieces.entries()) {
      if (response.destroyed) return;
      if (index === breaksAt) {
        await written(response, piece.subarray(0, piece.length >> 1));
        if (fault === "provider resets in the middle") response.socket?.resetAndDestroy();
        else response.socket?.destroySoon();
        return;
      }
      await written(response, piece);
    }
    if (answer.trailers.length > 0) response.addTrailers(answer.trailers as [string, string][]);
    response.end();
  }
}

/** Written, and on its way: what is written together may arrive together. */
const written = async (stream: ServerResponse | ReturnType<typeof httpRequest>, piece: Buffer): Promise<void> => {
  if (!stream.write(piece) && !stream.destroyed)
    await Promise.race([once(stream, "drain"), once(stream, "close")]).catch(() => undefined);
  await new Promise((resolve) => setImmediate(resolve));
};

// --- the client ------------------------------------------------------------------------------------------------------

type Got = { readonly seen: Seen | undefined; readonly hints: readonly string[] };

const ask = async (asked: Case, port: number, agent: Agent): Promise<Got> => {
  const { method, path, request, number, fault, isSlow } = asked;
  const headers = ["Host", `127.0.0.1:${port}`, "X-Case", String(number), ...framedHeaders(request)];
  const outgoing = httpRequest({
    host: "127.0.0.1",
    port,
    method,
    path,
    headers: headers as string[],
    setDefaultHeaders: false,
    agent,
  });
  const hints: string[] = [];
  outgoing.on("information", ({ statusCode, rawHeaders }) => hints.push(String(statusCode), ...rawHeaders));
  const answered = new Promise<IncomingMessage | undefined>((resolve) => {
    outgoing.once("response", resolve);
    outgoing.on("error", () => resolve(undefined));
    outgoing.once("close", () => resolve(undefined));
  });
  const pieces = piecesOf(request);
  const leavesAt = fault === "client leaves while sending" ? pieces.length >> 1 : -1;
  for (const [index, piece] of pieces.entries()) {
    if (outgoing.destroyed) break;
    if (index === leavesAt) {
      await written(outgoing, piece.subarray(0, piece.length >> 1));
      outgoing.destroy();
      return { seen: undefined, hints };
    }
    await written(outgoing, piece);
  }
  if (request.trailers.length > 0) outgoing.addTrailers(request.trailers as [string, string][]);
  outgoing.end();
  const answer = await answered;
  if (!answer) return { seen: undefined, hints };
  if (fault === "client leaves while reading") {
    answer.on("error", () => undefined);
    answer.destroy();
    return { seen: undefined, hints };
  }
  return { seen: await receive(answer, `${answer.statusCode} ${answer.statusMessage}`, isSlow), hints };
};

// --- comparing -------------------------------------------------------------------------------------------------------

/** Said anew on each connection, and the name under which each side is known. */
const OWN = /^(?:host|connection|keep-alive|transfer-encoding|x-case)$/i;

const withoutOwn = (raw: readonly string[]): string =>
  raw.flatMap((text, index) => (index % 2 === 0 && !OWN.test(text) ? [`${text}: ${raw[index + 1]}`] : [])).join("\n");

const flat = (trailers: Message["trailers"]): string => trailers.flat().join("\n");

/** What is wrong with what arrived of a message that was sent whole. */
const differences = (sent: Message, line: string, seen: Seen): readonly string[] => [
  ...(seen.line === line ? [] : [`first line: ${seen.line} instead of ${line}`]),
  ...(withoutOwn(seen.headers) === withoutOwn(framedHeaders(sent)) ? [] : [`headers: ${withoutOwn(seen.headers)}`]),
  ...(seen.body.equals(sent.body) ? [] : [`body: ${seen.body.length} bytes instead of ${sent.body.length}`]),
  ...(seen.trailers.join("\n") === flat(sent.trailers) ? [] : [`trailers: ${seen.trailers.join(" ")}`]),
];

const isBeginning = (part: Buffer, whole: Buffer): boolean => whole.subarray(0, part.length).equals(part);

const judge = (asked: Case, { seen: got, hints }: Got, provider: Provider): readonly string[] => {
  const { number, method, path, request, status, reason, answer, fault } = asked;
  const arrived = provider.seen.get(number);
  const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
  const bodiless: Message = {
    ...answer,
    body: Buffer.alloc(0),
    trailers: [],
    framing: answer.framing === "length" ? "length" : "none",
  };
  const expected = hasBody ? answer : bodiless;
  const length = ["Content-Length", String(answer.body.length)];
  const sentAnswer: Message =
    hasBody || answer.framing !== "length"
      ? expected
      : { ...bodiless, headers: [...answer.headers, ...length], framing: "none" };
  const wrong: string[] = [];
  if (arrived && !isBeginning(arrived.body, request.body)) wrong.push("the provider got other bytes");
  if (got && !isBeginning(got.body, expected.body)) wrong.push("the client got other bytes");
  if (fault !== "client leaves while sending")
    wrong.push(...(arrived ? differences(request, `${method} ${path}`, arrived) : ["the provider got nothing"]));
  if (fault === "none") {
    wrong.push(...(got ? differences(sentAnswer, `${status} ${reason}`, got) : ["the client got nothing"]));
    const told = asked.hints.length > 0 ? ["103", ...asked.hints] : [];
    if (hints.join("\n") !== told.join("\n")) wrong.push(`hints: ${hints.join(" ")}`);
    if (got && !got.isWhole) wrong.push("the client's answer was cut off");
  }
  const breaks = fault === "provider resets in the middle" || fault === "provider ends in the middle";
  if (breaks && hasBody && answer.body.length > 1 && answer.framing !== "close" && got?.isWhole)
    wrong.push("a broken answer looked whole");
  if (fault === "provider resets before it answers" && got) wrong.push(`an answer to what was reset: ${got.line}`);
  return wrong.map((text) => `case ${number} (${fault}): ${text}`);
};

// --- all of it -------------------------------------------------------------------------------------------------------

const leaves = ({ fault }: Case): boolean =>
  fault === "client leaves while sending" || fault === "client leaves while reading";

/** Those whose client left: the provider must have heard of it, if it had heard of the request. */
const unheard = async (cases: readonly Case[], provider: Provider): Promise<readonly string[]> => {
  const left = cases.filter((asked) => leaves(asked) && provider.seen.has(asked.number));
  for (let tries = 0; tries < 1_000 && !left.every(({ number }) => provider.heardEnd.has(number)); tries += 1)
    await delay(10);
  return left
    .filter(({ number }) => !provider.heardEnd.has(number))
    .map(({ number }) => `case ${number}: the provider never heard that the client had left`);
};

export const passSoak = async ({ requests, seed, atOnce }: SoakOptions): Promise<SoakResult> => {
  const provider = new Provider();
  provider.server.listen(0, "127.0.0.1");
  await once(provider.server, "listening");
  const { port } = provider.server.address() as AddressInfo;
  await using proxy: RunningProxy = await startProxy({ upstream: `http://127.0.0.1:${port}` });
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  const [sent, arrived] = [createHash("sha256"), createHash("sha256")];
  const broken: string[] = [];
  const faults: Record<string, number> = {};
  const bytes = { up: 0, down: 0 };
  let whole = 0;
  for (let from = 0; from < requests; from += atOnce) {
    const cases = Array.from({ length: Math.min(atOnce, requests - from) }, (_, index) => caseOf(seed, from + index));
    for (const asked of cases) provider.cases.set(asked.number, asked);
    const got = await Promise.all(cases.map((asked) => ask(asked, Number(new URL(proxy.url).port), agent)));
    broken.push(...(await unheard(cases, provider)));
    for (const [index, asked] of cases.entries()) {
      const { number, fault, request, answer, method, status } = asked;
      const result = got[index] ?? { seen: undefined, hints: [] };
      broken.push(...judge(asked, result, provider));
      faults[fault] = (faults[fault] ?? 0) + 1;
      if (fault === "none") {
        const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
        sent.update(request.body).update(hasBody ? answer.body : "");
        arrived.update(provider.seen.get(number)?.body ?? "").update(result.seen?.body ?? "");
        bytes.up += request.body.length;
        bytes.down += result.seen?.body.length ?? 0;
        whole += 1;
      }
      provider.cases.delete(number);
      provider.seen.delete(number);
      provider.heardEnd.delete(number);
    }
  }
  agent.destroy();
  const report = await proxy.close();
  if (report.open > 0) broken.push(`${report.open} requests are still open in the report`);
  if (report.analysis !== "runs") broken.push(`the analysis ${report.analysis}`);
  // Who leaves while sending may have left before anybody heard of it.
  const least = requests - (faults["client leaves while sending"] ?? 0);
  const { requests: passed } = report.passed;
  if (passed < least || passed > requests) broken.push(`${passed} requests passed`);
  provider.server.closeAllConnections();
  provider.server.close();
  return {
    requests,
    whole,
    faults,
    bytes,
    hashes: { sent: sent.digest("hex"), arrived: arrived.digest("hex") },
    broken,
  };
};
