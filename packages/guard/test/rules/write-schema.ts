/** Writes the JSON Schema of the settings anew, after its shape has changed. */

import { writeFile } from "node:fs/promises";
import { settingsJsonSchema } from "../../src/rules/settings-file.ts";

await writeFile(new URL("../../schema/settings.schema.json", import.meta.url), settingsJsonSchema());
