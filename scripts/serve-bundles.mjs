/** Preloaded into the processes of a test run: whoever asks for a source that is bundled gets its bundle.
 *  Invariant: everything else is loaded as without this; plain JavaScript, because each process loads it.
 *  Elsewhere: making the bundles, and the list that the name after `?` leads to (test-bundle.ts). */

import asyncHooks from "node:async_hooks";
import { readFileSync } from "node:fs";
import { registerHooks, syncBuiltinESMExports } from "node:module";

const list = readFileSync(decodeURI(import.meta.url.slice(import.meta.url.indexOf("?") + 1)), "utf8");
const bundles = new Map(Object.entries(JSON.parse(list))); // from URL to URL

registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context);
    const bundle = found.url.endsWith(".ts") ? bundles.get(found.url) : undefined;
    return bundle === undefined ? found : { url: bundle, format: "module", shortCircuit: true };
  },
});

// node:test follows every promise, only to know the test of an error that nobody awaits; that takes a tenth of all CPU.
// Without it such an error still fails the file, and is shown with it (report.ts).
const { createHook } = asyncHooks;
asyncHooks.createHook = (hooks) => createHook({ trackPromises: false, ...hooks });
syncBuiltinESMExports();
