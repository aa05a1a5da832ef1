import { existsSync } from "node:fs";

/** Long enough for a busy machine. The Drover that started the run outlives it. */
const timeoutMs = 60_000;
const pollMs = 25;

/** Inside a run: the Drover that started it opens its socket shortly after the run starts. Resolves on timeout too. */
export async function waitForSocket(path: string): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!existsSync(path) && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, pollMs));
}
