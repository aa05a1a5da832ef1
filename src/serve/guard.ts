import { Refusal } from "./refusal.ts";

interface GuardHeaders {
  host?: string | undefined;
  origin?: string | undefined;
  "sec-fetch-site"?: string | undefined;
  "sec-fetch-mode"?: string | undefined;
}

export type Guard = (method: string, headers: GuardHeaders) => Refusal | null;

/**
 * Protects a local server against web pages. A Host that is neither loopback nor in `public_urls` may be someone else's
 * name pointed at this machine (DNS rebinding). A request from a web page must come from this exact origin: another port
 * on localhost is another program. If a proxy terminates TLS, its address is in `public_urls`.
 */
export function createGuard(publicUrls: readonly string[]): Guard {
  const publicOrigins = new Set(publicUrls.map((url) => new URL(url).origin));
  const publicHosts = new Set(publicUrls.map((url) => new URL(url).host));
  return (method, headers) => {
    const host = headers.host?.toLowerCase();
    if (host === undefined || !(isLoopbackHost(host) || publicHosts.has(host))) {
      return new Refusal(
        403,
        "DROVER-API-012",
        `This coordinator does not accept requests for the host ${headers.host ?? "(none)"}.`,
        {
          faults: [{ path: "header.host", message: "neither loopback nor in public_urls" }],
          next: "Use http://127.0.0.1, or add the address to public_urls.",
        },
      );
    }
    const { origin } = headers;
    if (origin !== undefined && !publicOrigins.has(origin) && origin !== `http://${host}`) return refuseOrigin(origin);
    const site = headers["sec-fetch-site"];
    const isNavigation = method === "GET" && headers["sec-fetch-mode"] === "navigate";
    if (origin === undefined && site !== undefined && site !== "same-origin" && site !== "none" && !isNavigation) {
      return refuseSite(site);
    }
    return null;
  };
}

/** Accepts localhost, 127.0.0.0/8 and ::1, with any port. */
export function isLoopbackHost(host: string): boolean {
  const name = host.replace(/:\d{1,5}$/, "");
  return name === "localhost" || name === "[::1]" || isLoopbackAddress(name);
}

export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || address === "localhost" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(address);
}

function refuseOrigin(origin: string): Refusal {
  return new Refusal(403, "DROVER-API-013", `Requests from web pages of ${origin.slice(0, 200)} are not accepted.`, {
    faults: [{ path: "header.origin", message: "not this coordinator's own origin" }],
    next: "If these pages are yours, add their address to public_urls.",
  });
}

/** The request does not name the page that made it. */
function refuseSite(site: string): Refusal {
  const message = `Requests from other web pages are not accepted (Sec-Fetch-Site: ${site.slice(0, 200)}).`;
  return new Refusal(403, "DROVER-API-013", message, {
    faults: [{ path: "header.sec-fetch-site", message: "not from one of this coordinator's own pages" }],
    next: "Send the request from this coordinator's own pages or from a program that is not a browser.",
  });
}
