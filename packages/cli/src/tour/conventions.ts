/** The AGENTS.md of the sample service, as long as those of real projects.
 *  Invariant: pure; it describes the generated code, so that the planted flaws break its own rules. It is most of the
 *  parent's prompt, which the forks share.
 *  Elsewhere: that code (sample-code.ts, sample-edges.ts). */

import type { Domain, Resource } from "./domains.ts";
import { capital, fieldsOf, schemaFile, serviceFile, TITLE_LETTERS, typesFile } from "./sample-code.ts";
import { givenOf, routerFile, testFile } from "./sample-edges.ts";

const opening = ({ service, about }: Domain, resources: readonly Resource[]): string => `# Working on ${service}

This service keeps ${about}. It is small on purpose: one process, no database, no framework, no build step. Whoever opens it for the first time should be able to follow a request from the socket to the row and back within ten minutes, and every rule below exists because somebody once could not.

Read this page before you change anything. Where code and page disagree, the page is right and the code is a fault, unless the commit that introduced the difference says why.

## Layout

| folder | holds | may import |
|---|---|---|
| \`src/types\` | what callers see, and how a service answers; no logic beyond two constructors | nothing |
| \`src/schema\` | one table a file, as data, and the one function that checks a row | nothing |
| \`src/service\` | one class a resource: the rules of the trade | types, schema |
| \`src/router\` | one list of routes a resource: HTTP and nothing else | types, service |
| \`src/main.ts\` | the server; the only file that knows sockets, the environment and chance | everything |
| \`test\` | one file a service, and one for the router | everything but main |
| \`docs\` | one page a resource, one for errors | |

Arrows point one way. A service that needs another resource gets what it needs as an argument from the router; it never imports a second service. The schema never imports a type: the type is what callers see, the table is what is kept, and a column may exist for a while that no caller sees any more.

## Words

Use these words in names, messages and pages, and no others for the same thing. A reader who searches for a word must find all of it.

${resources.map(({ one, many, about: what }) => `- **${one}** (plural ${many}): ${what}.`).join("\n")}
- **row**: one ${resources[0]?.one ?? "thing"} or other resource as the store holds it, with its id.
- **outcome**: what a service answers: a value, or a failure with a kind and a sentence.
- **title**: the column by which people call a row; two rows of one table never share it.
- **figure**: the column that is added up for the total.
- **office**: one customer of ours. Each has a process of its own, so no row carries an office.
`;

const schemaRules = (): string => `## Schema

- One table a file, named after one row (\`src/schema/<one>.ts\`), exported under the plural. The first column is the id, then the title, then the figure, then the rest in the order in which people ask for them.
- Columns have one of six kinds: id, text, count, cents, moment, flag. A seventh needs a page in docs first, since every kind has to be explained to whoever fills in a form.
- A count is a whole number that is never negative. An amount of money is cents, a whole number; there are no floating amounts anywhere, not even between two lines of one function. A moment is text in ISO 8601 with a zone; local times are for screens.
- Text has a limit. ${TITLE_LETTERS} letters are the default because that is what the label printer takes. A longer limit is a decision of the office, not of a programmer.
- A column that goes away is marked as deprecated for one minor version, with the column to use instead, and becomes optional at once. It is dropped in the version after. At most one version carries the mark; if you find an older one, drop it.
- Tables are listed in \`src/schema/index.ts\` in the order in which rows depend on each other. Adding a table without listing it is the mistake that is made most often; \`test/tables.test.ts\` has caught it every time.
`;

const serviceRules = (): string => `## Services

- A service takes its store and its source of ids as arguments and has no other state. Two services opened with the same arguments behave the same, which is what makes them testable without a server.
- \`list\`, \`find\`, \`add\`, \`remove\` and \`total\` mean the same in every service. Anything beyond these five is a word of the trade and gets a sentence above it that says when somebody would call it.
- What a caller can cause is an outcome, never an exception: \`failed("not-found" | "invalid" | "conflict", sentence)\`. An exception means that we have made a mistake; it ends the process, and the office is without its books until somebody looks. So there is no \`throw\` in \`src/service\`.
- Messages are for the person at the desk: lower case, no full stop, the value that was wrong, the column as it is called in docs. No ids of ours unless they typed one. Never "error", never "please".
- Check first, then write. A row that was refused has left no trace. Checks go from cheap to dear: shape of the row, then titles, then whatever needs a search.
- Titles are compared as they were typed. Offices have tried lower case, trimming and accents, and each time two rows were one to the machine and two to the people.
- A list is sorted by title, with the rules of the reader's language. Nobody relies on the order in which rows were added.
- A note that something is left to do begins with its mark, names what fails or what is missing, and can be understood without the person who wrote it. A mark without a consequence is deleted in review.
`;

