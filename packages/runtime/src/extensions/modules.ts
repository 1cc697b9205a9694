/** Which extensions are a user's own? TypeScript or JavaScript modules named in the user's settings, and those in
 *  `.prefork/extensions/` of a trusted folder.
 *  Invariant: an untrusted folder is not even inspected. Every file loaded from a trusted folder has the bytes that
 *  were trusted. A module only imports from its own folder and from `node:`. A module that cannot be used is skipped
 *  with its file and the reason; for an invalid extension that is the field and what was expected.
 *  Elsewhere: the contract (extension.ts), trust (@prefork/guard). */

import { lstat, readdir, realpath } from "node:fs/promises";
import { registerHooks } from "node:module";
import { basename, dirname, extname, join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { tamperingRisk } from "@prefork/guard";
import { isEntryOf } from "@prefork/guard/internal";
import * as z from "zod";
import { createRegistry, defineTool, failed, type Tool } from "../tools/index.ts";
import type { Extension, ExtensionContext, ExtensionFactory, LiveExtension } from "./extension.ts";
import { openLive } from "./open.ts";

export type ExtensionSources = {
  readonly project: string;
  /** The project's modules are only used if this is true. */
  readonly trusted: boolean;
  /** Hashes of the trusted files, by name. */
  readonly entries?: Readonly<Record<string, string>>;
  /** Modules named in the user's settings: absolute paths. */
  readonly settings: readonly string[];
};

export const EXTENSIONS_FOLDER = ".prefork/extensions";

const MODULE = /^[^.].*\.(?:ts|mts|js|mjs)$/;
const DECLARATIONS = /\.d\.m?ts$/;

/** The time limit for loading a module. */
const LOAD_MS = 10_000;

/** No module is loaded before its session opens. */
export const readExtensions = async (places: ExtensionSources): Promise<readonly Extension[]> => [
  ...places.settings.map((file) => moduleExtension({ file, isOwn: true })),
  ...(places.trusted ? await projectModules(places) : []),
];

/** Files of the folder, and its subfolders that have an `index` file. Other subfolders are for their use. */
const projectModules = async ({ project: given, entries }: ExtensionSources): Promise<readonly Extension[]> => {
  const project = await realpath(given);
  const folder = join(project, EXTENSIONS_FOLDER);
  const real = await realpath(folder).catch(() => folder);
  if (real !== folder) return [refusedExtension(folder, "it is a link, or behind one; only a plain folder is loaded")];
  const found = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const files = await Promise.all(
    found.map(async (entry): Promise<readonly string[]> => {
      const path = join(folder, entry.name);
      if (entry.isFile()) return isModule(entry.name) ? [path] : [];
      const inside = entry.isDirectory() ? await readdir(path) : [];
      return inside.filter((name) => isModule(name) && name.startsWith("index.")).map((name) => join(path, name));
    }),
  );
  const trusted = entries ? { trusted: { project, entries } } : {};
  return files
    .flat()
    .sort()
    .map((file) => moduleExtension({ file, isOwn: false, ...trusted }));
};

const refusedExtension = (name: string, reason: string): Extension => ({
  name,
  open: () => Promise.reject(new Error(reason)),
});

const isModule = (name: string): boolean => MODULE.test(name) && !DECLARATIONS.test(name);

type ModuleFile = {
  readonly file: string;
  /** The user's own, not a project's. */
  readonly isOwn: boolean;
  readonly trusted?: { readonly project: string; readonly entries: Readonly<Record<string, string>> };
};

const nameOf = (file: string): string => {
  const name = basename(file, extname(file));
  return name === "index" ? basename(dirname(file)) : name;
};

const moduleExtension = (module: ModuleFile): Extension => ({
  name: module.file,
  open: async (context) => {
    try {
      return await loadModule(module, context);
    } catch (error) {
      throw new Error(reasonOf(error), { cause: error });
    }
  },
});

const loadModule = async (module: ModuleFile, context: ExtensionContext): Promise<LiveExtension> => {
  const { file, isOwn } = module;
  const stats = await lstat(file).catch(() => undefined);
  if (!stats) throw new Error("there is no such file");
  if (!isModule(basename(file))) throw new Error("its name must end in .ts, .mts, .js or .mjs");
  if (!isOwn && !stats.isFile()) throw new Error("it is not a plain file");
  const risk = isOwn ? await tamperingRisk(file) : undefined;
  if (risk !== undefined) throw new Error(`${risk}; make it yours alone (chown, chmod go-w)`);
  const path = await realpath(file);
  const hooks = confineImports(dirname(path), module);
  try {
    const work = (async () => {
      const { default: factory } = (await import(pathToFileURL(path).href)) as { readonly default?: unknown };
      const made = await checkFactory(factory)({ cwd: context.cwd, z, defineTool, failed });
      const extension = checkExtension(made, nameOf(file));
      return { name: extension.name, ...(await openLive(extension, context)) };
    })();
    const live = await withTimeout(work);
    return {
      ...live,
      close: async () => {
        await live.close?.();
        hooks.deregister();
      },
    };
  } catch (error) {
    hooks.deregister();
    throw error;
  }
};

const withTimeout = async <T>(work: Promise<T>): Promise<T> => {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`it took longer than ${LOAD_MS} ms to load`)), LOAD_MS);
  work.catch(() => {}); // if it fails later, nobody waits for it any more
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
};

