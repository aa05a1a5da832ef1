import { type BigIntStats, closeSync, fstatSync, lstatSync, openSync } from "node:fs";

/** `unix:DEVICE.INODE`: the socket itself. A path says nothing, as sockets can be renamed and replaced. */
export function originOfSocket(path: string): string {
  return originOf(lstatSync(path, { bigint: true }));
}

const isLinux = process.platform === "linux";
/** Opens nothing, but holds on to what is there. */
const oPath = 0o10000000;

/** Calls `connect` with a path that leads to exactly the socket that is returned, whatever is put in its place meanwhile. */
export function connectToOrigin<T>(path: string, connect: (path: string) => T): { socket: T; origin: string } {
  if (!isLinux) return { origin: originOfSocket(path), socket: connect(path) };
  const fd = openSync(path, oPath);
  try {
    return { origin: originOf(fstatSync(fd, { bigint: true })), socket: connect(`/proc/self/fd/${fd}`) };
  } finally {
    closeSync(fd);
  }
}

function originOf({ dev, ino }: BigIntStats): string {
  return `unix:${dev}.${ino}`;
}
