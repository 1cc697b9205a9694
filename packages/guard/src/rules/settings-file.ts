/** The shape of `.prefork/settings.json`, and the JSON Schema that editors use.
 *  Invariant: unknown fields are errors; the schema is generated from the shape and never written by hand.
 *  Elsewhere: what the fields mean and who may set them (settings.ts). */

import * as z from "zod";

const examples = z.array(z.string().min(1)).exactOptional();

const rule = z.union([
  z.string().min(1),
  z.strictObject({
    rule: z.string().min(1).describe("The rule, for example Bash(git log:*)"),
    match: examples.describe("Commands, paths or names that must fall under the rule; checked when the file is read"),
    notMatch: examples.describe("Commands, paths or names that must not fall under it; checked when the file is read"),
  }),
]);

const rules = z.array(rule);

const permissions = z.strictObject({
  allow: rules
    .exactOptional()
    .describe("What runs unasked. In a project's file a rule counts only once you accepted it (prefork trust)"),
  ask: rules.exactOptional().describe("What is always asked, whatever is allowed"),
  deny: rules.exactOptional().describe("What never runs, whatever is allowed or answered"),
  mode: z
    .enum(["default", "accept-edits", "plan"])
    .exactOptional()
    .meta({ description: "How sessions start. Only in your own settings", default: "default" }),
  additionalDirectories: z
    .array(z.string().min(1))
    .exactOptional()
    .describe("Additional folders that count as part of the workspace. Only in your own settings"),
  readOnlyPrograms: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[A-Za-z0-9][\w.+-]*$/, "must be a program's plain name"),
        args: z.array(z.string().min(1)).min(1).exactOptional().describe("Only with exactly these first arguments"),
      }),
    )
    .exactOptional()
    .describe("Programs of your own that only read. Only in your own settings"),
});

const count = z.int().min(1);

const forks = z.strictObject({
  enabled: z
    .boolean()
    .exactOptional()
    .meta({ description: "May agents fork? A project can only switch it off", default: true }),
  explicit: z.boolean().exactOptional().meta({
    description: 'An Agent call must say subagent_type "fork" to get one. A project can only demand it',
    default: false,
  }),
  inFlight: z.enum(["keep", "trim"]).exactOptional().meta({
    description: "trim: children do not see the turn that started them; cheaper for many. Only in your own settings",
    default: "keep",
  }),
  placeholders: z.enum(["forks", "all"]).exactOptional().meta({
    description: "all: children see a constant in place of every result of that turn. Only in your own settings",
    default: "forks",
  }),
  atOnce: count
    .exactOptional()
    .meta({ description: "How many run at once; further ones wait. A project can only lower it", default: 50 }),
  perFamily: count
    .exactOptional()
    .meta({ description: "How many one turn may start. A project can only lower it", default: 200 }),
  perSession: count
    .exactOptional()
    .meta({ description: "How many a session may start. A project can only lower it", default: 1_000 }),
  maxTurns: count.exactOptional().meta({ description: "Turns of one fork. A project can only lower it", default: 200 }),
  maxBudgetUsd: z.number().positive().exactOptional().describe("What one fork may cost. A project can only lower it"),
  maxFamilyBudgetUsd: z
    .number()
    .positive()
    .exactOptional()
    .describe("What all that one turn starts may cost together. A project can only lower it"),
  keepAlive: z.boolean().exactOptional().meta({
    description: "Keep the parent's cache entry alive while it waits for its children. Only in your own settings",
    default: true,
  }),
  wake: z
    .enum(["family", "each"])
    .exactOptional()
    .meta({ description: "When an idle agent hears of its tasks. Only in your own settings", default: "family" }),
  autoBackgroundMs: z.int().min(0).max(2_147_483_647).exactOptional().meta({
    description:
      "With forks off: a call no longer waits for its agent after this many milliseconds; 0: it always waits. Only in your own settings",
    default: 0,
  }),
  interrupted: z.enum(["report", "resume"]).exactOptional().meta({
    description: "What becomes of forks that a crash left behind. Only in your own settings",
    default: "report",
  }),
});

const command = z.string().min(1);

const worktrees = z.strictObject({
  folder: z
    .string()
    .regex(/^(?:\/|~\/)/, "must begin with / or ~/")
    .exactOptional()
    .describe("Where copies of the checkout go, outside of it. Default: your state folder"),
  copyIgnored: z
    .array(z.string().regex(/^(?!\/)(?!(?:.*\/)?\.\.(?:\/|$)).+$/, "must be a path inside the repository"))
    .exactOptional()
    .describe("Ignored files that work needs all the same, as patterns from the top of the repository: .env"),
  setUp: command.exactOptional().describe("Runs in a new copy before its agent does: npm install"),
  untrackedMegabytes: z
    .number()
    .positive()
    .exactOptional()
    .meta({ description: "Untracked files that are copied", default: 64 }),
  largeFiles: z.enum(["refuse", "leave-out"]).exactOptional().meta({
    description: "What happens over that: nothing is started, or the largest stay behind",
    default: "refuse",
  }),
  merge: z
    .enum(["by-hand", "when-done"])
    .exactOptional()
    .meta({ description: "when-done: the work of an agent that has reported is merged at once", default: "by-hand" }),
  check: command.exactOptional().describe("Runs after each merge; a merge that it says no to is taken back: npm test"),
  onConflict: z
    .enum(["stop", "markers", "mine", "theirs", "skip", "hand-back"])
    .exactOptional()
    .meta({ description: "What a merge makes of conflicts", default: "stop" }),
  snapshots: z.boolean().exactOptional().meta({
    description: "Keep the files as they are before each prompt, so that a rewind can restore them",
    default: true,
  }),
  onClaim: z.enum(["tell", "isolate"]).exactOptional().meta({
    description:
      "What happens when a second agent edits a file that another agent has claimed: it is told who has it, or it gets its own worktree",
    default: "tell",
  }),
});

