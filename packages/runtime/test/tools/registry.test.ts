import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readArguments } from "@prefork/guard/internal";
import { contentTokens } from "@prefork/simulator";
import { InputError, type Json, type JsonObject } from "@prefork/wire";
import * as z from "zod";
import { FileClaims, relocateCall } from "../../src/children/workspace.ts";
import { builtInTools, createRegistry, defineTool, type Tool, withBlockingAgent } from "../../src/tools/index.ts";
import { registry } from "./tool-bench.ts";

const tool = (name: string, input: z.ZodType = z.strictObject({})): Tool =>
  defineTool({ name, description: "d", input, readOnly: true, run: async () => ({ content: "" }) });

const find = (name: string): Tool => {
  const found = registry.find(name);
  assert.ok(found, name);
  return found;
};

const reason = (name: string, args: Json): string => {
  const checked = registry.check(find(name), JSON.stringify(args));
  return checked.ok ? "ok" : checked.reason;
};

test("a duplicate name, or one that no provider accepts, is refused at registration", () => {
  assert.throws(() => createRegistry([tool("A"), tool("A")]), new InputError("there are two tools named A"));
  for (const name of ["", "a b", "ä", "x".repeat(65)])
    assert.throws(() => createRegistry([tool(name)]), { name: "InputError" });
  assert.throws(() => createRegistry([tool("A", z.string())]), /the input of A must be an object/);
});

test("a schema is JSON Schema without noise, with its properties in the author's order", () => {
  const input = z.object({
    zeta: z.int().optional().describe("a count"),
    "-a": z.enum(["x", "y"]).describe("one of two"),
    list: z.array(z.strictObject({ b: z.string(), a: z.boolean().default(true) })).min(1),
    free: z.record(z.string(), z.unknown()),
  });
  assert.equal(
    JSON.stringify(createRegistry([tool("A", input)]).specs),
    JSON.stringify([
      {
        type: "function",
        name: "A",
        description: "d",
        inputSchema: {
          type: "object",
          properties: {
            zeta: { type: "integer", description: "a count" },
            "-a": { type: "string", description: "one of two", enum: ["x", "y"] },
            list: {
              type: "array",
              minItems: 1,
              items: {
                type: "object",
                properties: { b: { type: "string" }, a: { type: "boolean", default: true } },
                required: ["b"],
                additionalProperties: false,
              },
            },
            free: { type: "object" },
          },
          required: ["-a", "list", "free"],
          additionalProperties: false,
        },
      },
    ]),
  );
});

test("valid input reaches the tool parsed and the guard as it was given", () => {
  const given = { file_path: "/a", limit: 3 };
  assert.deepEqual(registry.check(find("Read"), '{"file_path":"/a","limit":3}'), {
    ok: true,
    input: given,
    args: given,
  });
  const withDefault = tool("A", z.object({ n: z.int().default(7) }));
  assert.deepEqual(createRegistry([withDefault]).check(withDefault, " "), { ok: true, input: { n: 7 }, args: {} });
});

test("invalid input is refused in one line that names the key, what was expected and what was probably meant", () => {
  assert.equal(reason("Read", { file_pth: "/a" }), '"file_pth" is no argument of it, did you mean "file_path"?');
  assert.equal(
    reason("Read", { file_path: "/a", zzz: 1 }),
    '"zzz" is no argument of it, which takes file_path, offset, limit',
  );
  assert.equal(reason("Read", {}), '"file_path" is missing (text)');
  assert.equal(reason("Read", { file_path: null }), '"file_path" must be text, not null');
  assert.equal(reason("Read", { file_path: "/a", offset: "3" }), '"offset" must be a number, not text');
  assert.equal(reason("Read", { file_path: "/a", offset: 1.5 }), '"offset" must be a whole number, not a number');
  assert.equal(reason("Read", { file_path: "/a", limit: 0 }), '"limit" must be at least 1');
  assert.equal(reason("Bash", { command: "x", timeout: 600_001 }), '"timeout" must be at most 600000');
  assert.equal(reason("Bash", { command: "" }), '"command" must have at least 1 characters');
  assert.equal(
    reason("TaskOutput", { task_ids: [], wait: "both" }),
    '"task_ids" must have at least 1 entries; "wait" must be one of "none", "any", "all"',
  );
  assert.equal(
    reason("TodoWrite", { todos: [{ content: "a", status: "done", active: true }] }),
    '"todos[0].status" must be one of "pending", "in_progress", "completed"; in "todos[0]", "active" is not known',
  );
  assert.equal(reason("Edit", { file_path: "/a", edits: "x" }), '"edits" must be a list, not text');
});

