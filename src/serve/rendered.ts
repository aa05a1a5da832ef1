import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";

/** A complete response. Unlike a `Response` of the web, it costs next to nothing to make and to read. */
export interface Rendered {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string | null;
}

/** The response has been written to the socket, or will be. */
export const alreadySent: Rendered = { status: 200, headers: {}, body: null };

export function toResponse(rendered: Rendered): Response {
  const { body, ...init } = rendered;
  return rendered === alreadySent ? RESPONSE_ALREADY_SENT : new Response(body, init);
}
