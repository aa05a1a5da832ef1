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
 * One file as the body of a request, on a connection of its own, as fast as the other side takes it. Fails when it
 * gets no further for `silenceMs`, however long it takes in all.
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
    const answer = error instanceof PortError ? answerIn(error) : null;
    if (answer === null) throw error;
    return answer;
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
    const abort = (): void => void sent.destroy(new Error("given up by the runner"));
    const done = (): void => {
      clearTimeout(watch);
      signal.removeEventListener("abort", abort);
    };
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    sent.on("response", (response) => {
      readResponse<UploadAnswer>(response)
        .then(resolve, reject)
        // an answer that came early leaves the rest unsent
        .finally(() => sent.destroy());
    });
    sent.on("error", (cause) => {
      reject(new PortError("away", `${url} did not take the file: ${cause.message}`, cause));
    });
    sent.once("close", done);
    // What comes of this is the sender's own, so it is told first: its file changed meanwhile, or cannot be read.
    pour(content, request.size, sent, watch)
      .then((whole) => (whole ? undefined : resolve({ upload: "mismatch" })), reject)
      .finally(() => (sent.writableEnded ? undefined : sent.destroy()));
  });
}

/** Waits for each piece to be taken; leaves off where the request is over. False: it is not of the size announced. */
async function pour(
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
    await taken(sent, bytes);
    watch.refresh();
  }
  if (left === 0 && !sent.destroyed) sent.end();
  return left === 0;
}

function taken(sent: ClientRequest, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    sent.once("close", resolve);
    sent.write(bytes, () => {
      sent.off("close", resolve);
      resolve();
    });
  });
}

/** Two refusals are answers of this port. */
function answerIn({ cause }: PortError): UploadAnswer | null {
  if (!isProblem(cause)) return null;
  if (cause.status === 409 && cause.code === "DROVER-API-030") return { upload: "fenced" };
  return cause.faults.some(({ path, message }) => path === "body" && message === "mismatch")
    ? { upload: "mismatch" }
    : null;
}

function isProblem(cause: unknown): cause is Problem {
  return typeof cause === "object" && cause !== null && "faults" in cause && "code" in cause;
}