const texts = z.record(z.string().min(1), z.string());

const server = z.strictObject({
  type: z.enum(["stdio", "http"]).exactOptional().describe("Default: what command or url says"),
  command: z.string().min(1).exactOptional().describe("A program that speaks on its standard input and output"),
  args: z.array(z.string()).exactOptional(),
  env: texts
    .exactOptional()
    .describe("Variables of the program; variables in their values are filled from your environment"),
  url: z.string().min(1).exactOptional().describe("The one address of a server that speaks streamable HTTP"),
  headers: texts
    .exactOptional()
    .describe("Sent with every request; variables in their values are filled from your environment"),
  timeoutMs: z.int().min(1).exactOptional().describe("How long one call may take. Default: 120,000"),
});

const word = z
  .string()
  .min(1)
  .refine((text) => !text.includes("\0"), "must not contain a NUL character");

/** How the terminal looks and behaves; a matter of the person, so no project can set any of it. */
const terminal = z.strictObject({
  theme: z.enum(["auto", "dark", "light", "system", "colour-blind", "none"]).exactOptional().meta({
    description: "Colours. auto: fits the terminal's background; system: the terminal's own; none: no colours",
    default: "auto",
  }),
  keys: z.enum(["default", "vi"]).exactOptional().meta({ description: "Keys that edit the input", default: "default" }),
  notify: z.enum(["off", "bell", "desktop", "both"]).exactOptional().meta({
    description: "How the terminal calls you when a turn ends or a question waits",
    default: "off",
  }),
  statusCommand: z
    .union([word, z.array(word).min(1)])
    .exactOptional()
    .describe(
      'Prints your own status line. A list is a program and its arguments, run without a shell: ["my-status", "--short"]; a text is run by sh',
    ),
  mouse: z.boolean().exactOptional().meta({ description: "May the terminal capture the mouse?", default: false }),
  screenReader: z
    .boolean()
    .exactOptional()
    .meta({ description: "Plain lines in the order they happen, for a screen reader", default: false }),
  editor: z
    .array(word, 'must be a list of a program and its arguments: ["code", "--wait"]')
    .min(1)
    .exactOptional()
    .describe(
      'Your editor and its arguments, run without a shell: ["code", "--wait"]. Without it: $VISUAL, then $EDITOR',
    ),
});

export const settingsFile = z.strictObject({
  $schema: z.string().exactOptional(),
  permissions: permissions.exactOptional(),
  forks: forks.exactOptional(),
  worktrees: worktrees
    .exactOptional()
    .describe("Copies of the checkout that agents work in. Only in your own settings"),
  mcpServers: z.record(z.string().min(1), server).exactOptional().describe("Tool servers, by name"),
  extensions: z
    .array(z.string().regex(/^(?:\.{1,2}\/|\/|~\/)/, "must begin with ./, ../, / or ~/"))
    .exactOptional()
    .describe("Modules of your own that extend agents, as paths from this file. Only in your own settings"),
  sandbox: z
    .strictObject({
      mode: z.enum(["off", "auto", "required"]).exactOptional().meta({
        description:
          "auto: where it works. required: refuse to run commands without. A project can only make it stricter",
        default: "auto",
      }),
    })
    .exactOptional(),
  terminal: terminal.exactOptional().describe("How the terminal looks and behaves. Only in your own settings"),
});

export type SettingsFile = z.infer<typeof settingsFile>;
export type PermissionSettings = z.infer<typeof permissions>;
export type WorktreeRules = z.infer<typeof worktrees>;
export type ForkRules = z.infer<typeof forks>;
export type TerminalFields = z.infer<typeof terminal>;
/** A tool server as it is written down, by its name. */
export type WrittenServers = NonNullable<SettingsFile["mcpServers"]>;

/** The JSON Schema as it is published with the package. */
export const settingsJsonSchema = (): string => {
  const schema = z.toJSONSchema(settingsFile, { target: "draft-2020-12" });
  const title = { title: "Prefork settings", description: "Comments and trailing commas are allowed." };
  const text = JSON.stringify({ ...title, ...schema }, undefined, 2);
  // Short lists on one line, as the formatter has them.
  return `${text.replace(/\[\s+("[^"]*"(?:,\s+"[^"]*")*)\s+\]/g, (_, list: string) => `[${list.replace(/\s+/g, " ")}]`)}\n`;
};
