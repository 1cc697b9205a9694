/** Which model servers answer on this machine: Ollama, vLLM, llama.cpp?
 *  Invariant: only loopback addresses are asked, each once, for its list of models; no key and no cookie is sent; a server
 *  that is slow, redirects, or answers anything but a list of models does not count.
 *  Elsewhere: the formats they speak (@prefork/wire), when they are looked for (first-run.ts). */

import { request } from "node:http";

export type LocalEngine = {
  /** For --provider. */
  readonly provider: string;
  readonly title: string;
  /** Set if it is not at its usual address. */
  readonly baseUrl?: string;
  readonly models: readonly string[];
};

export type EngineAddress = Pick<LocalEngine, "provider" | "title" | "baseUrl"> & {
  readonly port: number;
  /** Whom its models belong to, as far as its servers say. */
  readonly owner: RegExp;
};

const PATIENCE_MS = 300;
const MAX_BYTES = 256_000;
const MAX_MODELS = 20;
const LOOPBACK = "127.0.0.1";
/** A name that needs no quotes in a shell. */
const MODEL = /^[\w./:@+-]{1,100}$/;

/** Where they usually are. OLLAMA_HOST is Ollama's own variable; an address that is not on this machine is not asked. */
export const engineAddresses = (env: Readonly<Record<string, string | undefined>>): readonly EngineAddress[] => {
  const port = ollamaPort(env.OLLAMA_HOST ?? "");
  const moved = port === undefined ? {} : { baseUrl: `http://${LOOPBACK}:${port}/v1` };
  return [
    { provider: "ollama", title: "Ollama", port: port ?? 11_434, owner: /^(?!vllm$|llamacpp$)/, ...moved },
    { provider: "vllm", title: "vLLM", port: 8_000, owner: /^vllm$/ },
    { provider: "llama.cpp", title: "llama.cpp", port: 8_080, owner: /^llamacpp$/ },
  ];
};

/** `127.0.0.1:1234`, `http://localhost:1234`, `:1234`. Undefined: the usual one. */
const ollamaPort = (host: string): number | undefined => {
  const found = /^(?:http:\/\/)?(?:127\.0\.0\.1|localhost|0\.0\.0\.0|\[::1?\])?:(\d{1,5})\/?$/.exec(host.trim());
  const port = Number(found?.[1]);
  return found && port > 0 && port < 65_536 ? port : undefined;
};

export const findLocalEngines = async (addresses: readonly EngineAddress[]): Promise<readonly LocalEngine[]> => {
  const found = await Promise.all(
    addresses.map(async ({ port, owner, ...engine }): Promise<readonly LocalEngine[]> => {
      const models = modelsIn(await fetchModels(port), owner);
      return models.length === 0 ? [] : [{ ...engine, models }];
    }),
  );
  return found.flat();
};

/** The body; empty if there is no answer in time. */
const fetchModels = (port: number): Promise<string> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const asked = request({ host: LOOPBACK, port, path: "/v1/models", agent: false }, (response) => {
      if (response.statusCode !== 200) return end();
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_BYTES) return end();
        chunks.push(chunk);
      });
      response.on("end", () => end(Buffer.concat(chunks).toString("utf8")));
      response.on("error", () => end());
    });
    const timer = setTimeout(() => end(), PATIENCE_MS);
    const end = (body = ""): void => {
      clearTimeout(timer);
      asked.destroy();
      resolve(body);
    };
    asked.on("error", () => end());
    asked.end();
  });

/** Other programs use these ports too, so a list counts only if it looks like this engine's. */
const modelsIn = (body: string, owner: RegExp): readonly string[] => {
  const list = fieldOf(parse(body), "data");
  return (Array.isArray(list) ? list : [])
    .flatMap((model: unknown) => {
      const [id, by] = [fieldOf(model, "id"), fieldOf(model, "owned_by")];
      return typeof id === "string" && MODEL.test(id) && typeof by === "string" && owner.test(by) ? [id] : [];
    })
    .slice(0, MAX_MODELS);
};

const parse = (body: string): unknown => {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
};

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
