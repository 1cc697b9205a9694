/** Is there nothing at a path, or could it not be checked?
 *  Invariant: only an error that every program would get too means "nothing is there". Any other error, such as no free
 *  file descriptor or a name that is too long only in its absolute form, is thrown: what was not checked is not harmless.
 *  Elsewhere: who asks (../run), turning the error into a refusal (../run/run-plan.ts). */

/** What is at a path is unknown. The message says which path and why. */
export class UncheckedPathError extends Error {
  override readonly name = "UncheckedPathError";
  readonly code: string;

  constructor(path: string, code: string, options?: ErrorOptions) {
    super(`${shortened(path)} could not be checked (${code})`, options);
    this.code = code;
  }
}

const MAX_SHOWN = 200;

const shortened = (path: string): string => (path.length <= MAX_SHOWN ? path : `${path.slice(0, MAX_SHOWN)}…`);

/** No file system allows longer names. */
const MAX_NAME_BYTES = 255;

/** A program gets the same error: it does not exist, or the system does not let this user see it. The last one is a
 *  name with a zero byte in it, which Node refuses and no file has. */
const NOTHING: readonly string[] = ["ENOENT", "ENOTDIR", "EACCES", "EPERM", "ELOOP", "ERR_INVALID_ARG_VALUE"];

const isNothing = (code: string, path: string): boolean =>
  NOTHING.includes(code) ||
  (code === "ENAMETOOLONG" && path.split("/").some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES));

/** Undefined if nothing is there. Throws if that is unknown. */
export const unlessMissing = <T>(path: string, look: () => T): T | undefined => {
  try {
    return look();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (typeof code !== "string") throw error;
    if (isNothing(code, path)) return undefined;
    throw new UncheckedPathError(path, code, { cause: error });
  }
};