/** While the extension is open: imports from this folder must stay in it, and have the trusted bytes. */
const confineImports = (folder: string, { trusted }: ModuleFile): ReturnType<typeof registerHooks> => {
  const root = pathToFileURL(`${folder}${sep}`).href;
  const isInside = (url: string | undefined): boolean => url?.startsWith(root) === true;
  return registerHooks({
    resolve: (specifier, context, next) => {
      if (!isInside(context.parentURL)) return next(specifier, context);
      const resolved = undefinedOnError(() => next(specifier, context));
      if (resolved?.url.startsWith("node:") || isInside(resolved?.url)) return next(specifier, context);
      const from = relative(folder, fileURLToPath(context.parentURL ?? root));
      if (resolved === undefined && /^\.{0,2}\//.test(specifier)) return next(specifier, context); // there is no such file
      throw new Error(
        `${from} imports ${specifier}, which is outside ${folder}; only its own folder and node: are allowed`,
      );
    },
    load: (url, context, next) => {
      const given = next(url, context);
      if (!trusted || !isInside(url)) return given;
      const name = relative(trusted.project, fileURLToPath(url)).split(sep).join("/");
      const { source } = given;
      const bytes = typeof source === "string" ? Buffer.from(source) : source;
      const isTrusted = name.startsWith(`${EXTENSIONS_FOLDER}/`) && Object.hasOwn(trusted.entries, name);
      if (!bytes || !isTrusted || !isEntryOf(trusted.entries[name], Buffer.from(bytes as Uint8Array)))
        throw new Error(
          `${name} has changed since you trusted it; review it, then trust the folder again: prefork trust`,
        );
      return given;
    },
  });
};

const undefinedOnError = <T>(resolve: () => T): T | undefined => {
  try {
    return resolve();
  } catch {
    return undefined;
  }
};

const reasonOf = (error: unknown): string =>
  error instanceof Error ? `${error.name === "Error" ? "" : `${error.name}: `}${error.message}` : String(error);

/** Checks what a module exports, because nothing has checked its types. What passes can be used without further
 *  checks. */

const FIELDS: readonly string[] = ["name", "tools", "sections", "on", "open"];
const HOOKS: readonly string[] = [
  ...["beforeCall", "afterCall", "promptEntered", "beforeCompaction", "sessionOpened", "exchangeEnded"],
  ...["forkStarted", "taskEnded", "sessionClosed"],
];
const NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;

type Fields = Readonly<Record<string, unknown>>;

export const checkFactory = (factory: unknown): ExtensionFactory => {
  if (typeof factory !== "function") throw new TypeError("its default export must be a function (api) => extension");
  return factory as ExtensionFactory;
};

/** `fallback`: its name if it gives none. */
export const checkExtension = (made: unknown, fallback: string): Extension => {
  const fields = requireObject(made, "what it returns");
  const { name = fallback, tools = [], sections = [], on, open } = fields;
  const unknown = Object.keys(fields).find((key) => !FIELDS.includes(key));
  if (unknown !== undefined)
    throw new TypeError(`${unknown} is not a field of an extension; the fields are ${FIELDS.join(", ")}`);
  if (typeof name !== "string" || !NAME.test(name)) throw new TypeError("name must be letters, digits, _, . and -");
  const listed = requireList(tools, "tools").map(checkTool);
  createRegistry(listed); // checks names and schemas
  const texts = requireList(sections, "sections").map((section, at) => {
    const { name: title, text } = requireObject(section, `sections[${at}]`);
    if (typeof title !== "string" || !NAME.test(title) || typeof text !== "string")
      throw new TypeError(`sections[${at}] must have name and text`);
    return { name: title, text };
  });
  if (open !== undefined && typeof open !== "function") throw new TypeError("open must be a function");
  return {
    ...{ name, tools: listed, sections: texts },
    ...(on === undefined ? {} : { on: checkHooks(on) }),
    ...(open === undefined ? {} : { open: open as NonNullable<Extension["open"]> }),
  };
};

const checkTool = (given: unknown, at: number): Tool => {
  const { name, description, input, readOnly, run, touches } = requireObject(given, `tools[${at}]`);
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

const checkHooks = (given: unknown): NonNullable<Extension["on"]> => {
  for (const [hook, called] of Object.entries(requireObject(given, "on"))) {
    if (!HOOKS.includes(hook)) throw new TypeError(`on.${hook} is not a hook; the hooks are ${HOOKS.join(", ")}`);
    if (typeof called !== "function") throw new TypeError(`on.${hook} must be a function`);
  }
  return given as NonNullable<Extension["on"]>;
};

const requireObject = (value: unknown, what: string): Fields => {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new TypeError(`${what} must be an object`);
  return value as Fields;
};

const requireList = (value: unknown, what: string): readonly unknown[] => {
  if (!Array.isArray(value)) throw new TypeError(`${what} must be a list`);
  return value;
};
