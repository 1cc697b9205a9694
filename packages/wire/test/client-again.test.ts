/** Who is asked before a request whose answer had begun is sent once more: it is billed each time. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createClient,
  type ModelError,
  type ModelErrorReason,
  type ModelResponse,
  type SendOptions,
} from "../src/index.ts";
import {
  begin,
  done,
  frames,
  type Handler,
  type LocalServer,
  refuses,
  request,
  startServer,
  steppingTiming,
  streams,
} from "./local-server.ts";

const send = ({ url }: LocalServer, hearing: SendOptions): Promise<ModelResponse> =>
  createClient({ baseUrl: url, timing: steppingTiming() }).send(request(), undefined, hearing);

test("if an answer had begun, the caller is asked before the request is retried; otherwise not", async () => {
  const begunThenFails: Handler = async (call) => {
    await begin(call, [frames.start, frames.error]);
    call.response.end();
  };
  const overloaded: ModelErrorReason = { kind: "overloaded", status: 529 };
  const cases: readonly (readonly [handlers: readonly Handler[], mays: readonly boolean[], calls: number])[] = [
    [[begunThenFails, begunThenFails, streams], [true, true], 3],
    [[begunThenFails, begunThenFails, streams], [true, false], 2],
    [[begunThenFails, streams], [false], 1],
    [[refuses(529), begunThenFails, refuses(529), streams], [true], 4],
    [[refuses(529), streams], [], 2],
  ];
  for (const [handlers, mays, calls] of cases) {
    await using server = await startServer(...handlers);
    const asked: ModelErrorReason[] = [];
    const again = ({ reason }: ModelError): boolean => {
      asked.push(reason);
      return mays[asked.length - 1] ?? false;
    };
    const sent = send(server, { mayRetry: again });
    if (mays.includes(false)) await assert.rejects(sent, { name: "ModelError", reason: overloaded });
    else assert.deepEqual(await sent, done);
    assert.deepEqual([asked, server.calls.length], [mays.map((): ModelErrorReason => overloaded), calls]);
  }
});

test("a request that cannot be retried is not asked about", async () => {
  await using server = await startServer(refuses(400));
  let asked = 0;
  const again = (): boolean => {
    asked += 1;
    return true;
  };
  await assert.rejects(send(server, { mayRetry: again }), { reason: { kind: "invalid-request", status: 400 } });
  assert.deepEqual([asked, server.calls.length], [0, 1]);
});
