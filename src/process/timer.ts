/** setTimeout fires at once for more than this many milliseconds. */
const longest = 2 ** 31 - 1;

/** Calls back after any time, however long. Returns how to cancel it. */
export function afterMs(milliseconds: number, call: () => void): () => void {
  let timer: NodeJS.Timeout;
  const arm = (left: number): void => {
    timer = setTimeout(() => (left > longest ? arm(left - longest) : call()), Math.min(left, longest));
  };
  arm(milliseconds);
  return () => clearTimeout(timer);
}
