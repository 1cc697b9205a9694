/** Repositories that would start their own program when git runs in them, and the git commands that are tried.
 *  Elsewhere: some commands in each (repositories.test.ts), all of them (npm run soak -- repositories). */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, cpSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Answer, change, checkAndRun, checkAndRunEach, git, type Place, place, repository } from "./place.ts";

/** The git commands that an agent uses all day. */
export const QUESTIONS: readonly string[] = [
  ...[
    "git status",
    "git status -s",
    "git status -v",
    "git diff",
    "git diff HEAD",
    "git diff --stat",
    "git diff --cached",
  ],
  ...["git log -p", "git log --oneline --graph --all", "git log --stat -- a.txt", "git show", "git show HEAD:a.txt"],
  ...["git show v1", "git blame a.txt", "git grep text", "git ls-files -m -o", "git branch -a -v", "git tag -l"],
  ...["git stash list", "git stash show -p", "git describe --always", "git rev-parse HEAD"],
  ...[
    "git config --get core.bare",
    "git remote -v",
    "git diff-index HEAD",
    "git diff-files -p",
    "git diff-tree -p HEAD",
  ],
  ...[
    "git for-each-ref",
    "git shortlog -sn HEAD",
    "git reflog",
    "git cat-file -p HEAD",
    "git rev-list --objects --all",
  ],
  ...[
    "git check-ignore x",
    "git check-attr -a a.txt",
    "git diff --no-index a.txt b.txt",
    "git range-diff HEAD~1..HEAD HEAD~1..HEAD",
  ],
  ...["git worktree list", "git clean -n", "git log --format='%h %s %(trailers)' -3", "timeout 9 git status"],
  ...["timeout 8 git diff", "git --no-pager log -1 | cat", "git status && git diff || git log", "git ls-files -u"],
  ...["rg text", "grep -rn text .", "ls -la", "find . -name '*.txt'", "cat a.txt", "file a.txt", "tree"],
];

export type Hostile = {
  readonly name: string;
  /** Makes the repository hostile; returns the folder in which commands run. */
  readonly make: (folder: string, at: Place) => string | undefined;
  /** A command that triggers the trap with plain git: proves that the repository is really hostile. */
  readonly control?: readonly string[];
  /** Every command still works, because nothing in the repository can start a program. */
  readonly stays?: true;
};

export const set = (folder: string, key: string, value: string): void => void git(folder, "config", key, value);
const attributes = (folder: string, line: string): void => writeFileSync(join(folder, ".gitattributes"), `${line}\n`);

/** A signed commit: showing its signature starts the program that verifies it. */
const sign = (folder: string): void => {
  const [head, ...rest] = git(folder, "cat-file", "-p", "HEAD").split("\n\n");
  const seal = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";
  const env = { PATH: "/usr/bin:/bin", HOME: folder };
  const input = `${head}\n${seal}\n\n${rest.join("\n\n")}`;
  const made = spawnSync("git", ["hash-object", "-t", "commit", "-w", "--stdin"], { cwd: folder, env, input });
  git(folder, "update-ref", "HEAD", made.stdout.toString().trim());
};

