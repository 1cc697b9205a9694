import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";
import { needs } from "@prefork/testing/optional";
import { scratch, treeOf } from "@prefork/testing/scratch";
import { protectedWhenMissing } from "../../src/paths/index.ts";
import { openSandbox, probeSandbox, type Sandbox } from "../../src/run/sandbox.ts";
import { sandboxArgv } from "../../src/run/sandbox-argv.ts";

const probe = await probeSandbox();
const withBwrap = await needs("bwrap");

const opened = async (
  workspace: string,
  options: { readonly home?: string; readonly hidden?: readonly string[]; readonly writable?: readonly string[] } = {},
): Promise<Sandbox> => {
  const result = await openSandbox({ mode: "required", workspace, probe, ...options });
  assert.ok(result.kind === "on", result.kind === "on" ? "" : result.reason);
  return result.sandbox;
};

const run = async (sandbox: Sandbox, script: string): Promise<string> => {
  const entered = await sandbox.enter(["/bin/sh", "-c", script]);
  assert.ok(entered.ok, entered.ok ? "" : entered.reason);
  await using command = entered;
  const [program = "", ...parameters] = command.argv;
  const env = { PATH: "/usr/bin:/bin" };
  return await new Promise((done) =>
    execFile(program, parameters, { env }, (_, stdout, stderr) => done(`${stdout}${stderr}`)),
  );
};

/** What bubblewrap makes of all names that are to stay missing. */
const leavePlaceholders = (place: { readonly at: (name: string) => string }): void => {
  for (const name of protectedWhenMissing) writeFileSync(place.at(name), "", { mode: 0o444 });
};

test("the arguments open the workspace, then close what is protected, and drop everything else", () => {
  const argv = sandboxArgv(["ls", "-l"], {
    program: "/usr/bin/bwrap",
    workspace: "/ws",
    readOnly: ["/ws/.git"],
    missing: ["/ws/.mcp.json"],
  });
  assert.deepEqual(argv, [
    "/usr/bin/bwrap",
    ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"],
    ...["--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/run"],
    ...["--ro-bind-try", "/run/current-system", "/run/current-system"],
    ...["--bind", "/ws", "/ws"],
    ...["--ro-bind", "/ws/.git", "/ws/.git", "--ro-bind", "/dev/null", "/ws/.mcp.json"],
    ...["--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session"],
    ...["--chdir", "/ws", "--", "ls", "-l"],
  ]);
});

test("without bubblewrap, off and auto run without a sandbox, and required refuses", async () => {
  using place = scratch();
  const missing = { ok: false, reason: "bubblewrap (bwrap) is not installed" } as const;
  const open = (mode: "off" | "auto" | "required") => openSandbox({ mode, workspace: place.path, probe: missing });
  assert.deepEqual(await open("off"), { kind: "off", reason: "switched off by the settings" });
  assert.deepEqual(await open("auto"), { kind: "off", reason: missing.reason });
  assert.deepEqual(await open("required"), { kind: "refused", reason: missing.reason });
  const nowhere = await openSandbox({
    mode: "auto",
    workspace: place.at("none"),
    probe: { ok: true, program: "/usr/bin/bwrap" },
  });
  assert.equal(nowhere.kind, "refused");
});

test("a command writes in the workspace and nowhere else, and its temporary folder is its own", withBwrap, async () => {
  using place = scratch();
  using outside = scratch();
  await using sandbox = await opened(place.path);
  const said = await run(
    sandbox,
    `echo made > file; echo x > /etc/prefork-test; echo x > ${outside.path}/x; echo t > /tmp/t && ls /tmp; ls /run`,
  );
  assert.match(said, /\/etc\/prefork-test: Read-only file system/);
  assert.deepEqual(treeOf(outside.path), {});
  assert.deepEqual(treeOf(place.path), { file: "644 made\n" });
});

test("protected names cannot be changed, moved or made, and nothing is left of the protection", withBwrap, async () => {
  using place = scratch();
  place.put(".git/config", "[core]");
  place.put(".vscode/extensions.json", "{}");
  const before = treeOf(place.path);
  await using sandbox = await opened(place.path);
  const said = await run(
    sandbox,
    `echo x > .git/config; mv .git moved; rm -rf .git; echo x > .mcp.json; mkdir .prefork; rm .mcp.json; mv .prefork p
     mv .vscode v; echo x > .vscode/tasks.json; echo x > .envrc; ln -s /etc .claude; ls -A`,
  );
  assert.match(said, /cannot/);
  assert.deepEqual(treeOf(place.path), before);
});

