import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Dialect, Frame, Reply } from "./script.ts";

export interface Sending {
  response: ServerResponse;
  dialect: Dialect;
  stream: boolean;
}

/** Sends a reply as a client of that dialect expects it, or as badly as the turn says. */
export async function sendReply(
  { response, dialect, stream }: Sending,
  reply: Reply,
  how: Pick<Answer, "slow_ms_per_chunk" | "cut_after_bytes">,
  signal: AbortSignal,
): Promise<void> {
  const chunks = stream
    ? [...dialect.frames(reply).map(wire), ...(dialect.farewell ? [dialect.farewell] : [])]
    : [JSON.stringify(dialect.whole(reply))];
  response.writeHead(200, {
    "content-type": stream ? "text/event-stream" : "application/json",
    "cache-control": "no-cache",
    "request-id": "req_scripted",
  });
  let left = how.cut_after_bytes ?? Infinity;
  for (const chunk of chunks) {
    if (how.slow_ms_per_chunk !== undefined) await sleep(how.slow_ms_per_chunk, undefined, { signal });
    const bytes = Buffer.from(chunk);
    await written(response, bytes.subarray(0, left));
    left -= bytes.length;
    if (left <= 0) {
      response.destroy();
      return;
    }
  }
  response.end();
}

export function sendError(
  { response, dialect }: Pick<Sending, "response" | "dialect">,
  error: { status: number; type?: string; message: string; headers?: Readonly<Record<string, string>> },
): void {
  response.writeHead(error.status, { "content-type": "application/json", ...error.headers });
  response.end(JSON.stringify(dialect.error(error.status, error.type, error.message)));
}

const wire = ({ event, data }: Frame): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;

/** Each chunk reaches the socket by itself; a client that went away ends the wait. */
function written(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => response.write(bytes, () => resolve()));
}
