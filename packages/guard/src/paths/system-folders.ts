/** Where do programs lie that Prefork starts by itself?
 *  Invariant: folders that only the system's owner writes to; never PATH, never the workspace.
 *  Elsewhere: finding one in them (../process/programs.ts). */

export const SYSTEM_FOLDERS: readonly string[] = ["/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin"];
