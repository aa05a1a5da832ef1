/** Waits for a signal to end: the first asks gently, a second (or SIGTERM after SIGTERM) at once. */
export async function untilToldToEnd(how: {
  gently: () => Promise<void>;
  atOnce: () => Promise<void>;
  ended: Promise<void>;
}): Promise<void> {
  let asked = 0;
  const told = new Promise<void>((resolve, reject) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        asked++;
        (asked === 1 ? how.gently() : how.atOnce()).then(resolve, reject);
      });
    }
  });
  await Promise.race([told, how.ended]);
}
