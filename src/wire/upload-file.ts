import type { ClientRequest } from "node:http";
import { PortError } from "../model/port-error.ts";
import type { UploadResponse, UploadRequest } from "../model/runner-port.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import { readResponse } from "./port-response.ts";
import type { Problem } from "./problem.ts";

interface UploadTarget {
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
  target: UploadTarget,
): Promise<UploadResponse> {
  try {
    return await sendFile(request, content, signal, target);
  } catch (error) {
    const result = error instanceof PortError ? toUploadResponse(error) : null;
    if (result === null) throw error;
    return result;
  }
}

function sendFile(
  request: UploadRequest,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  { url, connections, silenceMs }: UploadTarget,
): Promise<UploadResponse> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request)) query.set(name, String(value));
  return new Promise<UploadResponse>((resolve, reject) => {
    const upload = connections.request(`/runner/files?${query.toString()}`, {
      method: "POST",
      once: true,
      headers: { "content-type": "application/octet-stream", "content-length": request.size },
    });
    const silenceTimer = setTimeout(() => upload.destroy(new Error(`no progress within ${silenceMs} ms`)), silenceMs);
    const abort = (): void => void upload.destroy(new Error("the runner cancelled the upload"));
    const done = (): void => {
      clearTimeout(silenceTimer);
      signal.removeEventListener("abort", abort);
    };
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    upload.on("response", (response) => {
      readResponse<UploadResponse>(response)
        .then(resolve, reject)
        // The response may arrive before the whole file was sent.
        .finally(() => upload.destroy());
    });
    upload.on("error", (cause) => {
      reject(new PortError("away", `The upload to ${url} failed: ${cause.message}`, cause));
    });
    upload.once("close", done);
    // A local failure (the file changed or cannot be read) must win over the connection error it causes.
    writeBody(content, request.size, upload, silenceTimer)
      .then((isComplete) => (isComplete ? undefined : resolve({ upload: "mismatch" })), reject)
      .finally(() => (upload.writableEnded ? undefined : upload.destroy()));
  });
}

/** Stops early if the request is over. Returns false if the content does not have the announced size. */
async function writeBody(
  content: AsyncIterable<Uint8Array>,
  size: number,
  upload: ClientRequest,
  silenceTimer: NodeJS.Timeout,
): Promise<boolean> {
  let remaining = size;
  for await (const bytes of content) {
    remaining -= bytes.length;
    if (remaining < 0) return false;
    if (upload.destroyed) return true;
    await writeChunk(upload, bytes);
    silenceTimer.refresh();
  }
  if (remaining === 0 && !upload.destroyed) upload.end();
  return remaining === 0;
}

/** Resolves once the chunk is flushed or the request is closed. */
function writeChunk(upload: ClientRequest, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    upload.once("close", resolve);
    upload.write(bytes, () => {
      upload.off("close", resolve);
      resolve();
    });
  });
}

/** Two refusals are regular results of an upload, not errors. */
function toUploadResponse({ cause }: PortError): UploadResponse | null {
  if (!isProblem(cause)) return null;
  if (cause.status === 409 && cause.code === "DROVER-API-030") return { upload: "fenced" };
  return cause.faults.some(({ path, message }) => path === "body" && message === "mismatch")
    ? { upload: "mismatch" }
    : null;
}

function isProblem(cause: unknown): cause is Problem {
  return typeof cause === "object" && cause !== null && "faults" in cause && "code" in cause;
}
