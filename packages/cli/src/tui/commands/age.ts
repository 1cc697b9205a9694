/** Times as people say them: how long ago, and for how long. */

const UNITS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
];

/** 7,300,000 → "2 hours ago". A clock that was set back gives no negative age. */
export const ageText = (ms: number): string => {
  const [length, unit] = UNITS.find(([least]) => ms >= least) ?? [];
  if (length === undefined) return "just now";
  const count = Math.floor(ms / length);
  return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
};

/** 83,000 → "1 min 23 s". */
export const lengthText = (ms: number): string => {
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.floor(ms / 1_000) % 60;
  return minutes === 0 ? `${seconds} s` : `${minutes} min ${seconds} s`;
};
