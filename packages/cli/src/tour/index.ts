/** The tour: a real session in a made repository, five forks, and the account of them. */

export { openLive } from "./live.ts";
export { runTour, type TourFork, type TourResult, type TourStart } from "./run.ts";
