/** The demo: a parent and its forks against the simulator, and the table of what they read, wrote and cost. */

export { demoAsJson, demoAsText } from "./report.ts";
export { type DemoOptions, runDemo } from "./run.ts";
