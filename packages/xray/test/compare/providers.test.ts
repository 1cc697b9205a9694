/** Scenes of every provider: what x-ray says of the bodies and times alone, beside what the simulator billed. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ManualClock, type ProviderName, type Simulator, startSimulator } from "@prefork/simulator";
import { type ChainRequest, xrayChain } from "@prefork/xray";
import { geminiScenes } from "./corpus/gemini.ts";
import { dashscopeScenes, deepseekScenes, legacyScenes, minimaxScenes, type Scene } from "./corpus/providers.ts";

const ANSWER_MS = 1_000;

type Place = { readonly sim: Simulator; readonly clock: ManualClock; holds: Promise<void> | undefined };

const places = new Map<ProviderName, Promise<Place>>();
after(async () => {
  for (const place of places.values()) await (await place).sim.close();
});

/** Each answer takes a second; one can be held back after its first event. */
const placeOf = (provider: ProviderName): Promise<Place> => {
  const there = places.get(provider) ?? open(provider);
  places.set(provider, there);
  return there;
};

const open = async (provider: ProviderName): Promise<Place> => {
  const clock = new ManualClock();
  const place: { -readonly [K in keyof Place]?: Place[K] } = { clock };
  place.sim = await startSimulator({
    provider,
    clock,
    script: () => {
      const hold = place.holds;
      place.holds = undefined;
      if (hold === undefined) clock.advance(ANSWER_MS);
      return { content: [{ type: "text", text: "Done." }], outputTokens: 7, ...(hold === undefined ? {} : { hold }) };
    },
  });
  return place as Place;
};

const post = async ({ sim }: Place, path: string, body: unknown): Promise<void> => {
  const headers = { "content-type": "application/json", authorization: "Bearer any", "x-goog-api-key": "any" };
  const response = await fetch(`${sim.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200, await response.text());
};

type Judged = { readonly sent: readonly ChainRequest[]; readonly read: number };

const judge = async ({ provider, path, requests, waitMs = 10_000 }: Scene): Promise<Judged> => {
  const place = await placeOf(provider);
  const { sim, clock } = place;
  sim.reset();
  const model = /models\/([^:]+):/.exec(path)?.[1];
  const sent: ChainRequest[] = [];
  let open: Promise<void> | undefined;
  let release = (): void => undefined;
  for (const [index, body] of requests.entries()) {
    const isLast = index === requests.length - 1;
    if (index > 0) clock.advance(waitMs === "during" ? 1_500 : isLast ? waitMs : 10_000);
    const startedAt = clock.now();
    const isOpen = waitMs === "during" && index === requests.length - 2;
    if (isOpen) {
      place.holds = new Promise((resolve) => {
        release = resolve;
      });
      open = post(place, path, body);
      while (sim.ledger().length <= index) await new Promise(setImmediate);
    } else await post(place, path, body);
    const endedAt = isOpen ? startedAt + 60_000 : clock.now();
    const firstEventAt = isOpen ? startedAt + 200 : endedAt;
    sent.push({ body: JSON.stringify(body), startedAt, firstEventAt, endedAt, ...(model ? { model } : {}) });
  }
  release();
  await open;
  return { sent, read: sim.ledger().at(-1)?.read ?? -1 };
};

const scenes = [...deepseekScenes, ...dashscopeScenes, ...minimaxScenes, ...legacyScenes, ...geminiScenes];

for (const scene of scenes)
  test(`${scene.provider}: ${scene.name}: ${scene.cause.kind}`, async () => {
    const { sent, read } = await judge(scene);
    const xray = xrayChain(sent).steps.at(-1)?.xray;
    assert.deepEqual(
      { cause: xray?.cause, at: xray?.divergence?.path, read: xray?.tokens.read, lost: xray?.lost.tokens },
      { cause: scene.cause, at: scene.at, read: scene.read, lost: scene.lost },
    );
    assert.equal(read, scene.read, "what the simulator read");
  });
