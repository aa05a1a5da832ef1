import type { IncomingHttpHeaders } from "node:http";
import { unauthorized } from "./authenticate.ts";
import { Refusal } from "./refusal.ts";

/**
 * Returns the Authorization header, or else the session cookie as `Cookie TOKEN`. Browsers send cookies automatically, so
 * a write with a cookie must have an Origin header as well. The guard has already checked it.
 */
export function readCredential(
  method: string | undefined,
  { authorization, cookie, origin }: IncomingHttpHeaders,
  cookieName: string,
): string | undefined {
  if (authorization !== undefined) {
    // The result for a session cookie has this scheme. A header with it would skip the check of Origin below.
    if (/^cookie\b/i.test(authorization)) throw unauthorized("Send a token: Authorization: Bearer drv_...");
    return authorization;
  }
  const token = cookie === undefined ? undefined : readCookie(cookie, cookieName);
  if (token === undefined) return undefined;
  if (origin === undefined && method !== "GET" && method !== "HEAD") throw missingOrigin();
  return `Cookie ${token}`;
}

function readCookie(header: string, name: string): string | undefined {
  for (const part of header.split(";")) {
    const [key, value] = part.trim().split("=", 2);
    if (key === name) return value;
  }
  return undefined;
}

function missingOrigin(): Refusal {
  return new Refusal(403, "DROVER-API-013", "A write with a session cookie must come from the dashboard itself.", {
    faults: [{ path: "header.origin", message: "missing" }],
    next: "Send a token instead of the cookie: Authorization: Bearer drv_...",
  });
}
