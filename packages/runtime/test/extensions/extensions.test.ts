/** The extension contract: what an extension adds, what its hooks may do, and what none of them can. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { configurationOf } from "@prefork/guard";
import { callTools, say, toolResults } from "@prefork/simulator";
import type { JsonObject } from "@prefork/wire";
import fc from "fast-check";
import * as z from "zod";
import {
  defineTool,
  type Extension,
  type Hooks,
  type Question,
  type RuntimeEvent,
  skills,
  type Tool,
} from "../../src/index.ts";
import { type ExtensionSources, readExtensions } from "../../src/internal.ts";
import { followed, type Ground, openGround, reopened, unasked } from "../session/fault-ground.ts";

const adder = (name = "Add"): Tool =>
  defineTool({
    name,
    description: "Adds up.",
    input: z.strictObject({ a: z.number(), b: z.number() }),
    readOnly: true,
    touches: () => ({}),
    run: async ({ a, b }) => ({ content: String(a + b) }),
  });

const bodies = (ground: Ground): readonly { tools: readonly JsonObject[]; messages: readonly JsonObject[] }[] =>
  ground.simulator.requests().map(({ body }) => JSON.parse(body.toString("utf8")));

const results = (events: readonly RuntimeEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === "call_ended" ? [`${event.fault ?? "ok"}: ${event.text}`] : []));

const failures = (events: readonly RuntimeEvent[]): readonly string[] =>
  events.flatMap((event) =>
    event.type === "hook_failed" ? [`${event.extension}.${event.hook}: ${event.reason}`] : [],
  );

test("an extension adds tools and a section, and is notified of what happens", async () => {
  await using ground = await openGround({ sum: callTools([{ name: "Add", input: { a: 2, b: 3 } }]) });
  const heard: string[] = [];
  const mine: Extension = {
    name: "mine",
    tools: [adder()],
    sections: [{ name: "house", text: "Count with Add." }],
    on: {
      sessionOpened: ({ resumed }) => void heard.push(`opened, ${resumed ? "resumed" : "new"}`),
      promptEntered: ({ text }) => {
        heard.push(`prompt ${text}`);
        return { note: "it is <note>late</note>" };
      },
      beforeCall: ({ agent, tool, args, touches }) =>
        void heard.push(`before ${agent} ${tool} ${JSON.stringify(args)} ${JSON.stringify(touches)}`),
      afterCall: ({ tool, text }) => {
        heard.push(`after ${tool} ${text}`);
        return { note: "checked" };
      },
      exchangeEnded: ({ end, turns }) => void heard.push(`ended ${end} after ${turns}`),
      sessionClosed: () => void heard.push("closed"),
    },
  };
  const session = await ground.open({ extensions: [mine, skills([])], permissions: { ...unasked, mode: "default" } });
  const { events } = await followed(session.prompt("sum"));
  await session.close();
  assert.deepEqual(results(events), ["ok: 5\n[mine: checked]"]);
  const [first] = bodies(ground);
  const content = JSON.stringify(first?.messages[0]);
  assert.match(content, /<section name=\\"house\\">\\nCount with Add\./);
  assert.match(content, /<note kind=\\"reminder\\">mine: it is &(?:amp;)*lt;note>late/);
  assert.equal(first?.tools.at(-1)?.name, "Add");
  assert.deepEqual(heard, [
    "opened, new",
    "prompt sum",
    'before main Add {"a":2,"b":3} {}',
    "after Add 5",
    "ended done after 2",
    "closed",
  ]);
});

test("a fork and its end are reported to extensions, and a child's calls go through their hooks", async () => {
  await using ground = await openGround((request) =>
    JSON.stringify(request.body.messages).includes("fork-directive") && toolResults(request).length === 0
      ? callTools([{ name: "Add", input: { a: 1, b: 1 } }])
      : say("Scope: part\nResult: done"),
  );
  const heard: string[] = [];
  const on: Hooks = {
    forkStarted: ({ label, parent }) => void heard.push(`${parent} started ${label}`),
    taskEnded: ({ end }) => void heard.push(`it ${end}`),
    beforeCall: ({ agent }) => void heard.push(agent.startsWith("task-") ? "a call of the child" : agent),
  };
  const session = await ground.open({ extensions: [{ name: "mine", tools: [adder()], on }] });
  await session.prompt("begin").result();
  await session.fork({ prompt: "part", label: "part" }).result();
  await session.close();
  assert.deepEqual(heard, ["main started part", "a call of the child", "it reported"]);
});

const files = (ground: Ground): { readonly a: string; readonly b: string } => ({
  a: `${ground.work}/a.txt`,
  b: `${ground.work}/b.txt`,
});

test("a beforeCall hook can deny a call, have a person asked, or change what is executed", async () => {
  await using ground = await openGround((request) => {
    const { a } = files(ground);
    return toolResults(request).length > 0
      ? say("seen")
      : callTools([{ name: "Write", input: { file_path: a, content: "by the model" } }]);
  });
  const { a, b } = files(ground);
  const asked: Question[] = [];
  const run = async (beforeCall: Hooks["beforeCall"], answer: "allow" | "deny" = "allow") => {
    await using session = await ground.open({
      extensions: [{ name: "mine", on: { ...(beforeCall ? { beforeCall } : {}) } }],
      permissions: {
        mode: "accept-edits",
        ask: async (question) => {
          asked.push(question);
          return { kind: answer };
        },
      },
    });
    return (await followed(session.prompt("write"))).events;
  };
  const denied = await run(() => ({ kind: "deny", reason: "not on Mondays" }));
  assert.deepEqual(results(denied), ["denied: Not allowed: mine: not on Mondays"]);

  const refused = await run(() => ({ kind: "ask", reason: "is it meant?" }), "deny");
  assert.deepEqual(results(refused), ["denied: Not allowed: the user said no"]);
  assert.deepEqual(
    asked.map(({ reason, tool, touches }) => ({ reason, tool, touches })),
    [{ reason: "mine: is it meant?", tool: "Write", touches: { writes: [a] } }],
  );

  const changed = await run(() => ({ kind: "change", args: { file_path: b, content: "by the hook" } }));
  const note = `[mine changed this call; it ran with ${JSON.stringify({ file_path: b, content: "by the hook" })}]`;
  assert.deepEqual(results(changed), [`ok: ${note}\nMade ${b} (1 line).`]);
  assert.equal(readFileSync(b, "utf8"), "by the hook");
  assert.throws(() => readFileSync(a));
  const sent = bodies(ground)
    .at(-1)
    ?.messages.find(({ role }) => role === "assistant");
  assert.match(JSON.stringify(sent), /by the model/, "the model's own words stay");

  const outside = await run(() => ({ kind: "change", args: { file_path: "/etc/nowhere", content: "" } }), "deny");
  assert.deepEqual(results(outside), ["denied: Not allowed: the user said no"], "what it changes is judged again");
  const wrong = await run(() => ({ kind: "change", args: { path: b } }));
  assert.match(
    results(wrong)[0] ?? "",
    /^denied: Not allowed: mine changed its arguments into some that Write does not/,
  );
});

test("every extension agrees to the arguments that run, no matter which one changed them and in which order", async () => {
  await using ground = await openGround((request) =>
    toolResults(request).length > 0 ? say("seen") : callTools([{ name: "Write", input: write(files(ground).a) }]),
  );
  const { b } = files(ground);
  const write = (path: string): JsonObject => ({ file_path: path, content: "" });
  const seen: string[] = [];
  const watching: Extension = {
    name: "watching",
    on: {
      beforeCall: ({ args, touches }) => {
        seen.push(`${args.file_path} ${touches?.writes}`.replaceAll(`${ground.work}/`, ""));
        return touches?.writes?.includes(b) ? { kind: "deny", reason: "not there" } : undefined;
      },
    },
  };
  const moving = (name: string, path: string): Extension => ({
    name,
    on: { beforeCall: ({ args }) => (args.file_path === path ? undefined : { kind: "change", args: write(path) }) },
  });
  const run = async (...extensions: readonly Extension[]): Promise<readonly string[]> => {
    await using session = await ground.open({ extensions });
    return results((await followed(session.prompt("write"))).events);
  };
  const denied = ["denied: Not allowed: watching: not there"];
  assert.deepEqual(await run(watching, moving("moving", b)), denied);
  assert.deepEqual(await run(moving("moving", b), watching), denied);
  assert.deepEqual(seen, ["a.txt a.txt", "b.txt b.txt", "b.txt b.txt"]);
  assert.deepEqual(await run(moving("one", b), moving("other", `${ground.work}/c.txt`)), [
    "denied: Not allowed: one, other do not agree about the arguments of the call",
  ]);
});

test("with nobody to ask, a call that an extension wants asked about is denied", async () => {
  await using ground = await openGround({ sum: callTools([{ name: "Add", input: { a: 1, b: 1 } }]) });
  const on: Hooks = { beforeCall: () => ({ kind: "ask", reason: "hm" }) };
  await using session = await ground.open({ extensions: [{ name: "mine", tools: [adder()], on }] });
  const { events } = await followed(session.prompt("sum"));
  assert.deepEqual(results(events), ["denied: Not allowed: mine: hm; there is nobody to ask"]);
});

test("a hook that throws, hangs or returns something odd is reported; only the call that it should judge is denied", async () => {
  await using ground = await openGround({ sum: callTools([{ name: "Add", input: { a: 1, b: 1 } }]) });
  const never = new Promise<never>(() => {});
  const odd: Hooks = {
    promptEntered: () => "no note" as never,
    afterCall: () => never,
    exchangeEnded: () => Promise.reject(new Error("late")),
  };
  const strict: Hooks = { beforeCall: () => ({ kind: "allow" }) as never };
  const run = async (on: Hooks) => {
    await using session = await ground.open({
      extensions: [{ name: "odd", tools: [adder()], on }],
      extensionTimes: { hookMs: 20 },
    });
    const reader = session.events();
    const { events } = await followed(session.prompt("sum"));
    await session.close();
    const all: RuntimeEvent[] = [];
    for await (const event of reader) all.push(event);
    return { results: results(events), failures: failures(all) };
  };
  assert.deepEqual(await run(odd), {
    results: ["ok: 2"],
    failures: [
      "odd.promptEntered: it returned something other than a note",
      "odd.afterCall: took longer than 20 ms",
      "odd.exchangeEnded: late",
    ],
  });
  const reason = "it returned something other than a verdict";
  assert.deepEqual(await run(strict), {
    results: [`denied: Not allowed: odd could not judge the call: ${reason}`],
    failures: [`odd.beforeCall: ${reason}`],
  });
});

test("an extension that cannot be opened, or adds a tool that already exists, is skipped with a warning", async () => {
  await using ground = await openGround();
  const broken: Extension = { name: "broken", open: () => Promise.reject(new Error("no such thing")) };
  const twin: Extension = { name: "twin", open: async () => ({ tools: [adder("Read")] }) };
  await using session = await ground.open({ extensions: [broken, twin, { name: "mine", tools: [adder()] }] });
  const reader = session.events();
  assert.equal((await session.prompt("hello").result()).end, "done");
  await session.close();
  const skipped: string[] = [];
  for await (const event of reader)
    if (event.type === "extension_skipped") skipped.push(`${event.level} ${event.extension}: ${event.reason}`);
  assert.deepEqual(skipped, ["warn broken: no such thing", "warn twin: there is another tool named Read"]);
  await assert.rejects(ground.open({ extensions: [{ name: "a" }, { name: "a" }] }), {
    name: "InputError",
    message: "there are two extensions named a",
  });
});

test("a resumed session continues with the bytes that it had, whatever extensions it has by now", async () => {
  await using ground = await openGround();
  const section = { name: "house", text: "old" };
  const session = await ground.open({ extensions: [{ name: "mine", tools: [adder()], sections: [section] }] });
  await session.prompt("one").result();
  await session.close();
  await using again = await reopened(ground, session.id, {
    extensions: [{ name: "other", tools: [adder("Sum")], sections: [{ name: "house", text: "new" }] }],
  });
  await again.prompt("two").result();
  const [before, after] = bodies(ground);
  assert.deepEqual(after?.tools, before?.tools);
  assert.equal(withoutMarkers(after?.messages[0]), withoutMarkers(before?.messages[0]));
});

// --- a user's own modules ------------------------------------------------------------------------------------------------

const GOOD = `
import { answer } from "./parts/answer.ts";
import { platform } from "node:os";
export default (api: { readonly z: typeof import("zod"); readonly defineTool: (tool: object) => object }) => ({
  name: "counter",
  tools: [
    api.defineTool({
      name: "Count",
      description: "Counts.",
      input: api.z.strictObject({ to: api.z.number() }),
      readOnly: true,
      touches: () => ({}),
      run: async ({ to }: { readonly to: number }) => ({ content: \`\${answer} \${to} \${typeof platform()}\` }),
    }),
  ],
  sections: [{ name: "counting", text: "Use Count." }],
});
`;

/** The outcome for each of the user's modules: its name, or why it is skipped. */
const opened = async (ground: Ground, places: Partial<ExtensionSources>): Promise<readonly string[]> => {
  const extensions = await readExtensions({ project: ground.work, trusted: false, settings: [], ...places });
  await using session = await ground.open({ extensions });
  const reader = session.events();
  const { events } = await followed(session.prompt("count"));
  await session.close();
  const skipped: string[] = [];
  for await (const event of reader)
    if (event.type === "extension_skipped") skipped.push(`${event.extension}: ${event.reason}`);
  return [...results(events), ...skipped].map((line) => line.replaceAll(ground.folder.at("."), ""));
};

