import type { ClientRequest } from "node:http";
import { PortError } from "../model/port-error.ts";
import type { UploadAnswer, UploadRequest } from "../model/runner-port.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import { readResponse } from "./port-response.ts";
import type { Problem } from "./problem.ts";

interface Target {
  url: string;
  connections: ConnectionPool;
  silenceMs: number;
}

/**
 * Uploads one file as a request body over its own connection, with backpressure. Fails if there is no progress for
 * `silenceMs`; the total time is not limited.
 */
export async function uploadFile(
  request: UploadRequest,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  target: Target,
): Promise<UploadAnswer> {
  try {
    return await sendFile(request, content, signal, target);
  } catch (error) {
    const result = error instanceof PortError ? resultFrom(error) : null;
    if (result === null) throw error;
    return result;
  }
}

function sendFile(
  request: UploadRequest,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  { url, connections, silenceMs }: Target,
): Promise<UploadAnswer> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request)) query.set(name, String(value));
  return new Promise<UploadAnswer>((resolve, reject) => {
    const sent = connections.request(`/runner/files?${query.toString()}`, {
      method: "POST",
      once: true,
      headers: { "content-type": "application/octet-stream", "content-length": request.size },
    });
    const watch = setTimeout(() => sent.destroy(new Error(`no progress within ${silenceMs} ms`)), silenceMs);
    const abort = (): void => void sent.destroy(new Error("the runner cancelled the upload"));
    const done = (): void => {
      clearTimeout(watch);
      signal.removeEventListener("abort", abort);
    };
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    sent.on("response", (response) => {
      readResponse<UploadAnswer>(response)
        .then(resolve, reject)
        // The response may arrive before the whole file was sent.
        .finally(() => sent.destroy());
    });
    sent.on("error", (cause) => {
      reject(new PortError("away", `${url} did not take the file: ${cause.message}`, cause));
    });
    sent.once("close", done);
    // A local failure (the file changed or cannot be read) must win over the connection error it causes.
    writeBody(content, request.size, sent, watch)
      .then((whole) => (whole ? undefined : resolve({ upload: "mismatch" })), reject)
      .finally(() => (sent.writableEnded ? undefined : sent.destroy()));
  });
}

/** Stops early if the request is over. Returns false if the content does not have the announced size. */
async function writeBody(
  content: AsyncIterable<Uint8Array>,
  size: number,
  sent: ClientRequest,
  watch: NodeJS.Timeout,
): Promise<boolean> {
  let left = size;
  for await (const bytes of content) {
    left -= bytes.length;
    if (left < 0) return false;
    if (sent.destroyed) return true;
    await writeChunk(sent, bytes);
    watch.refresh();
  }
  if (left === 0 && !sent.destroyed) sent.end();
  return left === 0;
}

/** Resolves once the chunk is flushed or the request is closed. */
function writeChunk(sent: ClientRequest, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    sent.once("close", resolve);
    sent.write(bytes, () => {
      sent.off("close", resolve);
      resolve();
    });
  });
}

/** Two refusals are regular results of an upload, not errors. */
function resultFrom({ cause }: PortError): UploadAnswer | null {
  if (!isProblem(cause)) return null;
  if (cause.status === 409 && cause.code === "DROVER-API-030") return { upload: "fenced" };
  return cause.faults.some(({ path, message }) => path === "body" && message === "mismatch")
    ? { upload: "mismatch" }
    : null;
}

function isProblem(cause: unknown): cause is Problem {
  return typeof cause === "object" && cause !== null && "faults" in cause && "code" in cause;
}
