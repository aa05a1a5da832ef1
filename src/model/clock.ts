/** Monotonic time in milliseconds. Avoids `performance`, which makes a cold `exec` load nine Node modules. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}
