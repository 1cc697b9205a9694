/** A model that fixes a failing test: runs the tests, reads the failure, searches for the function that it names, finds the
 *  formula that gives what was expected, writes it, and runs the tests again.
 *  Invariant: it uses only what its calls returned; when something went wrong, the result's text decides what it does
 *  next. */

import { callTools, type SimAnswer, say } from "@prefork/simulator";
import { bash, call, linesShown, type Seen, type SeenCall, TESTS } from "./model.ts";
import { evaluate, type Formula, spelled } from "./repository.ts";

export type Habits = {
  /** The command it tries first. Default: one that runs the tests. */
  readonly firstCommand?: string;
  /** How it remembers a line that it has read. Default: unchanged. */
  readonly remember?: (line: string) => string;
};

type Failure = { readonly name: string; readonly a: number; readonly b: number; readonly expected: number };

const failureIn = (text: string): Failure | undefined => {
  const [, name, a, b, expected] = /^ *not ok \d+ - (\w+)\((\d+), (\d+)\) is (-?\d+)$/m.exec(text) ?? [];
  return name === undefined ? undefined : { name, a: Number(a), b: Number(b), expected: Number(expected) };
};

const OPERATORS = ["+", "-", "*"] as const;

/** The formula closest to the existing one that gives what the test expects. */
const mended = (line: string, { a, b, expected }: Failure): string | undefined => {
  const [, first, factor, second] = /\(a ([+*-]) (\d+)\) ([+*-]) b;/.exec(line) ?? [];
  const all = OPERATORS.flatMap((one) =>
    OPERATORS.map((other): Formula => ({ first: one, factor: Number(factor), second: other })),
  );
  const changes = (formula: Formula): number => Number(formula.first !== first) + Number(formula.second !== second);
  const [best] = all
    .filter((formula) => evaluate(formula, a, b) === expected)
    .toSorted((one, other) => changes(one) - changes(other));
  return best && line.replace(/\(a [+*-] \d+\) [+*-] b/, spelled(best));
};

export const fixingModel =
  ({ firstCommand = TESTS, remember = (line) => line }: Habits = {}) =>
  (seen: Seen): SimAnswer => {
    const { last, calls, folder } = seen;
    if (last === undefined) return callTools([bash(firstCommand)], "I run the tests.");
    if (last.name === "Bash") return afterCommand(last);
    const failure = failureIn(calls.findLast(({ name }) => name === "Bash")?.text ?? "");
    if (failure === undefined) return say("I do not know what fails.");
    switch (last.name) {
      case "Grep": {
        const file = last.text.split("\n")[0] ?? "";
        return call("Read", { file_path: `${folder}/${file}` }, `${failure.name} stands in ${file}.`);
      }
      case "Read": {
        const wasRefused = calls.some(({ name, isError }) => name === "Edit" && isError);
        return editOf(last, failure, wasRefused ? (line) => line : remember);
      }
      default:
        // An edit failed: whatever the reason, the current content of the file decides.
        return last.isError
          ? call("Read", { file_path: last.input.file_path ?? "" }, `That did not work: ${last.text.split("\n")[0]}`)
          : callTools([bash(TESTS)], "Now the tests again.");
    }
  };

const afterCommand = ({ text, isError }: SeenCall): SimAnswer => {
  const missing = /the rule (Bash\(.*?\)) would allow it/.exec(text)?.[1];
  if (isError && missing !== undefined)
    return callTools([bash(TESTS)], `That needs ${missing}, so I run the tests directly.`);
  const failure = failureIn(text);
  if (failure !== undefined)
    return call("Grep", { pattern: `const ${failure.name}\\b`, output_mode: "content" }, `${failure.name} is wrong.`);
  const [, passed] = /^# pass (\d+)$/m.exec(text) ?? [];
  return say(passed === undefined ? `The tests did not run: ${text}` : `All ${passed} tests pass.`);
};

const editOf = ({ text, input }: SeenCall, failure: Failure, remember: (line: string) => string): SimAnswer => {
  const line = linesShown(text).find((shown) => shown.includes(`const ${failure.name} =`)) ?? "";
  const better = mended(line, failure);
  if (better === undefined) return say(`I see no way to make ${failure.name} right.`);
  return call("Edit", { file_path: input.file_path ?? "", old_string: remember(line), new_string: better });
};
