import { statfsSync } from "node:fs";

/** Asked with every claim, looked up once a second. */
export function lowDisk(directory: string, minFreeBytes: number): () => string | null {
  let lookedAt = -Infinity;
  let answer: string | null = null;
  return () => {
    if (performance.now() - lookedAt < 1000) return answer;
    lookedAt = performance.now();
    const { bavail, bsize } = statfsSync(directory);
    const free = bavail * bsize;
    answer =
      free >= minFreeBytes
        ? null
        : `only ${Math.floor(free / 1048576)} MB are free where ${directory} lies; nothing new is started below ${Math.ceil(minFreeBytes / 1048576)} MB`;
    return answer;
  };
}
