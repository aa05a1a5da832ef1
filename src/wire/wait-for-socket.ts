import { existsSync } from "node:fs";

/** Long enough for a busy machine. */
const timeoutMs = 60_000;
const pollMs = 25;

/** Waits for the socket of the Drover process that started the run: it appears shortly after the start. Resolves on timeout too. */
export async function waitForSocket(path: string): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!existsSync(path) && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, pollMs));
}
