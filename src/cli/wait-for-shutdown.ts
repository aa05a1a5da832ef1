/** Waits until the work is done or a signal has shut it down. The first signal is graceful, a second one immediate. */
export async function waitForShutdown(options: {
  graceful: () => Promise<void>;
  immediate: () => Promise<void>;
  done: Promise<void>;
  /** Ignores all signals except SIGTERM: the parent process receives Ctrl-C too and forwards it as SIGTERM. */
  hasParent?: boolean;
}): Promise<void> {
  let signals = 0;
  const shutdown = new Promise<void>((resolve, reject) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (options.hasParent && signal !== "SIGTERM") return;
        signals++;
        (signals === 1 ? options.graceful() : options.immediate()).then(resolve, reject);
      });
    }
  });
  await Promise.race([shutdown, options.done]);
}
