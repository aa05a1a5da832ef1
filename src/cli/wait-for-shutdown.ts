/** Waits for a signal to end: the first asks gently, a second (or SIGTERM after SIGTERM) at once. */
export async function waitForShutdown(how: {
  gently: () => Promise<void>;
  atOnce: () => Promise<void>;
  ended: Promise<void>;
  /** The parent passes on what it gets: of Ctrl-C, which the terminal sends to both, only its own SIGTERM counts. */
  byParent?: boolean;
}): Promise<void> {
  let asked = 0;
  const told = new Promise<void>((resolve, reject) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (how.byParent && signal !== "SIGTERM") return;
        asked++;
        (asked === 1 ? how.gently() : how.atOnce()).then(resolve, reject);
      });
    }
  });
  await Promise.race([told, how.ended]);
}
