/** The core of the sample service: its types, tables and services, as text.
 *  Invariant: pure; the generated TypeScript compiles in strict mode and runs without a build, even with planted faults.
 *  Elsewhere: routes, tests and pages (sample-edges.ts), which faults are planted (sample.ts), its conventions
 *  (conventions.ts). */

import type { Field, FieldKind, Resource } from "./domains.ts";

/** The planted faults of one thing. Each part of the job has to find one kind of them. */
export type Flaws = {
  readonly isDeprecated?: boolean; // a column that should be removed
  readonly todos?: readonly Todo[];
  readonly alsoServes?: Resource; // a route that another file already has
  readonly skips?: boolean; // one of its tests is skipped
  readonly isTested?: boolean; // default: true
  readonly isDocumented?: boolean; // default: true
  readonly isUnfinished?: boolean; // its page is incomplete
};

export type Todo = "fails" | "page" | "unit";

export const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`;

export const fieldsOf = ({ title, figure, more }: Resource): readonly Field[] => [title, figure, ...more];

export const lines = (...all: readonly (string | readonly string[])[]): string => `${all.flat().join("\n")}\n`;

const TYPES: Readonly<Record<FieldKind, string>> = {
  ...{ text: "string", count: "number", cents: "number", moment: "string", flag: "boolean" },
};

export const typesFile = (resource: Resource): string => {
  const type = capital(resource.one);
  return lines(
    `/** A ${resource.one} as callers see it: ${resource.about}. */`,
    `export type ${type} = {`,
    "  readonly id: string;",
    fieldsOf(resource).flatMap(({ name, kind, about }) => [
      `  /** ${capital(about)}. */`,
      `  readonly ${name}: ${TYPES[kind]};`,
    ]),
    "};",
    "",
    `export type New${type} = Omit<${type}, "id">;`,
  );
};

export const outcomeFile =
  (): string => `/** What a service answers: a value, or why there is none. Nobody throws for what callers can cause. */
export type FailureKind = "not-found" | "invalid" | "conflict";

export type Failure = { readonly kind: FailureKind; readonly message: string };

export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: Failure };

export const done = <T>(value: T): Outcome<T> => ({ ok: true, value });

