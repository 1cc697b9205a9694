export { costCommand } from "./cost.ts";
export { demoCommand } from "./demo.ts";
export { simCommand } from "./sim.ts";
