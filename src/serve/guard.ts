import { Refusal } from "./refusal.ts";

interface GuardHeaders {
  host?: string | undefined;
  origin?: string | undefined;
  "sec-fetch-site"?: string | undefined;
  "sec-fetch-mode"?: string | undefined;
}

export type Guard = (method: string, headers: GuardHeaders) => Refusal | null;

/**
 * Against web pages that reach for a server on this machine. A Host that is neither loopback nor one of
 * `public_urls` is a name someone else has pointed here (DNS rebinding). A request that a page made must
 * come from this very origin: another port on localhost is another program. TLS is a proxy's, and its address one of
 * `public_urls`.
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
        `This coordinator does not answer to the host name ${headers.host ?? "(none)"}.`,
        {
          faults: [{ path: "header.host", message: "neither a loopback name nor one of public_urls" }],
          next: "Use http://127.0.0.1, or add the address to public_urls.",
        },
      );
    }
    const { origin } = headers;
    if (origin !== undefined && !publicOrigins.has(origin) && origin !== `http://${host}`)
      return badOrigin("header.origin", origin);
    const site = headers["sec-fetch-site"];
    const navigation = method === "GET" && headers["sec-fetch-mode"] === "navigate";
    if (origin === undefined && site !== undefined && site !== "same-origin" && site !== "none" && !navigation) {
      return badOrigin("header.sec-fetch-site", site);
    }
    return null;
  };
}

/** localhost, 127.0.0.0/8 and ::1, with any port. */
export function isLoopbackHost(host: string): boolean {
  const name = host.replace(/:\d{1,5}$/, "");
  return name === "localhost" || name === "[::1]" || isLoopbackAddress(name);
}

export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || address === "localhost" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(address);
}

function badOrigin(path: string, value: string): Refusal {
  return new Refusal(403, "DROVER-API-013", `Requests from the web page ${value.slice(0, 200)} are not accepted.`, {
    faults: [{ path, message: "not this coordinator's own origin" }],
    next: "If that page is yours, add its address to public_urls.",
  });
}
