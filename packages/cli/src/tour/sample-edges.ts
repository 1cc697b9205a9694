/** The outer parts of the sample service: routes, program, tests, pages and other files of a repository, as text.
 *  Invariant: pure; its tests pass, and the planted flaws are where the facts say.
 *  Elsewhere: its inner parts (sample-code.ts), the conventions (conventions.ts). */

import type { Domain, Field, FieldKind, Resource } from "./domains.ts";
import { capital, type Flaws, fieldsOf, lines, TITLE_LETTERS } from "./sample-code.ts";

export const routeFile = (): string => `/** What a route is, and which one a request is for. */

import type { Outcome } from "../types/outcome.ts";

export type Method = "GET" | "POST" | "DELETE";

export type Given = { readonly id: string; readonly body: unknown };

export type Route = {
  readonly method: Method;
  readonly path: string;
  readonly handle: (given: Given) => Outcome<unknown>;
};

export const route = (method: Method, path: string, handle: Route["handle"]): Route => ({ method, path, handle });

export type Matched = { readonly found: Route; readonly id: string };

/** The first that fits: a later one with the same path is never reached. */
export const match = (routes: readonly Route[], method: string, path: string): Matched | undefined => {
  const words = path.split("/");
  for (const found of routes) {
    const parts = found.path.split("/");
    const fits = parts.length === words.length && parts.every((part, at) => part === ":id" || part === words[at]);
    if (found.method === method && fits) return { found, id: words[parts.indexOf(":id")] ?? "" };
  }
  return undefined;
};
`;

export const routerFile = (resource: Resource, { alsoServes }: Flaws): string => {
  const { one, many, figure } = resource;
  const type = capital(one);
  return lines(
    `/** ${capital(many)} over HTTP. */`,
    "",
    `import type { ${type}Service } from "../service/${one}-service.ts";`,
    `import type { New${type} } from "../types/${one}.ts";`,
    'import { done } from "../types/outcome.ts";',
    'import { type Route, route } from "./route.ts";',
    "",
    `export const ${one}Routes = (service: ${type}Service): readonly Route[] => [`,
    `  route("GET", "/${many}", () => done(service.list())),`,
    `  route("GET", "/${many}/total", () => done({ ${figure.name}: service.total() })),`,
    `  route("GET", "/${many}/:id", ({ id }) => service.find(id)),`,
    `  route("POST", "/${many}", ({ body }) => service.add(body as New${type})),`,
    `  route("DELETE", "/${many}/:id", ({ id }) => service.remove(id)),`,
    alsoServes === undefined ? [] : `  route("GET", "/${alsoServes.many}/:id", ({ id }) => service.find(id)),`,
    "];",
  );
};

export const ROUTES_EACH = 5;

export const routerIndexFile = (resources: readonly Resource[]): string =>
  lines(
    "/** Every route, in the order in which they are tried. */",
    "",
    'import type { Services } from "../service/index.ts";',
    resources.map(({ one, many }) => `import { ${one}Routes } from "./${many}.ts";`),
    'import type { Route } from "./route.ts";',
    "",
    "export const allRoutes = (services: Services): readonly Route[] => [",
    resources.map(({ one, many }) => `  ...${one}Routes(services.${many}),`),
    "];",
  );

export const mainFile = (): string => `/** The program: routes behind a server on loopback. */

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { allRoutes } from "./router/index.ts";
import { match } from "./router/route.ts";
import { openServices } from "./service/index.ts";
import type { FailureKind } from "./types/outcome.ts";

const STATUS: Readonly<Record<FailureKind, number>> = { "not-found": 404, invalid: 400, conflict: 409 };

const routes = allRoutes(openServices(randomUUID));

const server = createServer(async (request, response) => {
  const matched = match(routes, request.method ?? "", (request.url ?? "").split("?")[0] ?? "");
  const answer = (status: number, value: unknown): void => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  };
  if (!matched) return answer(404, { kind: "not-found", message: "there is no such route" });
  const given = await text(request);
  const outcome = matched.found.handle({ id: matched.id, body: given === "" ? undefined : JSON.parse(given) });
  return outcome.ok ? answer(200, outcome.value) : answer(STATUS[outcome.failure.kind], outcome.failure);
});

server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1");
`;

const VALUES: Readonly<Record<FieldKind, string>> = {
  ...{ text: '"first"', count: "12", cents: "1250", moment: '"2026-03-01T09:00:00Z"', flag: "true" },
};

const filled = ({ name, kind }: Field): string => `${name}: ${VALUES[kind]}`;

/** The fields of a new row, with valid values. */
export const givenOf = (resource: Resource): string => fieldsOf(resource).map(filled).join(", ");

