/** How soon does `prefork` show its input line, and how much CPU passes until a prompt's request is sent?
 *  Invariant: the built program runs in a real terminal device; Node itself and a raw client are measured in the same
 *  rounds; CPU is read from the kernel at the moment the request arrives.
 *  Elsewhere: the screen while it runs (index.ts). */

import { spawn as spawnPlain } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { spawn } from "@lydell/node-pty";
import { type Extent, median } from "../measure.ts";
import { makeScratch } from "../scratch.ts";
import type { Finding } from "../table.ts";

const PREFORK = fileURLToPath(new URL("../../packages/cli/bin/prefork.js", import.meta.url));
/** A clock tick of the kernel's accounting. */
const TICKS_PER_MS = 0.1;

/** Milliseconds of CPU that the process has used. */
const cpuOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_MS;
};

type Opened = { readonly paintMs: number };

const environment = (home: string, url: string): Record<string, string> => ({
  ...{ PATH: process.env.PATH ?? "", HOME: home, TERM: "xterm-256color", LANG: "C.UTF-8" },
  ...{ ANTHROPIC_API_KEY: "any", ANTHROPIC_BASE_URL: url },
});

/** From the start of the process until a typed letter is on the input line. */
const measurePaint = (home: string, url: string): Promise<Opened> =>
  new Promise((resolve, reject) => {
    const started = performance.now();
    const pty = spawn(process.execPath, [PREFORK], { cols: 80, rows: 24, cwd: home, env: environment(home, url) });
    let [output, isTyped] = ["", false];
    const timer = setTimeout(() => reject(new Error(`no first frame: ${output.slice(-300)}`)), 30_000);
    pty.onData((data) => {
      output += data;
      if (!isTyped && output.includes("─".repeat(40))) {
        isTyped = true;
        output = "";
        pty.write("x");
      } else if (isTyped && output.includes("x")) {
        clearTimeout(timer);
        resolve({ paintMs: performance.now() - started });
        pty.kill("SIGKILL");
      }
    });
  });

/** Receives one request and says which process sent it. */
const openServer = async (onRequest: () => void): Promise<Server> => {
  const server = createServer((request, response) => {
    onRequest();
    request.resume();
    response.writeHead(500).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
};

const RAW = `fetch(process.argv[1] + "/v1/messages", { method: "POST", body: JSON.stringify({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "hello there" }] }) }).catch(() => {});`;

const measureRequest = async (
  start: (url: string) => { readonly pid: number; readonly kill: () => void },
): Promise<number> => {
  const arrived = Promise.withResolvers<number>();
  const running: { pid?: number } = {};
  await using server = await openServer(() =>
    arrived.resolve(running.pid === undefined ? Number.NaN : cpuOf(running.pid)),
  );
  const { port } = server.address() as AddressInfo;
  const child = start(`http://127.0.0.1:${port}`);
  running.pid = child.pid;
  const timer = setTimeout(() => arrived.reject(new Error("no request arrived")), 30_000);
  try {
    return await arrived.promise;
  } finally {
    clearTimeout(timer);
    child.kill();
    server.closeAllConnections();
  }
};

export const measureStart = async (
  { rounds }: Pick<Extent, "rounds">,
  report: (step: string) => void,
): Promise<readonly Finding[]> => {
  const times = Math.max(3, Math.round(rounds / 4));
  report(`starts: ${times} rounds`);
  await using scratch = await makeScratch();
  const home = join(scratch.path, "home");
  await mkdir(home);
  const [paints, nodes, prompts, raws]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (let round = -1; round < times; round++) {
    const node = await timeOf(() => spawnPlain(process.execPath, ["-e", "0"], { stdio: "ignore" }));
    const { paintMs } = await measurePaint(home, "http://127.0.0.1:9");
    const prompt = await measureRequest((url) => {
      const pty = spawn(process.execPath, [PREFORK, "hello there"], {
        cols: 80,
        rows: 24,
        cwd: home,
        env: environment(home, url),
      });
      return { pid: pty.pid, kill: () => pty.kill("SIGKILL") };
    });
    const raw = await measureRequest((url) => {
      const child = spawnPlain(process.execPath, ["-e", RAW, url], { stdio: "ignore" });
      return { pid: child.pid ?? 0, kill: () => void child.kill("SIGKILL") };
    });
    if (round < 0) continue; // fills the code cache
    nodes.push(node);
    paints.push(paintMs);
    prompts.push(prompt);
    raws.push(raw);
  }
  return [
    {
      ...{
        group: "terminal",
        figure: "prefork until a typed key is shown",
        ours: { value: median(paints), unit: "ms" },
      },
      against: { name: "node -e 0", amount: { value: median(nodes), unit: "ms" } },
      limit: { of: "ratio", is: "at most", value: 5 },
    },
    {
      ...{
        group: "terminal",
        figure: "CPU until a prompt's first request",
        ours: { value: median(prompts), unit: "ms" },
      },
      against: { name: "raw client", amount: { value: median(raws), unit: "ms" } },
      limit: { of: "ratio", is: "at most", value: 2.5 },
    },
  ];
};

const timeOf = async (start: () => ReturnType<typeof spawnPlain>): Promise<number> => {
  const started = performance.now();
  const child = start();
  await new Promise((resolve) => child.once("exit", resolve));
  return performance.now() - started;
};
