import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import type { FeedHub } from "../show/feed-hub.ts";
import { disconnectStalled } from "./disconnect-stalled.ts";
import { type Refusal, toRefusal } from "./refusal.ts";
import { alreadySent, type RenderedResponse, toResponse } from "./rendered-response.ts";
import { BackupReply, BytesReply, FeedReply, Reply, TextReply, WebReply } from "./reply.ts";
import type { SharedDeflate } from "./shared-deflate.ts";
import { createSseSink } from "./sse-sink.ts";

/** Set on every response. */
export const securityHeaders = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
};
const jsonHeaders = { ...securityHeaders, "content-type": "application/json", "cache-control": "no-store" };
const problemHeaders = { ...jsonHeaders, "content-type": "application/problem+json" };

interface RenderTarget {
  outgoing: ServerResponse;
  hub: FeedHub;
  acceptEncoding: string;
  deflate: SharedDeflate;
  /** Disconnects a client that reads nothing of its stream for this long. */
  stalledMs?: number | undefined;
  sendBackup(reply: BackupReply): Promise<void>;
  onDefect(error: unknown, where: string): void;
}

/** Converts a handler's return value to an HTTP response. Streams are written until they end. */
export async function render(reply: unknown, target: RenderTarget): Promise<RenderedResponse> {
  if (reply instanceof BytesReply) await sendBytes(reply, target);
  else if (reply instanceof WebReply) await sendWeb(reply, target);
  else if (reply instanceof BackupReply) await target.sendBackup(reply);
  else if (reply instanceof FeedReply) {
    const sink = createSseSink(target.outgoing, {
      ...target,
      deflate: reply.source.mixesOwners ? null : target.deflate,
    });
    sink.whenClosed(target.hub.follow(reply.source, reply.after, sink, reply.partials).stop);
  } else if (reply instanceof TextReply)
    return { status: 200, headers: { ...securityHeaders, ...reply.headers }, body: reply.text };
  else if (reply instanceof Reply) return renderJson(reply.status, reply.body, reply.headers);
  else return renderJson(200, reply);
  return alreadySent;
}

function renderJson(status: number, body: unknown, headers?: Readonly<Record<string, string>>): RenderedResponse {
  if (body === undefined)
    return { status: status === 200 ? 204 : status, headers: { ...securityHeaders, ...headers }, body: null };
  return { status, headers: headers ? { ...jsonHeaders, ...headers } : jsonHeaders, body: JSON.stringify(body) };
}

export function renderError(error: unknown, where: string, onDefect: RenderTarget["onDefect"]): RenderedResponse {
  const refusal = toRefusal(error);
  // Exceeding a limit is not a defect, and logging it would fill the log.
  if (refusal.problem.status >= 500 && refusal.problem.code !== "DROVER-LIM-001") onDefect(error, where);
  return renderProblem(refusal);
}

export function renderRefusal(refusal: Refusal): Response {
  return toResponse(renderProblem(refusal));
}

function renderProblem({ problem, headers }: Refusal): RenderedResponse {
  return {
    status: problem.status,
    headers: {
      ...problemHeaders,
      // Lets a load balancer send the retry to another coordinator.
      ...(problem.status === 503 ? { connection: "close" } : {}),
      ...headers,
    },
    body: JSON.stringify(problem),
  };
}

async function sendBytes(
  { bytes, headers }: BytesReply,
  { outgoing, stalledMs, onDefect }: RenderTarget,
): Promise<void> {
  outgoing.writeHead(200, { ...securityHeaders, ...headers });
  disconnectStalled(outgoing, stalledMs);
  try {
    await pipeline(bytes, outgoing);
  } catch (error) {
    // The headers have been sent. The client notices the failure because the body is shorter than its Content-Length.
    if (!outgoing.destroyed) onDefect(error, "sending a file");
    outgoing.destroy();
  }
}

/** Writes the response here instead of returning it, so that the token stays watched until all of it is sent. */
async function sendWeb({ mcp }: WebReply, { outgoing, stalledMs, onDefect }: RenderTarget): Promise<void> {
  const { status, headers, body } = mcp.response;
  try {
    outgoing.writeHead(status, { ...securityHeaders, "cache-control": "no-store", ...Object.fromEntries(headers) });
    // The first byte of the stream may take a while; after that it carries keepalives.
    outgoing.flushHeaders();
    disconnectStalled(outgoing, stalledMs);
    if (body === null) outgoing.end();
    // Node and the DOM have separate types for the same stream.
    else await pipeline(Readable.fromWeb(body as ReadableStream<Uint8Array>), outgoing);
  } catch (error) {
    // A caller that disconnected is not a defect. Closing the body has cancelled the work.
    if (!outgoing.destroyed) onDefect(error, "MCP");
    outgoing.destroy();
  } finally {
    mcp.onEnd();
  }
}