export const testFile = (resource: Resource, { skips = false }: Flaws): string => {
  const { one, many, title, figure } = resource;
  const type = capital(one);
  return lines(
    'import assert from "node:assert/strict";',
    'import { test } from "node:test";',
    `import { ${type}Service } from "../src/service/${one}-service.ts";`,
    'import { Store } from "../src/service/store.ts";',
    "",
    `const given = { ${givenOf(resource)} };`,
    "",
    `const open = (): ${type}Service => {`,
    "  let last = 0;",
    `  return new ${type}Service(new Store(), () => String((last += 1)));`,
    "};",
    "",
    `test("a ${one} that was added is found by its id", () => {`,
    "  const service = open();",
    '  assert.deepEqual(service.add(given), service.find("1"));',
    "});",
    "",
    `test("a second ${one} with the same ${title.name} is a conflict", () => {`,
    "  const service = open();",
    "  service.add(given);",
    "  const again = service.add(given);",
    '  assert.equal(again.ok ? "" : again.failure.kind, "conflict");',
    "});",
    "",
    `${skips ? "test.skip" : "test"}("the total is the sum of ${figure.name}", () => {`,
    "  const service = open();",
    `  for (const ${title.name} of ["a", "b"]) service.add({ ...given, ${title.name} });`,
    `  assert.equal(service.total(), 2 * given.${figure.name});`,
    `  assert.equal(service.list().length, 2, "both ${many} are listed");`,
    "});",
  );
};

export const tablesTestFile = (resources: readonly Resource[]): string => `import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { tables } from "../src/schema/index.ts";

test("every table is listed once", () => {
  const files = readdirSync(new URL("../src/schema", import.meta.url)).length - 2; // index.ts and table.ts
  assert.deepEqual([new Set(tables).size, tables.length], [files, ${resources.length}]);
});
`;

export const routesTestFile = ([first]: readonly Resource[]): string => {
  const many = first?.many ?? "";
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { allRoutes } from "../src/router/index.ts";
import { match } from "../src/router/route.ts";
import { openServices } from "../src/service/index.ts";

const routes = allRoutes(openServices(() => "1"));

test("a path with an id finds its route and the id", () => {
  const matched = match(routes, "GET", "/${many}/7");
  assert.deepEqual([matched?.found.path, matched?.id], ["/${many}/:id", "7"]);
});

test("words come before ids", () => {
  assert.equal(match(routes, "GET", "/${many}/total")?.found.path, "/${many}/total");
});

test("an unknown path has no route", () => {
  assert.equal(match(routes, "GET", "/nothing/at/all"), undefined);
});
`;
};

export const pageFile = (resource: Resource, { isUnfinished = false }: Flaws): string => {
  const { one, many, about, title } = resource;
  return lines(
    `# ${capital(many)}`,
    "",
    `A ${one} is ${about}.`,
    "",
    "| field | kind | meaning |",
    "|---|---|---|",
    fieldsOf(resource).map((field) => `| \`${field.name}\` | ${field.kind} | ${field.about} |`),
    "",
    "## Limits",
    "",
    isUnfinished ? "TBD" : `Two ${many} never have the same ${title.name}; it has at most ${TITLE_LETTERS} letters.`,
  );
};

export const errorsPage = (): string =>
  lines(
    "# Errors",
    "",
    "| kind | status | when |",
    "|---|---|---|",
    "| `not-found` | 404 | no row has this id, or no route fits |",
    "| `invalid` | 400 | a column does not fit; the message names each |",
    "| `conflict` | 409 | the title is taken |",
    "",
    "A body that is no JSON ends the request without an answer.",
  );

export const readmeFile = ({ service, about }: Domain, resources: readonly Resource[]): string =>
  lines(
    `# ${service}`,
    "",
    `${capital(about)}.`,
    "",
    "```sh",
    "npm start   # on port 8080, or $PORT",
    "npm test",
    "```",
    "",
    "| resource | what it is |",
    "|---|---|",
    resources.map(({ many, about: what }) => `| \`/${many}\` | ${what} |`),
  );

export const packageFile = ({ service, about }: Domain): string =>
  `${JSON.stringify(
    {
      ...{ name: service, version: "2.4.0", private: true, description: about, type: "module" },
      scripts: { start: "node src/main.ts", test: "node --test" },
      engines: { node: ">=24" },
    },
    null,
    2,
  )}\n`;

export const tsconfigFile = (): string =>
  `${JSON.stringify(
    {
      compilerOptions: {
        ...{ target: "es2024", module: "nodenext", strict: true, noEmit: true, noUncheckedIndexedAccess: true },
        ...{ allowImportingTsExtensions: true, erasableSyntaxOnly: true, verbatimModuleSyntax: true, types: ["node"] },
      },
      include: ["src", "test"],
    },
    null,
    2,
  )}\n`;