const routerRules = (): string => `## Router

- One file a resource, named after the plural, exporting one list. A route is one line: method, path, and a call of the service. If it does not fit into a line, the logic belongs to the service.
- Paths are the plural, then an id or a word: \`/things\`, \`/things/:id\`, \`/things/total\`. Words stand before ids in the list, because the first route that fits is taken and an id fits everything.
- A method and a path stand in one place in the whole router. The second one is never reached, and nobody is told: requests simply go to the other service. When a resource moves to a file of its own, its old lines go in the same commit.
- GET changes nothing. POST adds one row and answers with it. DELETE answers with the row that is gone, so that a desk can undo it by adding it again. There is no PUT: a row is removed and added, and gets a new id.
- The router casts a body to the type that the service wants and checks nothing. The service checks everything, since it is also called by imports that never see HTTP.
- Status codes come from the kind of a failure, in \`src/main.ts\`, and from nowhere else.
`;

const testRules = ({ one, title }: Resource): string => `## Tests

- \`node --test\`, no library. Each service has a file \`test/<one>-service.test.ts\`; a service without one does not go out.
- A test is named by what holds, in words of this page ("a second ${one} with the same ${title.name} is a conflict"), and compares whole values where it can. No test looks at a message beyond its kind.
- Each test opens its own service over an empty store. Nothing is shared but constants, ids are counted from one, and no test waits for time to pass.
- A test that is skipped says for whom and until when in the line above it, or it is deleted. A skipped test that nobody can explain has cost us a release.
- The tests of the router use no server. Whether the socket works is what the smoke test of the deployment is for.
`;

const otherRules = (): string => `## Types and pages

- A type file has the type as callers see it and the type of a new row, which is the same without the id. Each field has a sentence. All fields are readonly.
- Each resource has a page in docs with a table of its fields and a section on limits. A page is written with the change it describes; "later" has never come. A section that cannot be filled yet is left out, not marked.
- \`docs/errors.md\` is what the desk reads when something is refused. A new kind of failure is a change to that page first.

## Style

- TypeScript that Node runs as it is: no enums, no namespaces, no parameter properties. Imports end in \`.ts\`. Named exports only.
- Names are words. Booleans begin with is or has. Functions are verbs, or nouns for what they give back. No abbreviation that is not on the quay, in the shelf or on the packet.
- Functions are short enough to be read without scrolling; past two arguments they take one object. No function takes a boolean.
- Comments say why. What the code does is said by its names, and what it used to do is said by git.
- State has an owner, and it is a store. There is no \`let\` outside of a function.

## Money, time and chance

Amounts are added in cents and shown by the desk. Percentages are whole numbers of hundredths, applied once, at the end, and rounded half to even, because that is what the tax office does. The service never asks what time it is: a moment is given by the caller, and tests give fixed ones. Ids come from the argument of the service; only the program makes random ones.

## Changing something

1. Say in one sentence what a person at the desk will notice. If there is nothing, say who else notices.
2. Change the page in docs, then the type, then the table, then the service, then the router, then the tests. Each of these reads like a short list of consequences of the one before.
3. Run the tests. Read the difference once as if somebody else had written it.
4. Commit with an imperative subject of at most 60 letters and a body that says why. One change a commit; a rename is a change.
5. Versions: a column or a route that is gone is a new major one, an added one is minor, everything else is a patch.

## Review

Look in this order, and stop at the first thing that is wrong: is it needed; does it stand in the right folder; is it correct for an empty store, for one row and for two rows with the same title; do messages make sense to somebody who has never seen the code; is there a page, a type, a table, a service, a route and a test, and do they agree. Faults that come back: a table that is not listed, a route that stands twice, a service that throws, a test that was skipped "for now", a page that says nothing under limits, a deprecated column that outlived its version.
`;

