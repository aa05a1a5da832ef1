import type { IncomingHttpHeaders } from "node:http";
import { Refusal } from "./refusal.ts";

/**
 * What a request is authenticated by: its Authorization header, else the session cookie as `Cookie TOKEN`.
 * A browser sends the cookie by itself, so a write with it must also name the Origin it comes from. The guard has
 * checked that Origin already.
 */
export function credentialOf(
  method: string | undefined,
  { authorization, cookie, origin }: IncomingHttpHeaders,
  cookieName: string,
): string | undefined {
  if (authorization !== undefined) return authorization;
  const token = cookie === undefined ? undefined : readCookie(cookie, cookieName);
  if (token === undefined) return undefined;
  if (origin === undefined && method !== "GET" && method !== "HEAD") throw withoutOrigin();
  return `Cookie ${token}`;
}

function readCookie(header: string, name: string): string | undefined {
  for (const part of header.split(";")) {
    const [key, value] = part.trim().split("=", 2);
    if (key === name) return value;
  }
  return undefined;
}

function withoutOrigin(): Refusal {
  return new Refusal(403, "DROVER-API-013", "A write with a session cookie must come from the dashboard itself.", {
    faults: [{ path: "header.origin", message: "missing" }],
    next: "Send a token instead of the cookie: Authorization: Bearer drv_...",
  });
}
