import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempDisposableSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { doctorCommand } from "../src/commands/doctor.ts";
import { captured } from "./captured.ts";

type Layers = readonly {
  readonly name: string;
  readonly active: boolean;
  readonly detail: string;
  readonly covers?: string;
  readonly wayOut?: string;
}[];

const ask = async (env: Readonly<Record<string, string>>): Promise<Layers> => {
  const io = captured({ env });
  await doctorCommand(io).parseAsync(["--json"], { from: "user" });
  return (JSON.parse(io.text()) as { layers: Layers }).layers;
};

test("every layer is told with its state, its reason and what to do about it", async () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-doctor-"));
  const layers = await ask({ XDG_STATE_HOME: folder.path });
  assert.deepEqual(
    layers.map(({ name }) => name),
    [
      ...["runtime", "files by descriptor", "parsed plans", "read-only cell", "sandbox", "git", "ripgrep"],
      ...["worktrees", "state folder"],
    ],
  );
  for (const { name, active, detail, wayOut } of layers) {
    assert.ok(detail.length > 0, name);
    assert.equal(wayOut === undefined, active, `${name}: a way out stands exactly where it is needed`);
  }
  assert.deepEqual(
    layers.flatMap(({ name, covers }) => (covers === undefined ? [] : [[name, covers.split(",")[0]]])),
    [
      ["files by descriptor", "every file that Read"],
      ["parsed plans", "commands that provably only read"],
      ["read-only cell", "commands that provably only read"],
      ["sandbox", "commands that were approved"],
      ["worktrees", "forks that change code in copies of this checkout"],
    ],
  );
  assert.equal(layers[0]?.active, true);
  assert.equal(layers[1]?.active, process.platform === "linux");
  const io = captured({ env: { XDG_STATE_HOME: folder.path } });
  await doctorCommand(io).parseAsync([], { from: "user" });
  assert.match(io.text(), /^on {3}runtime {13}Node \d/);
  assert.match(io.text(), /^on {3}parsed plans .*\n {25}covers commands that provably only read$/m);
});

test("the state folder is looked at and left alone", async () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-doctor-"));
  const state = async (): Promise<Layers[number] | undefined> =>
    (await ask({ XDG_STATE_HOME: folder.path })).find(({ name }) => name === "state folder");
  const path = join(folder.path, "prefork");
  assert.deepEqual(await state(), {
    name: "state folder",
    active: true,
    detail: `${path} is not there yet and will be made with mode 0700`,
  });
  assert.equal(existsSync(path), false);
  mkdirSync(path);
  chmodSync(path, 0o777);
  assert.deepEqual(await state(), {
    name: "state folder",
    active: false,
    detail: `${path} can be changed by others (mode 0777)`,
    wayOut: "repair its owner and mode, or set XDG_STATE_HOME",
  });
});