const runningRules = ({ service }: Domain): string => `## Running it

- \`npm start\` listens on loopback only. Whatever stands in front of it (a proxy, a tunnel) speaks for who may call; this service knows no users and no passwords, and must never listen anywhere else.
- One process an office. It keeps its rows in memory and starts empty; the import of the evening before fills it within a second. So a restart is always a way out, and nobody is afraid of it.
- There is no configuration beyond the port. Whatever somebody wanted to configure so far turned out to be a rule of the trade, and stands in a service with a sentence above it.
- It writes nothing to the disk and nothing to standard output. What went wrong is in the answer; what was asked is in the log of the proxy. A line that is printed "for now" is a fault in review.
- Memory is flat: a row is an object, a store is a map, and a request leaves nothing behind. An office with ten thousand rows takes less than the runtime itself.
- A new version of \`${service}\` goes to one office for a week, the one that calls us most, and then to all on one morning. There is no switch that turns half of it on.
`;

const answers = (): string => `## Answers to questions that come back

**Why no database?** The import is the truth, and it comes every evening from a system that we do not own. Two truths would have to be kept alike, and the code for that was once larger than all of this.

**Why is a row replaced instead of changed?** Because the desk works from paper. A paper that says something else than the screen is found at once when the id on it is gone, and never when a field was changed below it.

**Why are there no dates as objects?** A moment crosses three programs and two languages on its way to the notice board. As text it arrives as it was sent. Whoever needs to compute with it parses it in the function that computes, and gives text back.

**Why does the router not check bodies?** The import calls the services without it. A check that only the router made was passed by one night's import, and the rows stayed for a week.

**May I add a helper file?** If two services need the same five lines, they are a word of the trade that has no name yet. Find the name, and the file is called that. Files called helper, util, common or misc are deleted.

**May I add a dependency?** Bring its source, its licence, the number of files it installs, and the thirty lines that we would write instead. So far the thirty lines have won each time.

**How large may a change be?** One resource, or one rule over all resources, and never both. A change that touches every service is done by hand, one file after another, and read in the same way; a script that rewrites them has twice rewritten a message that a person at the desk knew by heart.

**What do I do with a fault that is not mine?** If it is in the folder that you are working on, repair it in a commit of its own before yours. If it is elsewhere, write down the file and the line and what should stand there. Do not leave a mark in the code for it: marks are for what the author of that line knows.

**Who decides?** Whoever is called when it breaks.
`;

const resourceSection = (resource: Resource): string => {
  const { one, many, about, title, figure } = resource;
  const rows = fieldsOf(resource).map(({ name, kind, about: meaning }) => `| \`${name}\` | ${kind} | ${meaning} |`);
  return `### ${capital(many)}

A ${one} is ${about}. Title: \`${title.name}\`. Figure: \`${figure.name}\`. Files: \`src/types/${one}.ts\`, \`src/schema/${one}.ts\`, \`src/service/${one}-service.ts\`, \`src/router/${many}.ts\`, \`test/${one}-service.test.ts\`, \`docs/${many}.md\`.

| field | kind | meaning |
|---|---|---|
${rows.join("\n")}

Adding one is \`POST /${many}\` with \`{ ${givenOf(resource)} }\`; the answer is the same with its id. \`GET /${many}\` lists all by \`${title.name}\`, \`GET /${many}/total\` answers \`{ ${figure.name}: … }\`.
`;
};

const fenced = (path: string, text: string): string => `\`${path}\`\n\n\`\`\`ts\n${text}\`\`\`\n`;

/** One resource as it should look: what is planted elsewhere is not in it. */
const wholeExample = (resource: Resource): string => {
  const { one, many } = resource;
  return [
    "## One resource, whole\n",
    `This is how ${many} look when every rule is kept. Copy the shape, not the words.\n`,
    fenced(`src/types/${one}.ts`, typesFile(resource)),
    fenced(`src/schema/${one}.ts`, schemaFile(resource, {})),
    fenced(`src/service/${one}-service.ts`, serviceFile(resource, {})),
    fenced(`src/router/${many}.ts`, routerFile(resource, {})),
    fenced(`test/${one}-service.test.ts`, testFile(resource, {})),
  ].join("\n");
};

export const conventionsFile = (domain: Domain, resources: readonly [Resource, ...(readonly Resource[])]): string =>
  [
    opening(domain, resources),
    schemaRules(),
    serviceRules(),
    routerRules(),
    testRules(resources[0]),
    otherRules(),
    runningRules(domain),
    answers(),
    ["## Resources\n", ...resources.map(resourceSection)].join("\n"),
    wholeExample(resources[0]),
  ].join("\n");
