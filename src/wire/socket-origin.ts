import { type BigIntStats, closeSync, fstatSync, lstatSync, openSync } from "node:fs";

/** `unix:DEVICE.INODE` identifies the socket itself. A path does not, because sockets can be renamed and replaced. */
export function readSocketOrigin(path: string): string {
  return formatOrigin(lstatSync(path, { bigint: true }));
}

const isLinux = process.platform === "linux";
/** O_PATH: a descriptor that pins the inode without opening it. */
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

function formatOrigin({ dev, ino }: BigIntStats): string {
  return `unix:${dev}.${ino}`;
}
