/** The shape of `.prefork/settings.json`, and the JSON Schema that editors use.
 *  Invariant: unknown fields are errors; the schema is generated from the shape and never written by hand.
 *  Elsewhere: what the fields mean and who may set them (settings.ts). */

import { z } from "zod";

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
  allow: rules.exactOptional().describe("What runs unasked. Only in your own settings; elsewhere it is left out"),
  ask: rules.exactOptional().describe("What is always asked, whatever is allowed"),
  deny: rules.exactOptional().describe("What never runs, whatever is allowed or answered"),
  mode: z
    .enum(["default", "accept-edits", "plan"])
    .exactOptional()
    .describe("How sessions start. Only in your own settings"),
  additionalDirectories: z
    .array(z.string().min(1))
    .exactOptional()
    .describe("Folders beside the workspace that count as part of it. Only in your own settings"),
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

export const settingsFile = z.strictObject({
  $schema: z.string().exactOptional(),
  permissions: permissions.exactOptional(),
  sandbox: z
    .strictObject({
      mode: z
        .enum(["off", "auto", "required"])
        .exactOptional()
        .describe(
          "auto: where it works. required: refuse to run commands without. A project can only make it stricter",
        ),
    })
    .exactOptional(),
});

export type SettingsFile = z.infer<typeof settingsFile>;
export type PermissionSettings = z.infer<typeof permissions>;

/** The JSON Schema as it is published with the package. */
export const settingsJsonSchema = (): string => {
  const schema = z.toJSONSchema(settingsFile, { target: "draft-2020-12" });
  const title = { title: "Prefork settings", description: "Comments and trailing commas are allowed." };
  const text = JSON.stringify({ ...title, ...schema }, undefined, 2);
  // Short lists on one line, as the formatter has them.
  return `${text.replace(/\[\s+("[^"]*"(?:,\s+"[^"]*")*)\s+\]/g, (_, list: string) => `[${list.replace(/\s+/g, " ")}]`)}\n`;
};
