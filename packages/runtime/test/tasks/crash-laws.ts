/** What must hold for tasks whose session was killed and resumed?
 *  Invariant: each law returns its violations in words, and nothing if it holds.
 *  Elsewhere: making such sessions (killed-family.ts). */

import { PARTS, type Resumed } from "./killed-family.ts";

type Law = (resumed: Resumed) => readonly string[];

const INTERRUPTED = /^Interrupted: .* effect is unknown/;

/** The end of a task reaches the model once: by a notification, as the result of its call, or by reading it. */
const eachEndIsHeardOnce: Law = ({ tasks, seen }) => [
  ...tasks.flatMap(({ id, label, state, result }) => {
    if (state.kind !== "ended") return [`${label} is ${state.kind} at the end`];
    const told = seen.notifications.filter(({ task }) => task === id);
    const given = seen.calls.filter(
      ({ name, input, result: text = "" }) =>
        (name === "TaskOutput" && text.includes(`${id} (${label}): ${state.end}`)) ||
        (name === "Agent" && input.description === label && text === result?.text),
    );
    const wrong = told.find(({ status, result: text }) => status !== state.end || text !== result?.text);
    return [
      ...(told.length + given.length === 1
        ? []
        : [`${label}, ${state.end}, was told ${told.length} times and given ${given.length} times`]),
      ...(wrong ? [`${label} was told as ${wrong.status}: ${wrong.result}`] : []),
    ];
  }),
  ...seen.notifications.flatMap(({ task }) =>
    tasks.some(({ id }) => id === task) ? [] : [`${task}, which is not there, was told`],
  ),
];

/** Every call that was answered as started has a task; every other call is known not to have started. */
const noCallIsForgotten: Law = ({ tasks, seen }) =>
  seen.calls.flatMap(({ name, input, result = "" }) => {
    if (name !== "Agent") return [];
    const isStarted = tasks.some(({ label }) => label === input.description);
    return isStarted || /^(Interrupted|Not run): /.test(result) ? [] : [`${input.description} was answered: ${result}`];
  });

const nothingStaysUnanswered: Law = ({ seen }) =>
  seen.calls.filter(({ result }) => result === undefined).map(({ name }) => `${name} was never answered`);

const endsAreTrue: Law = ({ left, tasks, interrupted, moment }) =>
  tasks.flatMap(({ label, id, state }) => {
    const before = left.find((task) => task.id === id);
    const wasCut = before !== undefined && before.state.kind !== "ended";
    const canGoOn = interrupted === "resume" && before?.session !== undefined;
    const expected = wasCut && !canGoOn ? "interrupted" : "reported";
    const end = state.kind === "ended" ? state.end : state.kind;
    return end === expected ? [] : [`${label}, ${before?.state.kind} at moment ${moment.at}, ended as ${end}`];
  });

/** What one task began is done by nobody else, and what it reports as done was done. */
const nothingRunsTwice: Law = ({ recorded, tasks }) =>
  PARTS.flatMap((part) => {
    const times = recorded.filter((one) => one === part).length;
    const own = tasks.filter(({ label }) => label === part);
    const claims = own.some(({ result }) => result?.text.includes(`Result: recorded ${part}`));
    const unknown = own.some(({ result }) =>
      result?.text.split("\n").some((line) => INTERRUPTED.test(line.replace(/^Result: /, ""))),
    );
    return [
      ...(own.length > 1 ? [`${part} was started ${own.length} times`] : []),
      ...(times > 1 ? [`${part} was recorded ${times} times`] : []),
      ...(claims && times !== 1 ? [`${part} claims what was recorded ${times} times`] : []),
      ...(own.some(({ state }) => state.kind === "ended" && state.end === "reported") && !claims && !unknown
        ? [`${part} reported without saying what came of its record`]
        : []),
    ];
  });

/** A task that was cut off is reported with what it had said. */
const partialWorkIsTold: Law = ({ left, tasks }) =>
  tasks.flatMap(({ label, id, state, session, result }) => {
    if (state.kind !== "ended" || state.end !== "interrupted" || session === undefined) return [];
    const was = left.find((task) => task.id === id)?.state.kind;
    const said = `session ended while this task was ${was}`;
    const place = `its entries are in session ${session}`;
    return result?.text.includes(said) && result.text.includes(place) ? [] : [`${label} was told as: ${result?.text}`];
  });

const goesOnWarm: Law = ({ warmth }) =>
  warmth.flatMap(({ label, had, read }) => (read >= had ? [] : [`${label} read ${read} of its own ${had} tokens`]));

const LAWS: Readonly<Record<string, Law>> = {
  ...{ eachEndIsHeardOnce, noCallIsForgotten, nothingStaysUnanswered, endsAreTrue, nothingRunsTwice },
  ...{ partialWorkIsTold, goesOnWarm },
};

/** The violations, with the moment at which the first run was killed. */
export const broken = (resumed: Resumed): readonly string[] => {
  const { moment, interrupted } = resumed;
  return Object.entries(LAWS).flatMap(([name, law]) =>
    law(resumed).map((words) => `cut off at moment ${moment.at} (${moment.where}), ${interrupted}: ${name}: ${words}`),
  );
};

/** Which task states were met by a kill, so that a caller can see what was tested. */
export const casesOf = ({ left, interrupted }: Resumed): readonly string[] =>
  left.flatMap(({ state, session }) =>
    state.kind === "ended" ? [] : [`${interrupted} ${state.kind}${session === undefined ? " without a journal" : ""}`],
  );
