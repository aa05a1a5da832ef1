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
/** Of an answer: what is read, and what of it is kept. */
const mostRead = 64 * 1024;
const mostKept = 1024;

/**
 * One POST to an address that the rules allow. The address is checked where it is connected to: what the check saw is what the
 * connection gets. No redirect is followed, no proxy is asked, no connection is kept.
 */
export function post(url: URL, options: PostOptions): Promise<PostResult> {
  const { headers, body, rules, signal, timeoutMs = defaultTimeoutMs } = options;
  // a connection to an address that stands in the URL looks nothing up
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
    watch(request, settle);
    request.end(body);
  });
}

const stopped = "The coordinator stopped before an answer came.";

function watch(request: ClientRequest, settle: (posted: PostResult) => void): void {
  request.on("error", (fault: NodeJS.ErrnoException) => settle({ error: describe(fault) }));
  // a server that would switch to another protocol has not taken the delivery
  request.on("upgrade", (_, socket) => {
    socket.destroy();
    settle({ error: "The answer switches to another protocol." });
  });
  request.on("response", (response) => read(response, settle));
}

/** The status counts, whatever becomes of the rest of the answer. */
function read(response: IncomingMessage, settle: (posted: PostResult) => void): void {
  const kept: Buffer[] = [];
  let size = 0;
  const answer = (): PostResult => ({
    status: response.statusCode ?? 0,
    excerpt: Buffer.concat(kept).subarray(0, mostKept).toString("utf8"),
  });
  response.on("error", () => settle(answer()));
  response.on("close", () => settle(answer()));
  // answers that trickle in hold a slot until the receiver's time is up, and no longer
  const enough = setTimeout(() => settle(answer()), slowestAnswerMs);
  response.on("close", () => clearTimeout(enough));
  response.on("data", (bytes: Buffer) => {
    if (size < mostKept) kept.push(bytes.subarray(0, mostKept));
    size += bytes.length;
    if (size > mostRead) settle(answer());
  });
}

/** Once there is a status. */
const slowestAnswerMs = 2000;

/** Gives the connection only addresses that are allowed: all of a name's, or none. */
function checkedLookup({ rules, resolve = resolveAll }: PostOptions): LookupFunction {
  return (hostname, { all, family }, done) => {
    resolve(hostname, (fault, addresses) => {
      const wanted = addresses.filter((one) => family === 0 || family === undefined || one.family === Number(family));
      if (fault !== null || wanted.length === 0)
        return done(fault ?? new Error(`${hostname} has no address.`), all === true ? [] : "");
      // what it resolves to is not for everybody to read
      if (!addresses.every(({ address }) => rules.mayConnect(hostname, address)))
        return done(new NotAllowed(`${hostname} resolves to what ${notAllowed}`), all === true ? [] : "");
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