const COUNTING = { count: callTools([{ name: "Count", input: { to: 3 } }]) };

test("a module in the user's settings adds a tool; it imports from its folder and from node:", async () => {
  await using ground = await openGround(COUNTING);
  ground.folder.put("own/count.ts", GOOD);
  ground.folder.put("own/parts/answer.ts", 'export const answer: string = "up to";\n');
  assert.deepEqual(await opened(ground, { settings: [ground.folder.at("own/count.ts")] }), ["ok: up to 3 string"]);
});

test("a module that cannot be used is reported with the reason, and the session opens without it", async () => {
  await using ground = await openGround(COUNTING);
  const put = (name: string, text: string): string => ground.folder.put(`own/${name}`, text);
  ground.folder.put("outside.mjs", "export const value = 1;\n");
  const returning = (value: string): string => `export default () => (${value});\n`;
  const files = [
    ground.folder.at("own/missing.ts"),
    put("notes.md", "no module"),
    put("syntax.mjs", "export default ((;\n"),
    put("throws.mjs", 'throw new RangeError("too much");\n'),
    put("nothing.mjs", "export const x = 1;\n"),
    put("leaves.mjs", 'import { value } from "../outside.mjs";\nexport default () => ({ name: "leaves", value });\n'),
    put("package.mjs", 'import zod from "zod";\nexport default () => zod;\n'),
    put("later.mjs", 'export default async () => import("../outside.mjs");\n'),
    put("list.mjs", returning("[]")),
    put("field.mjs", returning('{ name: "field", agents: [] }')),
    put("hook.mjs", returning('{ name: "hook", on: { beforeTool: () => {} } }')),
    put("tool.mjs", returning('{ name: "tool", tools: [{ name: "X", description: "", readOnly: true, run() {} }] }')),
    put("once.mjs", returning('{ name: "same" }')),
    put("twice.mjs", returning('{ name: "same" }')),
  ];
  const outcome = await opened(ground, { settings: files });
  const outside = "which is outside /own; only its own folder and node: are allowed";
  assert.deepEqual(
    outcome.slice(1).filter((line) => !line.startsWith("/own/syntax.mjs: ")),
    [
      "/own/missing.ts: there is no such file",
      "/own/notes.md: its name must end in .ts, .mts, .js or .mjs",
      "/own/throws.mjs: RangeError: too much",
      "/own/nothing.mjs: TypeError: its default export must be a function (api) => extension",
      `/own/leaves.mjs: leaves.mjs imports ../outside.mjs, ${outside}`,
      `/own/package.mjs: package.mjs imports zod, ${outside}`,
      `/own/later.mjs: later.mjs imports ../outside.mjs, ${outside}`,
      "/own/list.mjs: TypeError: what it returns must be an object",
      "/own/field.mjs: TypeError: agents is not a field of an extension; the fields are name, tools, sections, on, open",
      "/own/hook.mjs: TypeError: on.beforeTool is not a hook; the hooks are beforeCall, afterCall, promptEntered, beforeCompaction, sessionOpened, exchangeEnded, forkStarted, taskEnded, sessionClosed",
      "/own/tool.mjs: TypeError: tools[0].input must be a schema, as api.z.object makes it",
      "same: there is another extension named same",
    ],
  );
  assert.match(outcome[0] ?? "", /^unknown-tool: There is no tool Count\./);
  assert.match(outcome.find((line) => line.startsWith("/own/syntax.mjs: ")) ?? "", /SyntaxError/);
});

