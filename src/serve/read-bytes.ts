import type { IncomingMessage } from "node:http";
import type { SizedBytes } from "../wire/transport.ts";
import { Refusal } from "./refusal.ts";

/** How long a sender may send nothing. How long it takes in all is its own business. */
const silenceMs = 60_000;

/** A body as it comes. Reading it can be left off and taken up again. */
export function readBytes(incoming: IncomingMessage, signal: () => AbortSignal): SizedBytes {
  const length = incoming.headers["content-length"] ?? "";
  return {
    size: /^\d{1,15}$/.test(length) ? Number(length) : null,
    bytes: { [Symbol.asyncIterator]: () => progressing(incoming, signal()) },
  };
}

/** Ends with the signal, also while no event arrives; a caller that lost its right to read gets the refusal. */
async function* progressing(incoming: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const watch = setTimeout(() => incoming.destroy(new Error("nothing came for too long")), silenceMs);
  let giveUp = (): void => undefined;
  const over = new Promise<never>((_, reject) => {
    giveUp = () => reject(signal.reason);
  });
  over.catch(() => undefined); // it may come when nobody waits any more
  signal.addEventListener("abort", giveUp, { once: true });
  if (signal.aborted) giveUp();
  // leaving it early must not close the connection, over which the answer goes
  const chunks = incoming.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const { done, value } = await Promise.race([chunks.next(), over]);
      if (done) return;
      watch.refresh();
      yield value as Uint8Array; // no encoding is set, so chunks are buffers
    }
  } catch (error) {
    if (!incoming.destroyed) throw error;
    throw new Refusal(400, "DROVER-API-029", "The request was cut off.");
  } finally {
    clearTimeout(watch);
    signal.removeEventListener("abort", giveUp);
  }
}