test("input that is not an object, or that two parsers would read differently, is refused", () => {
  const check = (raw: string) => registry.check(find("Read"), raw);
  assert.deepEqual(check('{"file_path":'), { ok: false, reason: "the input is not valid JSON; give one JSON object" });
  assert.deepEqual(check("[]"), { ok: false, reason: "the input is not a JSON object; give one JSON object" });
  assert.deepEqual(check('{"file_path":"/a","file_path":"/b"}'), {
    ok: false,
    reason: 'the input is ambiguous: the key "file_path" is given twice',
  });
});

test("a wrong tool name is answered with the most similar one, or with all", () => {
  assert.equal(registry.advice("read"), "Did you mean Read?");
  assert.equal(registry.advice("MultiEdit"), "Did you mean Edit?");
  assert.equal(registry.advice("xyz"), `There are ${builtInTools.map(({ name }) => name).join(", ")}.`);
});

test("the built-in tools are sent with exactly these bytes", () => {
  const golden: unknown = JSON.parse(readFileSync(new URL("./golden/specs.json", import.meta.url), "utf8"));
  assert.equal(
    JSON.stringify(registry.specs, null, 2), // in key order, which deepEqual would not check
    JSON.stringify(golden, null, 2),
    "The tool list changed. It stands at the very front of every prefix: after this change each session that is resumed, " +
      "and each fork of a parent started before it, pays its whole context again at the write price. If that is meant, " +
      "write the new list to test/tools/golden/specs.json and say so in the changelog.",
  );
});

test("the built-in tools cost little: all under 4,000 tokens, Agent under 600", () => {
  const tokens = (value: unknown): number => {
    const text = JSON.stringify(value);
    return Math.max(contentTokens({ kind: "tool", text, images: 0, documents: 0 }), Buffer.byteLength(text) / 3.5);
  };
  assert.ok(tokens(registry.specs) < 4_000, String(tokens(registry.specs)));
  assert.ok(tokens(registry.specs.find(({ name }) => name === "Agent")) < 600);
});

/** An input with every argument that a tool has; for Edit both forms in turn. */
const FULL: Readonly<Record<string, readonly JsonObject[]>> = {
  Bash: [{ command: "ls", description: "lists", timeout: 5, run_in_background: true }],
  Read: [{ file_path: "/a", offset: 1, limit: 2 }],
  Edit: [
    { file_path: "/a", old_string: "a", new_string: "b", replace_all: true },
    { file_path: "/a", edits: [{ old_string: "a", new_string: "b", replace_all: false }] },
  ],
  Write: [{ file_path: "/a", content: "" }],
  Glob: [{ pattern: "*", path: "/a" }],
  Grep: [
    {
      ...{ pattern: "a", path: "/a", glob: "*.ts", type: "ts", output_mode: "content", head_limit: 3 },
      ...{ "-i": true, "-n": false, "-A": 1, "-B": 2, "-C": 3, multiline: true },
    },
  ],
  TodoWrite: [{ todos: [{ content: "a", status: "pending" }] }],
  Agent: [{ description: "a", prompt: "b", subagent_type: "Explore", isolation: "worktree" }],
  TaskOutput: [{ task_ids: ["a"], wait: "any", timeout_ms: 5 }],
  TaskStop: [{ task_id: "a" }],
  SendMessage: [{ to: "a", message: "b" }],
  McpCall: [{ server: "a", tool: "b", args: { deep: { er: [1] } } }],
  Skill: [{ name: "a", args: "b" }],
};