test("modules of a folder are used once it is trusted, with exactly the bytes that were trusted", async () => {
  await using ground = await openGround(COUNTING);
  const folder = ".prefork/extensions";
  ground.folder.put(`work/${folder}/count.ts`, GOOD);
  ground.folder.put(`work/${folder}/parts/answer.ts`, 'export const answer = "at most";\n');
  const unknown = (await opened(ground, {})).join();
  assert.match(unknown, /^unknown-tool: There is no tool Count\./);

  const read = await configurationOf(ground.work);
  assert.ok(read.ok);
  const { entries } = read.configuration;
  assert.deepEqual(Object.keys(entries), [`${folder}/count.ts`, `${folder}/parts/answer.ts`]);
  assert.deepEqual(await opened(ground, { trusted: true, entries }), ["ok: at most 3 string"]);
});

test("a file of a trusted folder that has changed since is not loaded", async () => {
  await using ground = await openGround();
  const file = ground.folder.put(
    "work/.prefork/extensions/deep/index.mjs",
    'export default () => ({ name: "deep" });\n',
  );
  const read = await configurationOf(ground.work);
  assert.ok(read.ok);
  const { entries } = read.configuration;
  writeFileSync(file, 'export default () => ({ name: "other" });\n');
  const [line] = await opened(ground, { trusted: true, entries });
  assert.equal(
    line,
    "/work/.prefork/extensions/deep/index.mjs: .prefork/extensions/deep/index.mjs has changed since you trusted it; review it, then trust the folder again: prefork trust",
  );
});

