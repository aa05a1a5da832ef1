import { RequestError } from "../model/errors.ts";

/** Where a coordinator is. */
export type Address =
  /** `unix:/abs/path`: a socket on this machine. */
  | { kind: "unix"; path: string }
  | {
      kind: "tcp";
      secure: boolean;
      /** Without brackets. */
      hostname: string;
      port: number;
      /** As the Host header has it. */
      host: string;
      /** What its paths begin with; empty where it serves at the root. */
      prefix: string;
    };

/** Linux takes 108 bytes for the path of a socket, one of which ends it. */
export const maxSocketPathBytes = 107;

/** Refuses what would send a token where anybody on the way can read it, unless that is allowed. */
export function readAddress(url: string, allowHttp: boolean): Address {
  if (url.startsWith("unix:")) return unixAddress(url);
  if (!URL.canParse(url)) throw unusable(url, "is not an address");
  const { protocol, hostname, port, host, pathname, username, password } = new URL(url);
  const secure = protocol === "https:";
  if (!secure && protocol !== "http:") throw unusable(url, "does not begin with http://, https:// or unix:/");
  if (username !== "" || password !== "")
    throw unusable(`${protocol}//…@${host}`, "has a user name or password in it, which Drover does not send");
  if (!secure && !allowHttp && !isLoopbackName(hostname)) throw unencrypted(url);
  return {
    kind: "tcp",
    secure,
    hostname: hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, ""),
    port: port === "" ? (secure ? 443 : 80) : Number(port),
    host: host.replace(/\.(?=:|$)/, ""),
    prefix: pathname.replace(/\/+$/, ""),
  };
}

/** Whether a token for this address goes over a network in the clear. */
export function isUnencrypted(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopbackName(hostname);
}

/** Of a URL, which has made 127.1 and 0x7f.1 into 127.0.0.1 already. */
export function isLoopbackName(hostname: string): boolean {
  return /^(?:localhost\.?|\[::1\]|127\.\d+\.\d+\.\d+|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]+\])$/.test(hostname);
}

function unixAddress(url: string): Address {
  const path = url.slice("unix:".length);
  if (!path.startsWith("/") || path.includes("\0")) throw unusable(url, "has no absolute path after unix:");
  if (Buffer.byteLength(path) > maxSocketPathBytes)
    throw unusable(url, `is longer than the ${maxSocketPathBytes} bytes that the path of a socket may have`);
  return { kind: "unix", path };
}

function unusable(url: string, why: string): RequestError {
  return new RequestError({
    code: "DROVER-API-035",
    field: "DROVER_API_URL",
    message: `The coordinator's address ${url} ${why}.`,
    next: "Give it as https://drover.example, http://127.0.0.1:8765 or unix:/path/of/socket.",
  });
}

function unencrypted(url: string): RequestError {
  return new RequestError({
    code: "DROVER-API-035",
    field: "DROVER_API_URL",
    message: `${url} is another machine and not encrypted: anybody on the way could read the token and hand out runs.`,
    next: "Use https://, or allow it on a network that you trust with --allow-http or DROVER_ALLOW_HTTP=1.",
  });
}
