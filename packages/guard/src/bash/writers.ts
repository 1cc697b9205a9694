/** Programs that are known to change something: a better reason than "unknown". */

const WRITERS: ReadonlySet<string> = new Set([
  ...["rm", "mv", "cp", "ln", "mkdir", "rmdir", "touch", "chmod", "chown", "chgrp", "dd", "truncate", "install", "tee"],
  ...[
    "unlink",
    "shred",
    "mktemp",
    "mkfifo",
    "mknod",
    "split",
    "csplit",
    "rsync",
    "scp",
    "patch",
    "kill",
    "pkill",
    "killall",
  ],
  ...["apt", "apt-get", "dpkg", "yum", "dnf", "brew", "systemctl", "service", "mount", "umount", "useradd", "passwd"],
]);

export const isWriter = (program: string): boolean => WRITERS.has(program);