test("an extensions folder that is a link runs nothing, whatever else was trusted at its target", async () => {
  await using ground = await openGround();
  const text = 'export default () => ({ name: "linked" });\n';
  const file = ground.folder.put("work/elsewhere/linked.mjs", text);
  ground.folder.put("work/elsewhere/extensions/linked.mjs", text);
  execFileSync("git", ["-C", ground.work, "init", "-q"]);
  execFileSync("git", ["-C", ground.work, "config", "includeIf.gitdir:/nowhere/.path", file]);
  const refused = "/work/.prefork/extensions: it is a link, or behind one; only a plain folder is loaded";
  mkdirSync(join(ground.work, ".prefork"));
  for (const [link, target] of [
    [".prefork/extensions", dirname(file)],
    [".prefork", dirname(file)],
  ] as const) {
    rmSync(join(ground.work, link), { recursive: true, force: true });
    symlinkSync(target, join(ground.work, link));
    const read = await configurationOf(ground.work);
    assert.ok(read.ok);
    assert.match(JSON.stringify(read.configuration.entries), /elsewhere\/linked\.mjs":"included /);
    assert.deepEqual(await opened(ground, { trusted: true, entries: read.configuration.entries }), [refused]);
  }
});

test("a file that a rule denies does not come to the provider as a part of the conventions", async () => {
  await using ground = await openGround();
  ground.folder.put("work/AGENTS.md", "House rules. See @secrets/prod.txt and @docs/style.md");
  ground.folder.put("work/secrets/prod.txt", "the password");
  ground.folder.put("work/docs/style.md", "short lines");
  await using session = await ground.open({ permissions: { deny: ["Read(./secrets/**)"], mode: "bypass" } });
  await followed(session.prompt("hello"));
  const sent = JSON.stringify(bodies(ground));
  assert.match(sent, /House rules[\s\S]*short lines/);
  assert.doesNotMatch(sent, /the password/);
});

