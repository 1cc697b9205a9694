/** Code tools that are loaded when a view first asks for them.
 *  Invariant: until they are loaded every answer is undefined, so code is shown plain; a failure to load changes nothing else.
 *  Elsewhere: the tools (load-code-tools.ts), what views do without them (views: code-lines.ts, diff-lines.ts). */

import type { CodeTools } from "./views/index.ts";

/** `onLoaded` is called once, with the tools to use from then on. */
export const lazyCodeTools = (onLoaded: (tools: CodeTools) => void): CodeTools => {
  const loading = { isStarted: false };
  const load = (): undefined => {
    if (loading.isStarted) return undefined;
    loading.isStarted = true;
    void import("./load-code-tools.ts").then(({ loadCodeTools }) => onLoaded(loadCodeTools())).catch(() => undefined);
    return undefined;
  };
  return { tokenize: load, diffLines: load, diffWords: load };
};
