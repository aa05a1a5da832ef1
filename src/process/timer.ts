/** setTimeout fires at once for longer delays. */
const longest = 2 ** 31 - 1;

/** Like setTimeout, but for delays of any length. Returns a function that cancels it. */
export function afterMs(milliseconds: number, call: () => void): () => void {
  let timer: NodeJS.Timeout;
  const arm = (left: number): void => {
    timer = setTimeout(() => (left > longest ? arm(left - longest) : call()), Math.min(left, longest));
  };
  arm(milliseconds);
  return () => clearTimeout(timer);
}