export const failed = (kind: FailureKind, message: string): Outcome<never> => ({
  ok: false,
  failure: { kind, message },
});
`;

export const TITLE_LETTERS = 80;

const columnOf = ({ kind }: Field): string => `column.${kind}(${kind === "text" ? `{ most: ${TITLE_LETTERS} }` : ""})`;

export const schemaFile = (resource: Resource, { isDeprecated = false }: Flaws): string =>
  lines(
    `/** How a ${resource.one} is kept: ${resource.about}. */`,
    "",
    'import { column, table } from "./table.ts";',
    "",
    `export const ${resource.many} = table("${resource.many}", {`,
    "  id: column.id(),",
    fieldsOf(resource).map((field) => `  ${field.name}: ${columnOf(field)},`),
    isDeprecated
      ? [
          `  /** @deprecated since 2.3: use ${resource.title.name} */`,
          "  oldCode: column.text({ most: 12, isOptional: true }),",
        ]
      : [],
    "});",
  );

export const tableFile =
  (): string => `/** Tables as data: what a row may hold, and what is wrong with one that holds something else. */
export type Kind = "id" | "text" | "count" | "cents" | "moment" | "flag";

export type Column = { readonly kind: Kind; readonly most?: number; readonly isOptional?: boolean };

export type Table = { readonly name: string; readonly columns: Readonly<Record<string, Column>> };

export const table = (name: string, columns: Table["columns"]): Table => ({ name, columns });

export const column = {
  id: (): Column => ({ kind: "id" }),
  text: (rules: { readonly most?: number; readonly isOptional?: boolean } = {}): Column => ({ kind: "text", ...rules }),
  count: (): Column => ({ kind: "count" }),
  cents: (): Column => ({ kind: "cents" }),
  moment: (): Column => ({ kind: "moment" }),
  flag: (): Column => ({ kind: "flag" }),
};

const fits: Readonly<Record<Kind, (value: unknown) => boolean>> = {
  id: (value) => typeof value === "string" && value !== "",
  text: (value) => typeof value === "string",
  count: (value) => Number.isInteger(value) && Number(value) >= 0,
  cents: (value) => Number.isInteger(value),
  moment: (value) => typeof value === "string" && !Number.isNaN(Date.parse(value)),
  flag: (value) => typeof value === "boolean",
};

/** One sentence for each column that does not fit. An id is given later, so it may be absent. */
export const problemsIn = ({ columns }: Table, row: Readonly<Record<string, unknown>>): readonly string[] =>
  Object.entries(columns).flatMap(([name, { kind, most, isOptional }]) => {
    const value = row[name];
    if (value === undefined && (isOptional || kind === "id")) return [];
    if (!fits[kind](value)) return [\`\${name} must be a \${kind}\`];
    return most !== undefined && String(value).length > most ? [\`\${name} has more than \${most} letters\`] : [];
  });
`;

export const schemaIndexFile = (resources: readonly Resource[]): string =>
  lines(
    "/** Every table, in the order in which they are made. */",
    "",
    resources.map(({ one, many }) => `import { ${many} } from "./${one}.ts";`),
    'import type { Table } from "./table.ts";',
    "",
    `export const tables: readonly Table[] = [${resources.map(({ many }) => many).join(", ")}];`,
  );

export const storeFile = (): string => `/** Rows by their id, in memory: the one place that holds state. */
export class Store<Row extends { readonly id: string }> {
  readonly #rows = new Map<string, Row>();

  all(): readonly Row[] {
    return [...this.#rows.values()];
  }

  find(id: string): Row | undefined {
    return this.#rows.get(id);
  }

  put(row: Row): void {
    this.#rows.set(row.id, row);
  }

  drop(id: string): void {
    this.#rows.delete(id);
  }
}
`;

const todoLine = (todo: Todo, { many, title, figure }: Resource): string => {
  switch (todo) {
    case "fails":
      return `    // TODO: fails when two ${many} with one ${title.name} come at once, the check is not atomic`;
    case "page":
      return `    // TODO: page this, some offices have thousands of ${many}`;
    case "unit":
      return `    // TODO: state the unit of ${figure.name} in the answer`;
  }
};

export const serviceFile = (resource: Resource, { todos = [] }: Flaws): string => {
  const { one, many, title, figure } = resource;
  const type = capital(one);
  const todo = (kind: Todo): readonly string[] => (todos.includes(kind) ? [todoLine(kind, resource)] : []);
  return lines(
    `/** ${capital(many)}: adding, finding and removing them. */`,
    "",
    `import { ${many} } from "../schema/${one}.ts";`,
    'import { problemsIn } from "../schema/table.ts";',
    `import type { New${type}, ${type} } from "../types/${one}.ts";`,
    'import { done, failed, type Outcome } from "../types/outcome.ts";',
    'import type { Store } from "./store.ts";',
    "",
    `export class ${type}Service {`,
    `  readonly #store: Store<${type}>;`,
    "  readonly #nextId: () => string;",
    "",
    `  constructor(store: Store<${type}>, nextId: () => string) {`,
    "    this.#store = store;",
    "    this.#nextId = nextId;",
    "  }",
    "",
    `  list(): readonly ${type}[] {`,
    todo("page"),
    `    return this.#store.all().toSorted((a, b) => a.${title.name}.localeCompare(b.${title.name}));`,
    "  }",
    "",
    `  find(id: string): Outcome<${type}> {`,
    "    const found = this.#store.find(id);",
    `    return found ? done(found) : failed("not-found", \`there is no ${one} \${id}\`);`,
    "  }",
    "",
    `  add(given: New${type}): Outcome<${type}> {`,
    `    const problems = problemsIn(${many}, given);`,
    '    if (problems.length > 0) return failed("invalid", problems.join("; "));',
    todo("fails"),
    `    const isTaken = this.#store.all().some(({ ${title.name} }) => ${title.name} === given.${title.name});`,
    `    if (isTaken) return failed("conflict", \`there is a ${one} \${given.${title.name}} already\`);`,
    `    const added: ${type} = { ...given, id: this.#nextId() };`,
    "    this.#store.put(added);",
    "    return done(added);",
    "  }",
    "",
    `  remove(id: string): Outcome<${type}> {`,
    "    const found = this.find(id);",
    "    if (found.ok) this.#store.drop(id);",
    "    return found;",
    "  }",
    "",
    `  /** The sum of ${figure.name} over all ${many}. */`,
    "  total(): number {",
    todo("unit"),
    `    return this.#store.all().reduce((sum, { ${figure.name} }) => sum + ${figure.name}, 0);`,
    "  }",
    "}",
  );
};

export const serviceIndexFile = (resources: readonly Resource[]): string =>
  lines(
    "/** All services, each with a store of its own. */",
    "",
    resources.map(({ one }) => `import { ${capital(one)}Service } from "./${one}-service.ts";`),
    'import { Store } from "./store.ts";',
    "",
    "export type Services = ReturnType<typeof openServices>;",
    "",
    "export const openServices = (nextId: () => string) => ({",
    resources.map(({ one, many }) => `  ${many}: new ${capital(one)}Service(new Store(), nextId),`),
    "});",
  );
