/** Recorded requests on disk: one per line, in the form that x-ray reads.
 *  Invariant: only in a folder that belongs to its owner alone, in a new file, readable by nobody else; whatever proves
 *  who sent a request is redacted, also inside bodies; no other header and no query is written.
 *  Elsewhere: reading them (../compare/recording.ts), what is recorded (analysis.ts). */

import { closeSync, constants, fchmodSync, lstatSync, mkdirSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { InputError } from "@prefork/wire";
import type { Exchange } from "./analysis.ts";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const OTHERS = 0o077;

/** Creates the folder if needed; refuses one that others can read, or that is a link. `user` is who runs this. */
export const privateFolder = (folder: string, user: number | undefined): void => {
  try {
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
  } catch (cause) {
    throw new InputError(`${folder} cannot be made: ${(cause as NodeJS.ErrnoException).code}`, { cause });
  }
  const stat = lstatSync(folder);
  if (!stat.isDirectory()) throw new InputError(`${folder} is not a folder`);
  if (user !== undefined && stat.uid !== user) throw new InputError(`${folder} belongs to somebody else`);
  if ((stat.mode & OTHERS) !== 0)
    throw new InputError(`${folder} can be read by others: choose another folder, or close it (chmod 700)`);
};

export type Recorder = {
  readonly write: (exchange: Exchange) => void;
  readonly close: () => void;
};

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_APPEND, O_WRONLY } = constants;

/** A new file, named after the start time. */
export const createRecord = (folder: string, startedAt: number): string => {
  const file = join(folder, `requests-${new Date(startedAt).toISOString().replaceAll(/[:.]/g, "-")}.ndjson`);
  try {
    const descriptor = openSync(file, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, FILE_MODE);
    fchmodSync(descriptor, FILE_MODE);
    closeSync(descriptor);
  } catch (cause) {
    throw new InputError(`${file} cannot be made: ${(cause as NodeJS.ErrnoException).code}`, { cause });
  }
  return file;
};

export const openRecorder = (file: string): Recorder => {
  const descriptor = openSync(file, O_WRONLY | O_APPEND | O_NOFOLLOW);
  return {
    write: (exchange) => {
      const line = Buffer.from(lineOf(exchange));
      for (let at = 0; at < line.length; ) at += writeSync(descriptor, line, at);
    },
    close: () => closeSync(descriptor),
  };
};

const BLANK = "[blanked out]";

/** As plain text, and as JSON escapes it. */
const redact = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((kept, secret) => {
    const escaped = JSON.stringify(secret).slice(1, -1);
    return kept.replaceAll(secret, BLANK).replaceAll(escaped, BLANK);
  }, text);

const lineOf = ({ secrets, body, response, ...exchange }: Exchange): string => {
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString("utf8");
  const { status, body: answer } = response;
  // Redacted before it is quoted a second time, so that a secret cannot hide behind an escape.
  const line = {
    ...exchange,
    path: redact(exchange.path, secrets),
    body: redact(text, secrets),
    response: { status, body: redact(answer, secrets) },
  };
  return `${JSON.stringify(line)}\n`;
};