test("guard and registry accept the same arguments for every built-in tool", () => {
  const everyKey = [...new Set(Object.values(FULL).flatMap((inputs) => inputs.flatMap((each) => Object.keys(each))))];
  for (const { name, input } of builtInTools) {
    const inputs = FULL[name] ?? [];
    const schema = z.toJSONSchema(input).properties ?? {};
    assert.deepEqual(
      [...new Set(inputs.flatMap((each) => Object.keys(each)))].sort(),
      Object.keys(schema).sort(),
      name,
    );
    for (const args of inputs) {
      assert.deepEqual(reason(name, args), "ok", name);
      assert.deepEqual(readArguments({ tool: name, args }).ok, true, name);
      // What the schema does not know reaches neither the guard nor the tool.
      for (const key of [...everyKey, "context", "cwd", "file"])
        if (!(key in schema))
          assert.match(reason(name, { ...args, [key]: "x" }), new RegExp(`^"${key}" is no argument`));
    }
  }
});

test("arguments that would cost a fork its parent's cache are refused with the reason, and blocking calls accept run_in_background", () => {
  const asked = { description: "a", prompt: "b" };
  for (const key of ["model", "effort", "tools"])
    assert.match(
      reason("Agent", { ...asked, [key]: "x" }),
      new RegExp(`^"${key}" is no argument of it: a fork shares`),
    );
  assert.match(reason("Agent", { ...asked, run_in_background: true }), /reports by a task notification; leave it out/);
  const waiting = createRegistry(withBlockingAgent(builtInTools));
  const tool = waiting.find("Agent");
  assert.ok(tool);
  assert.ok(waiting.check(tool, JSON.stringify({ ...asked, run_in_background: true })).ok);
  assert.ok(!waiting.check(tool, JSON.stringify({ ...asked, model: "x" })).ok);
});

test("one envelope around all arguments is removed if the tool has no such argument, and everything else is refused", () => {
  const free = defineTool({
    ...tool("Free"),
    schema: { type: "object" },
    input: z.looseObject({}),
  });
  const own = createRegistry([
    tool("Own", z.strictObject({ input: z.looseObject({}).optional() })),
    free,
    tool("None"),
  ]);
  const unwrapped = (from: typeof registry, name: string, args: Json): Json => {
    const found = from.find(name);
    assert.ok(found);
    return JSON.parse(from.unwrap(found, JSON.stringify(args))) as Json;
  };
  const file = { file_path: "/a" };
  assert.deepEqual(unwrapped(registry, "Read", { arguments: file }), file);
  assert.deepEqual(unwrapped(registry, "Read", { input: file }), file);
  assert.deepEqual(unwrapped(own, "None", { input: {} }), {});
  const kept: readonly (readonly [typeof registry, string, Json])[] = [
    [registry, "Read", { arguments: file, file_path: "/b" }],
    [registry, "Read", { arguments: [file] }],
    [registry, "Read", { arguments: JSON.stringify(file) }],
    [registry, "Read", { params: file }],
    [registry, "Read", { Arguments: file }],
    [own, "Own", { input: file }],
    [own, "Free", { input: file }],
  ];
  for (const [from, name, args] of kept) assert.deepEqual(unwrapped(from, name, args), args);
  // One level, and no duplicate key.
  assert.deepEqual(unwrapped(registry, "Read", { input: { arguments: file } }), { arguments: file });
  const twice = '{"arguments":{"file_path":"/a","file_path":"/b"}}';
  assert.equal(registry.unwrap(find("Read"), twice), twice);
});

