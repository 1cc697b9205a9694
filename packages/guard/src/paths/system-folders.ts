/** Where are the programs that Prefork starts by itself?
 *  Invariant: folders that only the system's owner can write to; never PATH, never the workspace.
 *  Elsewhere: finding a program in them (../process/programs.ts). */

export const SYSTEM_FOLDERS: readonly string[] = ["/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin"];
