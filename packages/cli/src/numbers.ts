/** Numbers as people type and read them.
 *  Invariant: parsing returns an exact whole number or undefined, so that the caller can name the invalid option.
 *  Elsewhere: numbers in columns (table.ts). */

const SCALES: Readonly<Record<string, number>> = { "": 1, k: 1_000, m: 1_000_000 };

/** Above this, price × tokens would lose its last digits. */
const LARGEST = 1e12;

/** "700", "31,390", "100k", "1.5M" → tokens; k is a thousand. */
export const parseTokens = (text: string): number | undefined => {
  const match = /^(\d+|\d{1,3}(?:[,_]\d{3})+)(\.\d+)?([kKmM]?)$/.exec(text.trim());
  if (!match) return undefined;
  const [, whole = "", fraction = "", suffix = ""] = match;
  const scale = SCALES[suffix.toLowerCase()] ?? 1;
  // Decimal text times a power of ten: shifting digits keeps 1.1k at 1100 where a product gives 1100.0000000000002.
  const value = Number(`${whole.replace(/[,_]/g, "")}${fraction}e${Math.log10(scale)}`);
  return Number.isInteger(value) && value <= LARGEST ? value : undefined;
};

/** "3" → 3; counts have no suffix. */
export const parseCount = (text: string): number | undefined => {
  const value = /^\d+$/.test(text.trim()) ? Number(text) : undefined;
  return value !== undefined && value <= LARGEST ? value : undefined;
};

/** 31390 → "31,390"; fractions of a token, which multipliers produce, are shown. */
export const formatTokens = (tokens: number): string => tokens.toLocaleString("en-US", { maximumFractionDigits: 2 });

/** Enough decimals for three digits of the smallest amount, so that a column is easy to compare. */
export const moneyDecimals = (amounts: readonly number[]): number => {
  const smallest = Math.min(...amounts.filter((amount) => amount > 0));
  if (!Number.isFinite(smallest)) return 2;
  return Math.min(6, Math.max(2, 2 - Math.floor(Math.log10(smallest))));
};

/** 0.0829 → "$0.0829", -0.5 → "-$0.50"; an amount too small for its decimals is not shown as zero. */
export const formatMoney = (dollars: number, decimals = moneyDecimals([Math.abs(dollars)])): string => {
  const options = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  const text = Math.abs(dollars).toLocaleString("en-US", options);
  if (dollars !== 0 && Number(text) === 0) return `${dollars < 0 ? "-" : ""}<$${(10 ** -decimals).toFixed(decimals)}`;
  return `${dollars < 0 ? "-" : ""}$${text}`;
};
