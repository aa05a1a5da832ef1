import { statfsSync } from "node:fs";

/** Returns a function that describes a shortage of disk space, or returns null. It checks the disk once per second at most. */
export function createLowDiskCheck(directory: string, minFreeBytes: number): () => string | null {
  let checkedAt = -Infinity;
  let shortage: string | null = null;
  return () => {
    if (performance.now() - checkedAt < 1000) return shortage;
    checkedAt = performance.now();
    const { bavail, bsize } = statfsSync(directory);
    const freeBytes = bavail * bsize;
    shortage =
      freeBytes >= minFreeBytes
        ? null
        : `only ${Math.floor(freeBytes / 1048576)} MB are free on the disk of ${directory}; no run starts below ${Math.ceil(minFreeBytes / 1048576)} MB`;
    return shortage;
  };
}
