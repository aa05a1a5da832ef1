import type { IncomingMessage } from "node:http";
import type { SizedBytes } from "../wire/transport.ts";
import { Refusal } from "./refusal.ts";

/** How long a sender may be silent. The total time is not limited. */
const silenceMs = 60_000;

/** Streams the body. Reading can be interrupted and resumed with a new iterator. */
export function readBytes(incoming: IncomingMessage, signal: () => AbortSignal): SizedBytes {
  const length = incoming.headers["content-length"] ?? "";
  return {
    size: /^\d{1,15}$/.test(length) ? Number(length) : null,
    bytes: { [Symbol.asyncIterator]: () => readChunks(incoming, signal()) },
  };
}

/** Throws the signal's reason as soon as it is aborted, even while no data arrives. */
async function* readChunks(incoming: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const silenceTimer = setTimeout(
    () => incoming.destroy(new Error(`the sender was silent for ${silenceMs} ms`)),
    silenceMs,
  );
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
  });
  // The promise may reject when nothing waits for it any more.
  aborted.catch(() => undefined);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  // Stopping early must not close the connection, because the response still has to be sent over it.
  const chunks = incoming.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const { done, value } = await Promise.race([chunks.next(), aborted]);
      if (done) return;
      silenceTimer.refresh();
      // Without an encoding, chunks are buffers.
      yield value as Uint8Array;
    }
  } catch (error) {
    if (!incoming.destroyed) throw error;
    throw new Refusal(400, "DROVER-API-029", "The request body was cut off.");
  } finally {
    clearTimeout(silenceTimer);
    signal.removeEventListener("abort", onAbort);
  }
}
