/** Milliseconds on a clock that is never set back. A cold `exec` would wait for nine modules of Node behind `performance`. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}
