import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { LookupFunction } from "node:net";
import { type AddressRules, literalAddress, notAllowed } from "./addresses.ts";

export interface PostOptions {
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  rules: AddressRules;
  signal: AbortSignal;
  timeoutMs?: number;
  /** All addresses of a name, as `dns.lookup` gives them. */
  resolve?: (hostname: string, done: (fault: Error | null, addresses: LookupAddress[]) => void) => void;
}

export type PostResult = { status: number; excerpt: string } | { error: string };

const defaultTimeoutMs = 10_000;
/** How much of a response is read, and how much of that is kept. */
const maxReadBytes = 64 * 1024;
const maxKeptBytes = 1024;

/**
 * Sends one POST to an address that the rules allow. The address is checked in the connection's own DNS lookup, so a
 * second lookup cannot return a different one. Follows no redirect, uses no proxy and keeps no connection.
 */
export function post(url: URL, options: PostOptions): Promise<PostResult> {
  const { headers, body, rules, signal, timeoutMs = defaultTimeoutMs } = options;
  // no DNS lookup happens if the URL contains an IP address, so check it here
  const literal = literalAddress(url.hostname);
  if (literal !== null && !rules.mayConnect(url.hostname, literal))
    return Promise.resolve({ error: `${url.hostname} ${notAllowed}` });
  if (signal.aborted) return Promise.resolve({ error: stopped });
  return new Promise((resolve) => {
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, {
      method: "POST",
      agent: false,
      lookup: checkedLookup(options),
      headers: { ...headers, "content-length": String(body.length), connection: "close" },
    });
    const settle = (posted: PostResult): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      resolve(posted);
      request.destroy();
    };
    const stop = (): void => settle({ error: stopped });
    const timer = setTimeout(() => settle({ error: `No answer within ${timeoutMs / 1000} s.` }), timeoutMs);
    signal.addEventListener("abort", stop, { once: true });
    listen(request, settle);
    request.end(body);
  });
}

const stopped = "The coordinator stopped before the receiver answered.";

function listen(request: ClientRequest, settle: (posted: PostResult) => void): void {
  request.on("error", (fault: NodeJS.ErrnoException) => settle({ error: describe(fault) }));
  // a server that switches to another protocol has not accepted the delivery
  request.on("upgrade", (_, socket) => {
    socket.destroy();
    settle({ error: "The receiver switched to another protocol." });
  });
  request.on("response", (response) => read(response, settle));
}

/** The status decides, even if the rest of the response is lost. */
function read(response: IncomingMessage, settle: (posted: PostResult) => void): void {
  const kept: Buffer[] = [];
  let size = 0;
  const answer = (): PostResult => ({
    status: response.statusCode ?? 0,
    excerpt: Buffer.concat(kept).subarray(0, maxKeptBytes).toString("utf8"),
  });
  response.on("error", () => settle(answer()));
  response.on("close", () => settle(answer()));
  // a response that trickles in must not occupy a delivery slot for long
  const timer = setTimeout(() => settle(answer()), bodyTimeoutMs);
  response.on("close", () => clearTimeout(timer));
  response.on("data", (bytes: Buffer) => {
    if (size < maxKeptBytes) kept.push(bytes.subarray(0, maxKeptBytes));
    size += bytes.length;
    if (size > maxReadBytes) settle(answer());
  });
}

/** Starts when the status has arrived. */
const bodyTimeoutMs = 2000;

/** A DNS lookup that fails unless all addresses of the name are allowed. */
function checkedLookup({ rules, resolve = resolveAll }: PostOptions): LookupFunction {
  return (hostname, { all, family }, done) => {
    resolve(hostname, (fault, addresses) => {
      const wanted = addresses.filter((one) => family === 0 || family === undefined || one.family === Number(family));
      if (fault !== null || wanted.length === 0)
        return done(fault ?? new Error(`${hostname} has no address.`), all === true ? [] : "");
      // the message must not reveal internal addresses
      if (!addresses.every(({ address }) => rules.mayConnect(hostname, address)))
        return done(new NotAllowed(`${hostname} resolves to an address that ${notAllowed}`), all === true ? [] : "");
      if (all === true) return done(null, wanted);
      return done(null, wanted[0]!.address, wanted[0]!.family);
    });
  };
}

class NotAllowed extends Error {}

function resolveAll(hostname: string, done: (fault: Error | null, addresses: LookupAddress[]) => void): void {
  systemLookup(hostname, { all: true }, (fault, addresses) => done(fault, addresses ?? []));
}

function describe(fault: NodeJS.ErrnoException): string {
  return fault instanceof NotAllowed ? fault.message : (fault.code ?? fault.message).slice(0, 500);
}