test("every built-in tool declares what it touches", () => {
  const calls: Readonly<Record<string, JsonObject>> = {
    Bash: { command: "make" },
    Read: { file_path: "/a" },
    Edit: { file_path: "/a", old_string: "x", new_string: "y" },
    Write: { file_path: "/a", content: "/b" },
    Glob: { pattern: "*.ts" },
    Grep: { pattern: "x", path: "/b" },
    TodoWrite: { todos: [] },
    Agent: { description: "part", prompt: "do it" },
    TaskOutput: { task_ids: ["task-1"], wait: "none" },
    TaskStop: { task_id: "task-1" },
    SendMessage: { to: "task-1", message: "hello" },
    McpCall: { server: "files", tool: "list", args: {} },
    Skill: { name: "review" },
  };
  const { touches, tools } = createRegistry(builtInTools);
  assert.deepEqual(
    Object.fromEntries(tools.map(({ name }) => [name, touches({ name, input: JSON.stringify(calls[name]) })])),
    {
      Bash: { runs: ["make"] },
      Read: { reads: ["/a"] },
      Edit: { writes: ["/a"] },
      Write: { writes: ["/a"] },
      Glob: { reads: ["."] },
      Grep: { reads: ["/b"] },
      ...{ TodoWrite: {}, Agent: {}, TaskOutput: {}, TaskStop: {}, SendMessage: {}, Skill: {} },
      McpCall: { reaches: ["mcp__files__list"] },
    },
  );
});

test("a tool whose declaration throws or is not a list of strings may touch anything", () => {
  const odd: readonly Tool["touches"][] = [
    undefined,
    () => {
      throw new Error("no");
    },
    () => ({ writes: "/a" }) as never,
    () => ({ reads: [1] }) as never,
    () => undefined as never,
    () => null as never,
  ];
  const declared = odd.map((touches) => {
    const tool = {
      name: "Own",
      description: "",
      input: z.object({}),
      readOnly: true,
      run: async () => ({ content: "" }),
    };
    const { touches: ask } = createRegistry([{ ...tool, ...(touches ? { touches } : {}) }]);
    return ask({ name: "Own", input: "{}" });
  });
  assert.deepEqual(declared, Array(odd.length).fill(undefined));
});

test("a call into the checkout is redirected to the worktree by the argument that names the path, and no other", () => {
  const { touches } = createRegistry(builtInTools);
  const moved = (name: string, args: JsonObject) =>
    relocateCall({ name, input: JSON.stringify(args) }, { from: "/repo", to: "/copy" }, touches)?.input;
  assert.equal(
    moved("Write", { content: "/repo/a", file_path: "/repo/a" }),
    JSON.stringify({ content: "/repo/a", file_path: "/copy/a" }),
  );
  assert.equal(moved("Grep", { pattern: "/repo", path: "/repo" }), JSON.stringify({ pattern: "/repo", path: "/copy" }));
  assert.equal(moved("Read", { file_path: "/elsewhere/a" }), undefined);
  assert.equal(moved("Bash", { command: "/repo/a" }), undefined);
});

test("one child at a time writes a file; claiming a folder claims everything below it", () => {
  const claims = new FileClaims();
  const take = (task: string, ...writes: readonly string[]) =>
    claims.take({ writes }, { task, label: "part", cwd: "/none" });
  assert.equal(take("one", "a.ts", "dist/"), undefined);
  assert.equal(take("one", "a.ts"), undefined);
  assert.deepEqual(take("other", "b.ts", "a.ts"), { task: "one", label: "part", path: "/none/a.ts" });
  assert.deepEqual(take("other", "dist/main.js"), { task: "one", label: "part", path: "/none/dist/main.js" });
  assert.equal(take("other", "b.ts", "distant.ts"), undefined, "what was refused has claimed nothing");
  assert.deepEqual(take("one", "./"), { task: "other", label: "part", path: "/none/" });
  claims.release("one");
  assert.equal(take("other", "dist/"), undefined);
});

test("input with very many wrong arguments is refused in linear time", () => {
  const tool = registry.find("Edit");
  assert.ok(tool);
  const keys = Array.from({ length: 20_000 }, (_, at) => [`k${at}`, 1] as const);
  const args = { file_path: "/a", ...Object.fromEntries(keys), edits: keys.map(() => 1) };
  assert.equal(registry.check(tool, JSON.stringify(args)).ok, false);
});