export const HOSTILE: readonly Hostile[] = [
  { name: "a monitor", make: (folder, { trap }) => void set(folder, "core.fsmonitor", trap), control: ["status"] },
  {
    name: "hooks",
    make: (folder, { trap }) => {
      for (const hook of [
        "post-index-change",
        "reference-transaction",
        "fsmonitor-watchman",
        "post-checkout",
        "pre-auto-gc",
      ])
        symlinkSync(trap, join(folder, ".git/hooks", hook));
      return undefined;
    },
    control: ["update-index", "--refresh"],
    stays: true,
  },
  {
    name: "a folder of hooks",
    make: (folder, { trap, at }) => {
      mkdirSync(at("hooks"));
      symlinkSync(trap, at("hooks/post-index-change"));
      set(folder, "core.hooksPath", at("hooks"));
      return undefined;
    },
    control: ["update-index", "--refresh"],
    stays: true,
  },
  {
    name: "pagers",
    make: (folder, { trap }) => {
      set(folder, "core.pager", trap);
      for (const name of ["log", "diff", "status", "show", "branch", "grep", "blame", "tag", "config", "stash"])
        set(folder, `pager.${name}`, trap);
      return undefined;
    },
    stays: true,
  },
  { name: "an external diff", make: (folder, { trap }) => void set(folder, "diff.external", trap), control: ["diff"] },
  {
    name: "a diff driver",
    make: (folder, { trap }) => {
      set(folder, "diff.x.command", trap);
      attributes(folder, "* diff=x");
      return undefined;
    },
    control: ["diff"],
  },
  {
    name: "a text conversion from private attributes",
    make: (folder, { trap }) => {
      set(folder, "diff.x.textconv", trap);
      appendFileSync(join(folder, ".git/info/attributes"), "* diff=x\n");
      return undefined;
    },
    control: ["log", "-p"],
  },
  ...["clean", "process"].map((kind) => ({
    name: `a filter (${kind})`,
    make: (folder: string, { trap }: Place) => {
      set(folder, `filter.x.${kind}`, trap);
      attributes(folder, "*.txt filter=x");
      return undefined;
    },
    control: ["status"],
  })),
  {
    name: "signature programs",
    make: (folder, { trap }) => {
      sign(folder);
      set(folder, "log.showSignature", "true");
      set(folder, "format.pretty", "%h %G? %s");
      for (const key of ["gpg.program", "gpg.openpgp.program", "gpg.ssh.program", "gpg.x509.program"])
        set(folder, key, trap);
      return undefined;
    },
    control: ["log"],
    stays: true,
  },
  {
    name: "a missing object that a remote has promised",
    make: (folder, { trap }) => {
      set(folder, "core.repositoryformatversion", "1");
      set(folder, "extensions.partialClone", "origin");
      set(folder, "remote.origin.url", `ext::${trap}`);
      set(folder, "remote.origin.promisor", "true");
      set(folder, "protocol.ext.allow", "always");
      const id = git(folder, "rev-parse", "HEAD:b.txt").trim();
      renameSync(join(folder, ".git/objects", id.slice(0, 2), id.slice(2)), join(folder, ".git/gone"));
      return undefined;
    },
    control: ["cat-file", "-p", "HEAD:b.txt"],
  },
  {
    name: "ssh, proxy, credential and editor programs",
    make: (folder, { trap }) => {
      for (const key of ["core.sshCommand", "core.gitProxy", "core.askPass", "core.editor", "sequence.editor"])
        set(folder, key, trap);
      for (const key of ["credential.helper", "interactive.diffFilter", "uploadpack.packObjectsHook"])
        set(folder, key, trap);
      set(folder, "remote.origin.url", "ssh://nowhere.invalid/x");
      set(folder, "remote.origin.uploadpack", trap);
      return undefined;
    },
    control: ["fetch"],
    stays: true,
  },
  {
    name: "aliases",
    make: (folder, { trap }) => {
      for (const name of ["status", "log", "diff", "st", "show"]) set(folder, `alias.${name}`, `!${trap}`);
      return undefined;
    },
    control: ["st"],
    stays: true,
  },
  {
    name: "refs of another repository by a command",
    make: (folder, { trap, at }) => {
      repository(at("other"));
      writeFileSync(join(folder, ".git/objects/info/alternates"), `${at("other/.git/objects")}\n`);
      set(folder, "core.alternateRefsCommand", trap);
      return undefined;
    },
  },
  {
    name: "an included configuration",
    make: (folder, { trap, put }) => {
      put("hidden.cfg", `[core]\n\tfsmonitor = ${trap}\n`);
      set(folder, "include.path", "../../hidden.cfg");
      return undefined;
    },
    control: ["status"],
  },
  {
    name: "a configuration included on a condition",
    make: (folder, { trap, put }) => {
      put("hidden.cfg", `[core]\n\tfsmonitor = ${trap}\n`);
      set(folder, "includeIf.onbranch:main.path", "../../hidden.cfg");
      return undefined;
    },
    control: ["status"],
  },
  {
    name: "a configuration of the work tree",
    make: (folder, { trap }) => {
      set(folder, "extensions.worktreeConfig", "true");
      writeFileSync(join(folder, ".git/config.worktree"), `[core]\n\tfsmonitor = ${trap}\n`);
      return undefined;
    },
    control: ["status"],
  },
  {
    name: "a .git file that points elsewhere",
    make: (folder, { trap, at }) => {
      set(folder, "core.fsmonitor", trap);
      renameSync(join(folder, ".git"), at("elsewhere"));
      writeFileSync(join(folder, ".git"), `gitdir: ${at("elsewhere")}\n`);
      return undefined;
    },
    control: ["status"],
  },
  {
    name: "a bare repository among the files",
    make: (folder, { trap }) => {
      const bare = join(folder, "docs");
      renameSync(join(folder, ".git"), bare);
      set(bare, "core.bare", "false");
      set(bare, "core.worktree", "..");
      set(bare, "core.fsmonitor", trap);
      return bare;
    },
    control: ["status"],
  },
  {
    name: "a submodule with a configuration of its own",
    make: (folder, { trap, at }) => {
      repository(at("inner"));
      git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", at("inner"), "sub");
      git(folder, "commit", "-q", "-m", "sub");
      const sub = join(folder, "sub");
      writeFileSync(join(sub, "a.txt"), "next\n");
      git(sub, "commit", "-q", "-am", "next");
      git(folder, "commit", "-q", "-am", "bump");
      for (const key of ["core.fsmonitor", "diff.external", "filter.x.clean"]) set(sub, key, trap);
      writeFileSync(join(sub, ".gitattributes"), "* filter=x\n");
      writeFileSync(join(sub, "a.txt"), "dirty\n");
      git(folder, "config", "-f", ".gitmodules", "submodule.sub.ignore", "none");
      set(folder, "diff.submodule", "diff");
      set(folder, "submodule.recurse", "true");
      set(folder, "status.submoduleSummary", "true");
      return undefined;
    },
    control: ["status"],
  },
  {
    name: "trailers with a command",
    make: (folder, { trap }) => {
      set(folder, "trailer.sign.key", "Signed: ");
      set(folder, "trailer.sign.cmd", trap);
      return undefined;
    },
    control: ["interpret-trailers", "--trailer", "sign=x", "a.txt"],
  },
  {
    name: "a merge that is shown by making it again",
    make: (folder, { trap }) => {
      set(folder, "merge.x.driver", trap);
      attributes(folder, "* merge=x");
      set(folder, "log.diffMerges", "remerge");
      return undefined;
    },
  },
  {
    name: "a work tree elsewhere",
    make: (folder, { trap, at, put }) => {
      put("files/.gitattributes", "* filter=x diff=x\n");
      put("files/b.txt", "text\n");
      set(folder, "core.worktree", at("files"));
      set(folder, "filter.x.clean", trap);
      return undefined;
    },
    control: ["status"],
  },
];

