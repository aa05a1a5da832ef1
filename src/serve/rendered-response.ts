import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";

/** A complete response. Unlike a web `Response`, it costs almost nothing to create and read. */
export interface RenderedResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string | null;
}

/** Returned if the handler has written the response to the socket itself, or will. */
export const alreadySent: RenderedResponse = { status: 200, headers: {}, body: null };

export function toResponse(rendered: RenderedResponse): Response {
  const { body, ...init } = rendered;
  return rendered === alreadySent ? RESPONSE_ALREADY_SENT : new Response(body, init);
}
