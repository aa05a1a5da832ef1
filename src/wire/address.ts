import { RequestError } from "../model/errors.ts";

/** A coordinator's address, parsed. */
export type Address =
  /** `unix:/abs/path`: a socket on this machine. */
  | { kind: "unix"; path: string }
  | {
      kind: "tcp";
      isSecure: boolean;
      /** Without brackets. */
      hostname: string;
      port: number;
      /** Value of the Host header. */
      host: string;
      /** Path prefix of every route; empty if the API is served at the root. */
      prefix: string;
    };

/** Linux allows 108 bytes for a socket path, including the terminating NUL. */
export const maxSocketPathBytes = 107;

/** Throws unless the token travels encrypted or stays on this machine. `allowHttp` lifts that restriction. */
export function parseAddress(url: string, allowHttp: boolean): Address {
  if (url.startsWith("unix:")) return parseUnixAddress(url);
  if (!URL.canParse(url)) throw invalidAddress(url, "is not a valid URL");
  const { protocol, hostname, port, host, pathname, username, password } = new URL(url);
  const isSecure = protocol === "https:";
  if (!isSecure && protocol !== "http:") throw invalidAddress(url, "does not start with http://, https:// or unix:/");
  if (username !== "" || password !== "")
    throw invalidAddress(`${protocol}//…@${host}`, "contains a user name or password, which Drover does not send");
  if (!isSecure && !allowHttp && !isLoopbackName(hostname)) throw unencryptedAddress(url);
  return {
    kind: "tcp",
    isSecure,
    hostname: hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, ""),
    port: port === "" ? (isSecure ? 443 : 80) : Number(port),
    host: host.replace(/\.(?=:|$)/, ""),
    prefix: pathname.replace(/\/+$/, ""),
  };
}

/** Reports whether a token sent to this address would cross a network in plain text. */
export function isUnencrypted(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopbackName(hostname);
}

/** Expects the hostname of a parsed URL: `URL` has already normalized 127.1 and 0x7f.1 to 127.0.0.1. */
export function isLoopbackName(hostname: string): boolean {
  return /^(?:localhost\.?|\[::1\]|127\.\d+\.\d+\.\d+|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]+\])$/.test(hostname);
}

function parseUnixAddress(url: string): Address {
  const path = url.slice("unix:".length);
  if (!path.startsWith("/") || path.includes("\0")) throw invalidAddress(url, "has no absolute path after unix:");
  if (Buffer.byteLength(path) > maxSocketPathBytes)
    throw invalidAddress(url, `has a socket path longer than ${maxSocketPathBytes} bytes`);
  return { kind: "unix", path };
}

function invalidAddress(url: string, problem: string): RequestError {
  return new RequestError({
    code: "DROVER-API-035",
    field: "DROVER_API_URL",
    message: `The coordinator's address ${url} ${problem}.`,
    next: "Use an address such as https://drover.example, http://127.0.0.1:8765 or unix:/path/to/socket.",
  });
}

function unencryptedAddress(url: string): RequestError {
  return new RequestError({
    code: "DROVER-API-035",
    field: "DROVER_API_URL",
    message: `${url} is on another machine and not encrypted: anyone on the network path could read the token and hand out runs.`,
    next: "Use https://. On a network you trust, allow plain HTTP with --allow-http or DROVER_ALLOW_HTTP=1.",
  });
}
