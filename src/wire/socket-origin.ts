import { type BigIntStats, chmodSync, closeSync, constants, fstatSync, lstatSync, openSync } from "node:fs";

/** Returns `unix:DEVICE.INODE`, which identifies the socket itself. A path does not: sockets can be renamed and replaced. */
export function readSocketOrigin(path: string): string {
  return formatOrigin(lstatSync(path, { bigint: true }));
}

const isLinux = process.platform === "linux";
/** O_PATH opens a descriptor that pins the inode, but does not open the file. */
const oPath = 0o10000000;

/** Connects to exactly the socket whose origin is returned, even if the path is replaced in between. */
export function connectToOrigin<T>(path: string, connect: (path: string) => T): { socket: T; origin: string } {
  if (!isLinux) return { origin: readSocketOrigin(path), socket: connect(path) };
  const fd = openSync(path, oPath);
  try {
    return { origin: formatOrigin(fstatSync(fd, { bigint: true })), socket: connect(`/proc/self/fd/${fd}`) };
  } finally {
    closeSync(fd);
  }
}

/**
 * Lets only the owner of a socket connect, and returns its origin. On Linux, anything else that another process puts at
 * the path, such as a symlink, stays unchanged.
 */
export function restrictSocket(path: string): string {
  if (!isLinux) {
    chmodSync(path, 0o600);
    return readSocketOrigin(path);
  }
  const fd = openSync(path, oPath | constants.O_NOFOLLOW);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (!stats.isSocket()) throw Object.assign(new Error(`${path} is not a socket`), { code: "ENOTSOCK" });
    chmodSync(`/proc/self/fd/${fd}`, 0o600);
    return formatOrigin(stats);
  } finally {
    closeSync(fd);
  }
}

function formatOrigin({ dev, ino }: BigIntStats): string {
  return `unix:${dev}.${ino}`;
}
