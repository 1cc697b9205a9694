/** The tour: a real session in a sample repository, five forks, and the bill. */

export type { ComparedWay } from "./alternatives.ts";
export { openLive } from "./live.ts";
export { runTour, type TourFork, type TourResult, type TourStart } from "./run.ts";
