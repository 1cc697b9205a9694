/** Is this an extension? Asked of what a module returns, since nobody checked its types.
 *  Invariant: what passes can be used without further questions; what does not is refused with the field and what was
 *  expected there.
 *  Elsewhere: the contract (extension.ts), loading modules (modules.ts). */

import { createRegistry, type Tool } from "../tools/index.ts";
import type { Extension, ExtensionFactory } from "./extension.ts";

const FIELDS: readonly string[] = ["name", "tools", "sections", "on", "open"];
const HOOKS: readonly string[] = [
  ...["beforeCall", "afterCall", "promptEntered", "beforeCompaction", "sessionOpened", "exchangeEnded"],
  ...["forkStarted", "taskEnded", "sessionClosed"],
];
const NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;

type Fields = Readonly<Record<string, unknown>>;

export const checkedFactory = (factory: unknown): ExtensionFactory => {
  if (typeof factory !== "function") throw new TypeError("its default export must be a function (api) => extension");
  return factory as ExtensionFactory;
};

/** `fallback`: its name where it gives none. */
export const checkedExtension = (made: unknown, fallback: string): Extension => {
  const fields = objectIn(made, "what it returns");
  const { name = fallback, tools = [], sections = [], on, open } = fields;
  const unknown = Object.keys(fields).find((key) => !FIELDS.includes(key));
  if (unknown !== undefined) throw new TypeError(`${unknown} is no field of an extension; it has ${FIELDS.join(", ")}`);
  if (typeof name !== "string" || !NAME.test(name)) throw new TypeError("name must be letters, digits, _, . and -");
  const listed = listIn(tools, "tools").map(checkedTool);
  createRegistry(listed); // names and schemas
  const texts = listIn(sections, "sections").map((section, at) => {
    const { name: title, text } = objectIn(section, `sections[${at}]`);
    if (typeof title !== "string" || !NAME.test(title) || typeof text !== "string")
      throw new TypeError(`sections[${at}] must have name and text`);
    return { name: title, text };
  });
  if (open !== undefined && typeof open !== "function") throw new TypeError("open must be a function");
  return {
    ...{ name, tools: listed, sections: texts },
    ...(on === undefined ? {} : { on: checkedHooks(on) }),
    ...(open === undefined ? {} : { open: open as NonNullable<Extension["open"]> }),
  };
};

const checkedTool = (given: unknown, at: number): Tool => {
  const { name, description, input, readOnly, run, touches } = objectIn(given, `tools[${at}]`);
  const wrong = (field: string, wanted: string): never => {
    throw new TypeError(`tools[${at}].${field} must be ${wanted}`);
  };
  if (typeof name !== "string") wrong("name", "text");
  if (typeof description !== "string") wrong("description", "text");
  if (typeof (input as { readonly safeParse?: unknown } | undefined)?.safeParse !== "function")
    wrong("input", "a schema, as api.z.object makes it");
  if (typeof readOnly !== "boolean") wrong("readOnly", "true or false");
  if (typeof run !== "function") wrong("run", "a function");
  if (touches !== undefined && typeof touches !== "function") wrong("touches", "a function");
  return given as Tool;
};

const checkedHooks = (given: unknown): NonNullable<Extension["on"]> => {
  for (const [hook, called] of Object.entries(objectIn(given, "on"))) {
    if (!HOOKS.includes(hook)) throw new TypeError(`on.${hook} is no hook; there are ${HOOKS.join(", ")}`);
    if (typeof called !== "function") throw new TypeError(`on.${hook} must be a function`);
  }
  return given as NonNullable<Extension["on"]>;
};

const objectIn = (value: unknown, what: string): Fields => {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new TypeError(`${what} must be an object`);
  return value as Fields;
};

const listIn = (value: unknown, what: string): readonly unknown[] => {
  if (!Array.isArray(value)) throw new TypeError(`${what} must be a list`);
  return value;
};