// --- the law -----------------------------------------------------------------------------------------------------------

const withoutMarkers = (value: unknown): string =>
  JSON.stringify(value, (key, inner) => (key === "cache_control" ? undefined : inner));

const ODD: readonly unknown[] = [
  undefined,
  null,
  0,
  "text",
  [],
  { note: 1 },
  { kind: "allow" },
  { kind: "change", args: 7 },
];

/** What a hook does, each time it is called. */
const action = fc.oneof(
  fc.constant("throw" as const),
  fc.record({ note: fc.string({ maxLength: 40 }) }),
  fc.constantFrom(...ODD),
  fc.constant({ kind: "deny", reason: "no" }),
  fc.constant({ kind: "change", args: { a: 40, b: 2 } }),
);

test("after the first request nothing done through the contract changes an earlier byte", async () => {
  await using ground = await openGround((request) =>
    toolResults(request).length > 0 ? say("and so on") : callTools([{ name: "Add", input: { a: 1, b: 1 } }]),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 9 }), async (actions) => {
      const from = ground.simulator.requests().length;
      const tools: { name: string; description: string }[] = [adder() as never];
      const sections = [{ name: "house", text: "as it was" }];
      let at = 0;
      const act = (): never => {
        const next = actions[at++ % actions.length];
        // Everything it brought along is changed while the session uses it.
        tools.push(adder(`Late${at}`) as never);
        if (tools[0]) tools[0].description = `other words ${at}`;
        sections.push({ name: `late-${at}`, text: "late" });
        if (sections[0]) sections[0].text = `changed ${at}`;
        if (next === "throw") throw new Error("thrown");
        return next as never;
      };
      const on: Hooks = { beforeCall: act, afterCall: act, promptEntered: act, exchangeEnded: act, sessionOpened: act };
      await using session = await ground.open({ extensions: [{ name: "mine", tools: tools as never, sections, on }] });
      for (const words of ["one", "two", "three"]) await session.prompt(words).result();
      const sent = bodies(ground).slice(from);
      assert.ok(sent.length >= 6);
      for (const [index, body] of sent.entries()) {
        const before = sent[index - 1];
        if (!before) continue;
        assert.equal(withoutMarkers(body.tools), withoutMarkers(before.tools));
        const kept = body.messages.slice(0, before.messages.length);
        assert.equal(withoutMarkers(kept), withoutMarkers(before.messages));
      }
    }),
    { numRuns: 4 },
  );
});
