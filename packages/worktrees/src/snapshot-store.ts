/** The private repository in which the snapshots of a session are stored.
 *  Invariant: the user's repository is read and never written to: its objects cannot be told apart by the files that they
 *  came from, so a copy of a secret file there would be readable, pushed and copied along.
 *  Elsewhere: what is stored (file-history.ts), that nobody else reads it (the secret places of @prefork/guard). */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Git } from "./git.ts";
import type { Repository } from "./repository.ts";

export class SnapshotStore {
  readonly folder: string;
  #isPrepared = false;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Creates it if needed. */
  async prepare({ commonDir, noObject }: Repository): Promise<void> {
    if (this.#isPrepared) return;
    for (const name of ["objects/info", "refs"]) await mkdir(join(this.folder, name), { recursive: true, mode: 0o700 });
    const format = noObject.length > 40 ? "[extensions]\n\tobjectFormat = sha256\n" : "";
    const version = noObject.length > 40 ? 1 : 0;
    const files = {
      config: `[core]\n\trepositoryformatversion = ${version}\n\tbare = true\n${format}`,
      // So that git shows a snapshot to the user. Our own calls name the folder in their environment.
      ...(/["\n]/.test(commonDir) ? {} : { "objects/info/alternates": `${join(commonDir, "objects")}\n` }),
      HEAD: "ref: refs/heads/none\n",
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(this.folder, name), text, { mode: 0o600 });
    this.#isPrepared = true;
  }

  /** Git in the user's checkout; new objects are stored here. */
  writing({ git, commonDir }: Repository): Git {
    return git.writingTo(join(this.folder, "objects"), join(commonDir, "objects"));
  }

  /** Git in this repository, for its refs. */
  own(repository: Repository): Git {
    return this.writing(repository).at(this.folder).in({ GIT_DIR: this.folder });
  }
}
