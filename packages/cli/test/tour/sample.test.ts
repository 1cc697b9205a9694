/** The sample repository: generated from a seed, correct by its own tests, with exactly the faults that its facts name. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempDisposableSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { DOMAINS } from "../../src/tour/domains.ts";
import { makeRepository } from "../../src/tour/repository.ts";
import { type Sample, sampleOf } from "../../src/tour/sample.ts";

const seeds = fc.integer({ min: 0, max: 0xffff_ffff });

/** `path:text` of every matching line below a folder. */
const linesWith = ({ files }: Sample, folder: string, pattern: RegExp): readonly (readonly [string, string])[] =>
  [...files].flatMap(([path, text]) =>
    path.startsWith(folder)
      ? text.split("\n").flatMap((line) => (pattern.test(line) ? [[path, line] as const] : []))
      : [],
  );

const pathsWith = (sample: Sample, folder: string, pattern: RegExp): readonly string[] =>
  linesWith(sample, folder, pattern).map(([path]) => path);

/** The facts, as a search of the files finds them. */
const searched = (sample: Sample) => {
  const names = [...sample.files.keys()];
  const routes = linesWith(sample, "src/router/", /\broute\(/).map(
    ([, line]) => /route\("(\w+)", "([^"]+)"/.exec(line)?.slice(1).join(" ") ?? "",
  );
  const onesIn = (folder: string, suffix: string): readonly string[] =>
    names.filter((name) => name.startsWith(folder) && name.endsWith(suffix));
  return {
    schema: {
      tables: pathsWith(sample, "src/schema/", /= table\(/).length,
      deprecated: pathsWith(sample, "src/schema/", /@deprecated/).join(),
    },
    service: {
      todos: pathsWith(sample, "src/service/", /TODO/).length,
      failing: pathsWith(sample, "src/service/", /TODO: fails/).join(),
    },
    router: {
      routes: routes.length,
      repeated: routes.filter((route, index) => routes.indexOf(route) !== index).join(),
    },
    tests: {
      files: onesIn("test/", ".test.ts").length,
      skipped: pathsWith(sample, "test/", /test\.skip\(/).join(),
      untested: onesIn("src/service/", "-service.ts")
        .filter((name) => !names.includes(name.replace("src/service/", "test/").replace(".ts", ".test.ts")))
        .join(),
    },
    docs: {
      unfinished: pathsWith(sample, "docs/", /TBD/).join(),
      undocumented: sample.resources
        .filter(({ many }) => !names.includes(`docs/${many}.md`))
        .map(({ one }) => `src/types/${one}.ts`)
        .join(),
    },
  };
};

test("every seed plants what its facts say, no more and no less, in 30 to 60 files", () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const sample = sampleOf(seed);
      assert.deepEqual(sample.facts, searched(sample));
      assert.ok(sample.files.size >= 30 && sample.files.size <= 60, `${sample.files.size} files`);
      assert.ok((sample.files.get("AGENTS.md") ?? "").length > 20_000);
    }),
  );
});

test("the same seed gives the same bytes, and other seeds other ones", () => {
  fc.assert(
    fc.property(seeds, (seed) => assert.deepEqual(sampleOf(seed), sampleOf(seed))),
    { numRuns: 20 },
  );
  const differing = new Set(Array.from({ length: 20 }, (_, seed) => JSON.stringify([...sampleOf(seed).files])));
  assert.equal(differing.size, 20);
});

const PATH = [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter);

const made = async (seed: number) => {
  const place = mkdtempDisposableSync(join(tmpdir(), "prefork-sample-"));
  const folder = join(place.path, "repository");
  const sample = sampleOf(seed);
  const repository = await makeRepository(sample, { folder, path: PATH, signal: new AbortController().signal });
  return { place, folder, sample, repository };
};

/** The first seed of each trade. */
const SEEDS = DOMAINS.map(({ service }) => {
  for (let seed = 0; ; seed += 1) if (sampleOf(seed).domain.service === service) return seed;
});

test("samples compile strictly, and their own tests pass but for the one that is skipped", async () => {
  const modules = fileURLToPath(new URL("../../../../node_modules", import.meta.url));
  using place = mkdtempDisposableSync(join(tmpdir(), "prefork-sample-"));
  symlinkSync(modules, join(place.path, "node_modules"));
  for (const seed of SEEDS) {
    const folder = join(place.path, String(seed));
    await makeRepository(sampleOf(seed), { folder, path: PATH, signal: new AbortController().signal });
    const flags = ["--test", "--test-isolation=none", "--test-reporter=tap", "test/*.test.ts"];
    const { stdout } = spawnSync(process.execPath, flags, { cwd: folder, encoding: "utf8", env: { PATH } });
    const counts = ["pass", "fail", "skipped"].map((what) => new RegExp(`^# ${what} (\\d+)$`, "m").exec(stdout)?.[1]);
    assert.deepEqual(counts, ["18", "0", "1"], stdout);
  }
  const include = SEEDS.flatMap((seed) => [`${seed}/src`, `${seed}/test`]);
  writeFileSync(join(place.path, "tsconfig.json"), JSON.stringify({ extends: `./${SEEDS[0]}/tsconfig.json`, include }));
  writeFileSync(join(place.path, "package.json"), '{ "type": "module" }');
  const { status, stdout } = spawnSync(join(modules, ".bin/tsc"), ["-p", "."], {
    ...{ cwd: place.path, encoding: "utf8", env: { PATH } },
  });
  assert.deepEqual([status, stdout], [0, ""]);
});

test("a sample is one clean commit, with the same name for the same seed", async () => {
  const git = (folder: string, ...words: readonly string[]): string =>
    execFileSync("git", words, { cwd: folder, encoding: "utf8", env: { PATH } }).trim();
  const places = [await made(7), await made(7), await made(8)];
  const looked = places.map(({ place, folder, sample, repository }) => {
    using _place = place;
    assert.deepEqual(git(folder, "ls-files").split("\n").toSorted(), [...sample.files.keys()].toSorted());
    assert.equal(repository.files, sample.files.size);
    assert.equal(readFileSync(join(folder, "AGENTS.md"), "utf8"), sample.files.get("AGENTS.md"));
    const [commits, status] = [git(folder, "rev-list", "--count", "main"), git(folder, "status", "--short")];
    return { commits, status, id: git(folder, "rev-parse", "HEAD") };
  });
  assert.deepEqual(
    looked.map(({ commits, status }) => [commits, status]),
    looked.map(() => ["1", ""]),
  );
  assert.equal(looked[0]?.id, looked[1]?.id);
  assert.notEqual(looked[0]?.id, looked[2]?.id);
});

test("without git, the error says that git is missing", async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), "prefork-sample-"));
  mkdirSync(join(place.path, "empty"));
  const around = {
    folder: join(place.path, "r"),
    path: join(place.path, "empty"),
    signal: new AbortController().signal,
  };
  await assert.rejects(makeRepository(sampleOf(1), around), {
    name: "UsageError",
    message: "the tour creates a real repository, and git is not installed here (apt install git)",
  });
});
