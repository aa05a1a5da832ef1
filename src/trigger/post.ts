import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { LookupFunction } from "node:net";
import { type AddressRules, getLiteralAddress, notAllowedMessage } from "./addresses.ts";

export interface PostOptions {
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  rules: AddressRules;
  signal: AbortSignal;
  timeoutMs?: number;
  /** Resolves a name to all its addresses, like `dns.lookup`. */
  resolve?: (hostname: string, done: (error: Error | null, addresses: LookupAddress[]) => void) => void;
}

export type PostResult = { status: number; excerpt: string } | { error: string };

const defaultTimeoutMs = 10_000;
/** How much of a response is read, and how much of that becomes the excerpt. */
const maxReadBytes = 64 * 1024;
const maxExcerptBytes = 1024;

/**
 * Sends one POST to an address that the rules allow. The address is checked in the connection's own DNS lookup, so a
 * second lookup cannot return a different one. Does not follow redirects, use a proxy or reuse connections.
 */
export function post(url: URL, options: PostOptions): Promise<PostResult> {
  const { headers, body, rules, signal, timeoutMs = defaultTimeoutMs } = options;
  // No DNS lookup happens if the URL contains an IP address, so check it here.
  const literalAddress = getLiteralAddress(url.hostname);
  if (literalAddress !== null && !rules.mayConnect(url.hostname, literalAddress))
    return Promise.resolve({ error: `${url.hostname} ${notAllowedMessage}` });
  if (signal.aborted) return Promise.resolve({ error: stoppedMessage });
  return new Promise((resolve) => {
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, {
      method: "POST",
      agent: false,
      lookup: createCheckedLookup(options),
      headers: { ...headers, "content-length": String(body.length), connection: "close" },
    });
    const settle = (result: PostResult): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      resolve(result);
      request.destroy();
    };
    const stop = (): void => settle({ error: stoppedMessage });
    const timer = setTimeout(() => settle({ error: `No response within ${timeoutMs / 1000} s.` }), timeoutMs);
    signal.addEventListener("abort", stop, { once: true });
    handleEvents(request, settle);
    request.end(body);
  });
}

const stoppedMessage = "The coordinator stopped before the receiver responded.";

function handleEvents(request: ClientRequest, settle: (result: PostResult) => void): void {
  request.on("error", (error: NodeJS.ErrnoException) => settle({ error: describeError(error) }));
  // A server that switches to another protocol has not accepted the delivery.
  request.on("upgrade", (_, socket) => {
    socket.destroy();
    settle({ error: "The receiver switched to another protocol." });
  });
  request.on("response", (response) => readResponse(response, settle));
}

/** The status decides whether the delivery succeeded, even if the rest of the response is lost. */
function readResponse(response: IncomingMessage, settle: (result: PostResult) => void): void {
  const chunks: Buffer[] = [];
  let size = 0;
  const buildResult = (): PostResult => ({
    status: response.statusCode ?? 0,
    excerpt: Buffer.concat(chunks).subarray(0, maxExcerptBytes).toString("utf8"),
  });
  response.on("error", () => settle(buildResult()));
  response.on("close", () => settle(buildResult()));
  // A slow response must not occupy a delivery for long.
  const timer = setTimeout(() => settle(buildResult()), bodyTimeoutMs);
  response.on("close", () => clearTimeout(timer));
  response.on("data", (bytes: Buffer) => {
    if (size < maxExcerptBytes) chunks.push(bytes.subarray(0, maxExcerptBytes));
    size += bytes.length;
    if (size > maxReadBytes) settle(buildResult());
  });
}

/** How long to wait for the body after the status has arrived. */
const bodyTimeoutMs = 2000;

/** Creates a DNS lookup that fails unless all addresses of the name are allowed. */
function createCheckedLookup({ rules, resolve = resolveAll }: PostOptions): LookupFunction {
  return (hostname, { all, family }, done) => {
    resolve(hostname, (error, addresses) => {
      const matching = addresses.filter(
        (address) => family === 0 || family === undefined || address.family === Number(family),
      );
      if (error !== null || matching.length === 0)
        return done(error ?? new Error(`${hostname} has no address.`), all === true ? [] : "");
      // The message must not reveal internal addresses.
      if (!addresses.every(({ address }) => rules.mayConnect(hostname, address)))
        return done(
          new AddressNotAllowedError(`${hostname} resolves to an address that ${notAllowedMessage}`),
          all === true ? [] : "",
        );
      if (all === true) return done(null, matching);
      return done(null, matching[0]!.address, matching[0]!.family);
    });
  };
}

class AddressNotAllowedError extends Error {}

function resolveAll(hostname: string, done: (error: Error | null, addresses: LookupAddress[]) => void): void {
  systemLookup(hostname, { all: true }, (error, addresses) => done(error, addresses ?? []));
}

function describeError(error: NodeJS.ErrnoException): string {
  return error instanceof AddressNotAllowedError ? error.message : (error.code ?? error.message).slice(0, 500);
}
