import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Dialect, Frame, Reply } from "./script.ts";

export interface Sending {
  response: ServerResponse;
  dialect: Dialect;
  stream: boolean;
}

/** Sends a reply in the client's dialect, with the faults that the turn asks for. */
export async function sendReply(
  { response, dialect, stream }: Sending,
  reply: Reply,
  how: Pick<Answer, "slow_ms_per_chunk" | "cut_after_bytes" | "stream_fault">,
  signal: AbortSignal,
): Promise<void> {
  const stalls = how.stream_fault === "stalls";
  const whole = stream ? "" : JSON.stringify(dialect.whole(reply));
  const chunks = stream
    ? createStream(reply, how.stream_fault, dialect)
    : [stalls ? whole.slice(0, Math.ceil(whole.length / 2)) : whole];
  response.writeHead(200, {
    "content-type": stream ? (dialect.stream?.type ?? "text/event-stream") : "application/json",
    "cache-control": "no-cache",
    "request-id": "req_scripted",
  });
  let bytesLeft = how.cut_after_bytes ?? Infinity;
  for (const chunk of chunks) {
    if (how.slow_ms_per_chunk !== undefined) await sleep(how.slow_ms_per_chunk, undefined, { signal });
    const bytes = Buffer.from(chunk);
    await writeChunk(response, bytes.subarray(0, bytesLeft));
    bytesLeft -= bytes.length;
    if (bytesLeft <= 0) {
      response.destroy();
      return;
    }
  }
  if (!stalls) response.end();
}

type Chunk = string | Uint8Array;

/** The chunks of the stream, up to and including the fault. */
function createStream(reply: Reply, fault: Answer["stream_fault"], dialect: Dialect): Chunk[] {
  const frames = dialect.frames(reply);
  const chunks = [...frames.map((frame) => wire(dialect, frame)), ...(dialect.farewell ? [dialect.farewell] : [])];
  if (fault === undefined) return chunks;
  const middle = Math.ceil(chunks.length / 2);
  const chunksBefore = chunks.slice(0, middle);
  if (fault === "ends_early" || fault === "stalls") return chunksBefore;
  // Named like the previous event, because readers skip unknown events.
  if (fault === "malformed")
    return [...chunksBefore, encode(dialect, frames[middle - 1]?.event, '{"broken'), ...chunks.slice(middle)];
  const [type, text] = ["overloaded_error", "Overloaded in the middle"];
  const frame = dialect.streamError?.(type, text) ?? { event: "error", data: dialect.error(503, type, text) };
  return [...chunksBefore, wire(dialect, frame)];
}

export function sendError(
  { response, dialect }: Pick<Sending, "response" | "dialect">,
  error: { status: number; type?: string; message: string; headers?: Readonly<Record<string, string>> },
): void {
  response.writeHead(error.status, { "content-type": "application/json", ...error.headers });
  response.end(JSON.stringify(dialect.error(error.status, error.type, error.message)));
}

const wire = (dialect: Dialect, { event, data }: Frame): Chunk => encode(dialect, event, JSON.stringify(data));

function encode({ stream }: Dialect, event: string | undefined, payload: string): Chunk {
  return (
    stream?.encode(event ?? "unknown", payload) ??
    `${event === undefined ? "" : `event: ${event}\n`}data: ${payload}\n\n`
  );
}

/** Writes each chunk separately. Stops waiting if the client disconnects. */
function writeChunk(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => response.write(bytes, () => resolve()));
}
