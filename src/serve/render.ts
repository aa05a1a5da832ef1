import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { FeedHub } from "../show/feed-hub.ts";
import { disconnectStalled } from "./disconnect-stalled.ts";
import { type Refusal, toRefusal } from "./refusal.ts";
import { BackupReply, BytesReply, FeedReply, Reply, TextReply, WebReply } from "./reply.ts";
import { createSseSink } from "./sse-sink.ts";

/** Set on every answer: nothing here is to be framed, sniffed or kept. */
export const securityHeaders = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
};
const jsonHeaders = { ...securityHeaders, "content-type": "application/json", "cache-control": "no-store" };
const problemHeaders = { ...jsonHeaders, "content-type": "application/problem+json" };

interface Rendering {
  outgoing: ServerResponse;
  hub: FeedHub;
  /** After which a stream is cut off whose reader takes nothing of it. */
  stalledMs?: number | undefined;
  sendBackup(reply: BackupReply): Promise<void>;
  onDefect(error: unknown, where: string): void;
}

/** What a handler returned, as an answer over HTTP. Streams are written here, as long as they take. */
export async function render(answer: unknown, to: Rendering): Promise<Response> {
  if (answer instanceof BytesReply) await sendBytes(answer, to);
  else if (answer instanceof WebReply) await sendWeb(answer, to);
  else if (answer instanceof BackupReply) await to.sendBackup(answer);
  else if (answer instanceof FeedReply) {
    const sink = createSseSink(to.outgoing, to.stalledMs);
    sink.whenClosed(to.hub.follow(answer.source, answer.after, sink, answer.partials).stop);
  } else if (answer instanceof TextReply)
    return new Response(answer.text, { headers: { ...securityHeaders, ...answer.headers } });
  else if (answer instanceof Reply) return json(answer.status, answer.body, answer.headers);
  else return json(200, answer);
  return RESPONSE_ALREADY_SENT;
}

function json(status: number, body: unknown, headers?: Readonly<Record<string, string>>): Response {
  if (body === undefined)
    return new Response(null, { status: status === 200 ? 204 : status, headers: { ...securityHeaders, ...headers } });
  return new Response(JSON.stringify(body), {
    status,
    headers: headers ? { ...jsonHeaders, ...headers } : jsonHeaders,
  });
}

export function renderError(error: unknown, where: string, onDefect: Rendering["onDefect"]): Response {
  const refusal = toRefusal(error);
  // what is refused for being too much is no defect, and would fill the log
  if (refusal.problem.status >= 500 && refusal.problem.code !== "DROVER-LIM-001") onDefect(error, where);
  return renderRefusal(refusal);
}

export function renderRefusal({ problem, headers }: Refusal): Response {
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: {
      ...problemHeaders,
      // a retry should reach another coordinator, where a balancer knows one that can answer
      ...(problem.status === 503 ? { connection: "close" } : {}),
      ...headers,
    },
  });
}

async function sendBytes({ bytes, headers }: BytesReply, { outgoing, stalledMs, onDefect }: Rendering): Promise<void> {
  outgoing.writeHead(200, { ...securityHeaders, ...headers });
  disconnectStalled(outgoing, stalledMs);
  try {
    await pipeline(bytes, outgoing);
  } catch (error) {
    // the head is out: a cut answer, shorter than it said, is how the other side learns of it
    if (!outgoing.destroyed) onDefect(error, "get a file");
    outgoing.destroy();
  }
}

/** Written here instead of returned, so that the request stays open, and its token watched, until all of it is sent. */
async function sendWeb({ answer }: WebReply, { outgoing, stalledMs, onDefect }: Rendering): Promise<void> {
  const { status, headers, body } = answer.response;
  try {
    outgoing.writeHead(status, { ...securityHeaders, "cache-control": "no-store", ...Object.fromEntries(headers) });
    // the first byte of a stream may be long in coming; it carries keepalives
    outgoing.flushHeaders();
    disconnectStalled(outgoing, stalledMs);
    // the same stream by the types of Node instead of the browser's
    if (body === null) outgoing.end();
    else await pipeline(Readable.fromWeb(body as ReadableStream<Uint8Array>), outgoing);
  } catch (error) {
    // a caller that has left is no defect; closing the body has ended the work on it
    if (!outgoing.destroyed) onDefect(error, "MCP");
    outgoing.destroy();
  } finally {
    answer.onEnd();
  }
}