/** The same repository, reached in other ways. */
const fromOutside = (folder: string): readonly string[] => [
  `git -C ${folder} status`,
  `cd ${folder} && git diff`,
  `cd / && git -C ${folder} log -p`,
];

type Scene = { readonly at: Place; readonly folder: string; readonly cwd: string };

/** Builds the repository of this description. */
const prepare = ({ name, make, control }: Hostile, template?: string): Scene => {
  const at = place();
  const folder = template === undefined ? repository(at.at("repo")) : at.at("repo");
  if (template !== undefined) cpSync(template, folder, { recursive: true });
  const cwd = make(folder, at) ?? folder;
  change(folder);
  if (control) {
    git(cwd, ...control);
    assert.ok(at.sprung(), `${name}: git ${control.join(" ")} by itself does not start it`);
    at.reset();
    change(folder);
  }
  at.reset();
  return { at, folder, cwd };
};

type Asked = { readonly scene: Scene; readonly questions: readonly string[] };

const commandsOf = ({ scene, questions }: Asked): readonly string[] => [...questions, ...fromOutside(scene.folder)];

/** Checks that none of these commands started a program of the repository. */
const assertNothingStarted = ({ stays }: Hostile, asked: Asked, answers: readonly Answer[]): void => {
  assert.deepEqual(
    answers.map(({ cmd }) => cmd),
    commandsOf(asked),
  );
  assert.ok(!asked.scene.at.sprung(), "a program of the repository was started");
  if (stays)
    assert.deepEqual(
      answers.filter(({ readOnly }) => !readOnly),
      [],
    );
};

/** Runs all of them in one process. Returns a function per repository that checks that nothing was started. */
export const askTogether = async (
  questionsFor: (hostile: Hostile) => readonly string[],
): Promise<Disposable & { readonly assertNothing: (hostile: Hostile) => void }> => {
  using stack = new DisposableStack();
  const home = stack.use(place());
  const template = repository(home.at("template"));
  const asked = HOSTILE.map((hostile) => {
    const scene = prepare(hostile, template);
    stack.use(scene.at);
    return { scene, questions: questionsFor(hostile) };
  });
  const lines = asked.flatMap((one) => commandsOf(one).map((cmd) => ({ cmd, cwd: one.scene.cwd })));
  const answers = [...(await checkAndRunEach(lines, { cwd: home.path }))];
  assert.equal(answers.length, lines.length);
  const ofEach = new Map(HOSTILE.map((hostile, at) => [hostile, asked[at]] as const));
  const found = new Map(asked.map((one) => [one, answers.splice(0, commandsOf(one).length)] as const));
  const held = stack.move();
  return {
    assertNothing: (hostile) => {
      const one = ofEach.get(hostile);
      assert.ok(one !== undefined);
      assertNothingStarted(hostile, one, found.get(one) ?? []);
    },
    [Symbol.dispose]: () => held.dispose(),
  };
};

/** Every command in every repository, each in a process that is started there. */
export const repositoriesSoak = async (): Promise<{ readonly asked: number; readonly broken: readonly string[] }> => {
  const broken: string[] = [];
  for (const hostile of HOSTILE) {
    try {
      const scene = prepare(hostile);
      using _ = scene.at;
      const asked = { scene, questions: QUESTIONS };
      assertNothingStarted(hostile, asked, await checkAndRun(commandsOf(asked), { cwd: scene.cwd }));
    } catch (error) {
      broken.push(`${hostile.name}: ${error}`);
    }
  }
  return { asked: HOSTILE.length * QUESTIONS.length, broken };
};
