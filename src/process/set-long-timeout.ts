/** The longest delay that setTimeout supports. A longer one fires immediately. */
const maxDelayMs = 2 ** 31 - 1;

/** Like setTimeout, but for delays of any length. Returns a function that cancels it. */
export function setLongTimeout(ms: number, callback: () => void): () => void {
  let timer: NodeJS.Timeout;
  const arm = (remainingMs: number): void => {
    timer = setTimeout(
      () => (remainingMs > maxDelayMs ? arm(remainingMs - maxDelayMs) : callback()),
      Math.min(remainingMs, maxDelayMs),
    );
  };
  arm(ms);
  return () => clearTimeout(timer);
}