test(
  "placeholders stay until the last command has ended, and those of a crashed run are recognized",
  withBwrap,
  async () => {
    using place = scratch();
    leavePlaceholders(place);
    const left = readdirSync(place.path);
    await using sandbox = await opened(place.path);
    const [first, second] = [await sandbox.enter(["true"]), await sandbox.enter(["true"])];
    assert.ok(first.ok && second.ok);
    await first[Symbol.asyncDispose]();
    assert.deepEqual(readdirSync(place.path), left);
    await second[Symbol.asyncDispose]();
    assert.deepEqual(readdirSync(place.path), []);
  },
);

test("all agents of a process share the placeholders of a workspace", withBwrap, async () => {
  using place = scratch();
  leavePlaceholders(place);
  const left = readdirSync(place.path);
  await using parent = await opened(place.path);
  await using fork = await opened(place.path);
  const [first, second] = [await parent.enter(["true"]), await fork.enter(["true"])];
  assert.ok(first.ok && second.ok);
  await second[Symbol.asyncDispose]();
  assert.deepEqual(readdirSync(place.path), left);
  await first[Symbol.asyncDispose]();
  assert.deepEqual(readdirSync(place.path), []);
});

test("protected names are closed in every folder that is writable", withBwrap, async () => {
  using place = scratch();
  using extra = scratch();
  extra.put(".git/config", "[core]");
  const before = treeOf(extra.path);
  await using sandbox = await opened(place.path, { writable: [extra.path, extra.at("none")] });
  await run(
    sandbox,
    `cd ${extra.path} && echo x > .git/config; echo x > .git/hook; mv .git g; echo x > .envrc; mkdir .vscode; echo y > a`,
  );
  assert.deepEqual(treeOf(extra.path), { ...before, a: "644 y\n" });
});

test("start-up files are kept from being made where the workspace is the home folder", withBwrap, async () => {
  using place = scratch();
  await using sandbox = await opened(place.path, { home: place.path });
  await run(sandbox, "echo x > .bashrc; mkdir .ssh; echo x > notes");
  assert.deepEqual(treeOf(place.path), { notes: "644 x\n" });
});

test("no network, no capability, no other processes, no hidden folder", withBwrap, async () => {
  using place = scratch();
  using secrets = scratch();
  secrets.put("token", "secret");
  await using server = createServer((socket) => socket.end("reached")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  await using sandbox = await opened(place.path, { hidden: [secrets.path] });
  // System programs only: the runtime of this test may lie in a folder that the sandbox replaces by its own. A bash whose
  // standard input is a socket takes itself for a remote one and reads start-up files.
  const said = await run(
    sandbox,
    `bash --norc -c 'if (exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null; then echo reached; else echo no network; fi'
     ls /proc | grep -c '^[0-9]*$'
     grep CapEff /proc/self/status
     ls -A "${secrets.path}"`,
  );
  const [network, processes, capabilities, ...hidden] = said.trimEnd().split("\n");
  assert.deepEqual([network, capabilities, hidden], ["no network", "CapEff:\t0000000000000000", []]);
  assert.ok(Number(processes) < 8, `${processes} processes are seen`);
});

test("a protected name that is a link cannot be kept, so the command is refused", withBwrap, async () => {
  using place = scratch();
  symlinkSync("/etc", place.at(".git"));
  await using sandbox = await opened(place.path);
  assert.deepEqual(await sandbox.enter(["true"]), {
    ok: false,
    reason: `${place.at(".git")} is a link, which cannot be kept from being replaced`,
  });
  assert.equal(readFileSync("/etc/passwd", "utf8").length > 0, true);
});

test("an empty read-only file of the user is not mistaken for a placeholder", withBwrap, async () => {
  using place = scratch();
  writeFileSync(place.at(".npmrc"), "", { mode: 0o444 });
  await using sandbox = await opened(place.path);
  await run(sandbox, "echo x > .npmrc; rm -f .npmrc");
  assert.deepEqual(treeOf(place.path), { ".npmrc": "444 " });
});

test("a workspace in another writable folder cannot be moved away and replaced", withBwrap, async () => {
  using place = scratch();
  place.put("work/.git/config", "[core]");
  place.put("work/a", "a");
  await using sandbox = await opened(place.at("work"), { writable: [place.path] });
  await run(sandbox, `cd ${place.path}; mv work w2 && mkdir -p work/.git && echo evil > work/.envrc; echo b > b`);
  assert.deepEqual(treeOf(place.path), {
    ...{ b: "644 b\n", "work/": "755", "work/.git/": "755", "work/.git/config": "644 [core]", "work/a": "644 a" },
  });
});
