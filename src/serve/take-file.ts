import type { IncomingMessage } from "node:http";
import type { RunnerPort, UploadRequest } from "../model/runner-port.ts";
import { Refusal } from "./refusal.ts";

/** How long a sender may send nothing. How long it takes in all is its own business. */
const silenceMs = 60_000;

/** The body as it comes, never held as a whole. */
export async function takeFile(
  port: RunnerPort,
  request: UploadRequest,
  incoming: IncomingMessage,
  signal: AbortSignal,
): Promise<{ upload: "stored" }> {
  if (incoming.headers["content-length"] !== String(request.size)) {
    throw new Refusal(400, "DROVER-API-006", "Content-Length must be there, and be the size that is announced.", {
      faults: [{ path: "header.content-length", message: `${request.size} expected` }],
    });
  }
  const { upload } = await port.upload(request, progressing(incoming, signal), signal);
  if (upload === "stored") return { upload };
  // Read to its end, so that the sender is there for the answer.
  for await (const _ of progressing(incoming, signal)) continue;
  if (upload === "mismatch") {
    throw new Refusal(400, "DROVER-API-006", "The body is not what was announced; nothing was kept.", {
      faults: [{ path: "body", message: "mismatch" }],
    });
  }
  throw new Refusal(409, "DROVER-API-030", "This attempt is not, or no longer, this runner's.", {
    faults: [{ path: "query.attempt", message: "fenced" }],
  });
}

/** Ends with the signal, also while nothing comes: whoever may not go on is told so. */
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
