/** What is asked for in the long session, and what the scripted model does about it: fifty turns as data.
 *  Invariant: a step is a function of the results before it; what happens around the session (a person edits, switches
 *  branches, changes the mode) stands beside the task that it precedes, and can be done twice without harm. */

import type { Mode } from "@prefork/guard";
import type { JsonObject } from "@prefork/wire";
import { MODULES, moduleName, type Project } from "./generated-repository.ts";

export type Call = { readonly name: string; readonly input: JsonObject };

/** `results`: the texts of the results that the model has just been given. */
export type Step = (project: Pick<Project, "at">, results: readonly string[]) => readonly Call[];

export type Task = {
  readonly mode: Mode;
  /** What a person does before asking. */
  readonly before?: (project: Project) => void;
  readonly wish: string;
  readonly steps: readonly Step[];
};

const call = (name: string, input: JsonObject): Call => ({ name, input });
const bash = (command: string): Call => call("Bash", { command });
const record = (line: string): Call => call("Record", { line });
const look = (what: string): Call => call("Look", { what });

const read =
  (...names: readonly string[]): Step =>
  ({ at }) =>
    names.map((name) => call("Read", { file_path: at(name) }));

const parts = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => moduleName(from + index));

const edit =
  (number: number, from: string, to: string): Step =>
  ({ at }) => [call("Edit", { file_path: at(moduleName(number)), old_string: from, new_string: to })];

const calls =
  (...made: readonly Call[]): Step =>
  () =>
    made;

const together =
  (...steps: readonly Step[]): Step =>
  (project, results) =>
    steps.flatMap((step) => step(project, results));

const todo = (content: string, status: string): Call => call("TodoWrite", { todos: [{ content, status }] });

/** The file that a preview names. */
const keptFile = (results: readonly string[]): string => /All of it is in (\S+):/.exec(results.join("\n"))?.[1] ?? "";

export const tasks: readonly Task[] = [
  {
    mode: "default",
    wish: "look around and say what there is",
    steps: [
      calls(call("Glob", { pattern: "src/*.ts" }), call("Grep", { pattern: "PART = 1" }), look("the whole")),
      read(...parts(1, 3)),
      calls(bash("git log --oneline -3"), bash("wc -l src/part-01.ts src/part-02.ts"), look("the history")),
      edit(1, "PART = 1", "PART = 101"), // nobody to ask: denied
      calls(todo("number the parts anew", "in_progress")),
      calls(record("looked around"), look("what was recorded")),
    ],
  },
  {
    mode: "accept-edits",
    wish: "number the first parts anew",
    steps: [
      edit(1, "PART = 1;", "PART = 101;"),
      edit(2, "PART = 2;", "PART = 102;"),
      edit(3, "PART = 33;", "PART = 103;"), // no such text: told so
      edit(3, "PART = 3;", "PART = 103;"),
      calls(record("three parts"), record("of sixteen")),
      ({ at }) => [call("Write", { file_path: at("docs/numbers.md"), content: "Parts 1 to 3 begin at 101.\n" })],
      calls(bash("rm -rf docs")), // not provably read-only: denied
    ],
  },
  {
    mode: "accept-edits",
    before: ({ put }) => {
      put("AGENTS.md", "# Conventions\n\n- Functions are arrows.\n- Every part is numbered from 101.\n");
      put("CLAUDE.md", "Keep docs/numbers.md true.\n");
    },
    wish: "go on under the conventions as they are now",
    steps: [
      read("docs/numbers.md"),
      together(read(...parts(4, 5)), calls(look("parts four and five"))),
      together(edit(4, "PART = 4;", "PART = 104;"), calls(record("part four"))),
      edit(4, "PART = 104;", "PART = 1004;"),
      edit(5, "PART = 5;", "PART = 105;"),
    ],
  },
  {
    mode: "plan",
    before: ({ git }) => git("checkout", "-q", "-B", "chronicle"),
    wish: "plan what to do with the chronicle",
    steps: [
      read("docs/chronicle.txt"), // too long: enters as a preview
      (_, results) => [call("Grep", { pattern: "\\t77 ", path: keptFile(results), output_mode: "content" })],
      // Each short enough, together too long: the longest enters as a preview.
      ({ at }) => [1, 401].map((offset) => call("Read", { file_path: at("docs/chronicle.txt"), offset, limit: 400 })),
      ({ at }) => [
        call("Write", { file_path: at("docs/plan.md"), content: "to do\n" }), // only reading: denied
        record("a plan"), // denied as well
      ],
      calls(bash("git branch --show-current"), look("the branch")),
    ],
  },
  {
    mode: "bypass",
    wish: "write down what was found",
    steps: [
      calls(bash("printf 'toolu_5_0_0\\n' >> docs/found.txt"), record("found")),
      calls(bash("printf 'toolu_5_1_0\\n' >> docs/found.txt && cat docs/found.txt")),
      calls(todo("number the parts anew", "completed"), todo("write a report", "in_progress")),
      // More blocks than a provider looks back over, in one turn.
      calls(...Array.from({ length: 13 }, (_, index) => look(`shelf ${index + 1}`))),
    ],
  },
  {
    mode: "accept-edits",
    wish: "read all the other parts",
    steps: [
      read(moduleName(6)),
      read(moduleName(7)), // about here there is no room any more, and the conversation is summed up
      read(...parts(8, 10)),
      calls(record("read all"), look("all")),
      edit(6, "PART = 6;", "PART = 106;"),
      edit(7, "PART = 7;", "PART = 107;"),
    ],
  },
  {
    mode: "accept-edits",
    before: ({ put, git }) => {
      put("CLAUDE.md", "Keep docs/numbers.md true, and short.\n");
      git("checkout", "-q", "-B", "numbers");
    },
    wish: "number the rest",
    steps: [
      edit(8, "PART = 8;", "PART = 108;"),
      read(moduleName(MODULES)),
      edit(9, "PART = 9;", "PART = 109;"),
      calls(record("nine"), look("nine"), record("and ten")),
      edit(10, "PART = 10;", "PART = 110;"),
    ],
  },
  {
    mode: "default",
    wish: "say whether all is well",
    steps: [
      calls(bash("git status --short"), call("Grep", { pattern: "PART = 1\\d\\d", output_mode: "count" })),
      read("docs/numbers.md"),
      calls(record("all is well"), look("the end")),
      calls(todo("write a report", "completed")),
    ],
  },
];

/** The number of a task is its place in the list, from 1. */
export const promptOf = (number: number): string => `Task ${number}: ${tasks[number - 1]?.wish ?? ""}.`;

/** For a session that was interrupted: whoever resumes it does not know how far it came. */
export const GO_ON = "Go on with what is left of it.";

/** Each step is a turn, and so is the word at the end of each task. */
export const TURNS = tasks.reduce((sum, { steps }) => sum + steps.length + 1, 0);
