import type { BodyOf, HeadersOf, Output, QueryOf, RouteName } from "../wire/contracts.ts";
import type { SizedBytes } from "../wire/transport.ts";
import type { RecordDeps } from "./deps.ts";
import type { Reply, SpecialReply } from "./reply.ts";
import type { ObjectKind, Objects, Principal, Rule } from "./rule.ts";

/** A route's rule and handler. Its input and output are described by its contract in `wire/`. */
export interface Route<Deps = never> {
  name: RouteName;
  /** Method (in lower case) and path are the two halves of the name. */
  method: string;
  path: string;
  rule: Rule;
  bodyLimit?: number;
  /** How long the record may take before the request fails. Only for requests that are safe to repeat. */
  recordTimeoutMs?: number;
  /** Over HTTP, sends keepalives until the response is ready, because that may take a long time. */
  sendsKeepalives?: true;
  handle(call: AnyCall<Deps>): Promise<unknown>;
}

/** The input of a handler, independent of the transport. */
export interface Call<Deps, R extends RouteName, Kind extends ObjectKind | undefined> {
  deps: Deps;
  principal: Principal;
  params: Readonly<Record<string, string>>;
  query: QueryOf<R>;
  headers: HeadersOf<R>;
  body: BodyOf<R>;
  object: Kind extends ObjectKind ? Objects[Kind] : undefined;
  /** The caller wants events as a stream instead of a page. */
  stream: boolean;
  /**
   * The origin at which the connection arrived, such as http://127.0.0.1:7070; null for a Unix socket. `POST /proof`
   * compares it with the origin that the caller used.
   */
  readonly localOrigin: string | null;
  /** The body of a route with `takesBytes`. */
  bytes: SizedBytes | undefined;
  /** Aborted with a Refusal when the caller disconnects or its token expires or is revoked. A handler that waits must observe it. */
  readonly signal: AbortSignal;
}

type AnyCall<Deps> = Omit<Call<Deps, RouteName, ObjectKind | undefined>, "query" | "headers" | "body"> & {
  query: unknown;
  headers: unknown;
  body: unknown;
};

type RouteDefinition<Deps, R extends RouteName, Kind extends ObjectKind | undefined> = Pick<
  Route,
  "bodyLimit" | "recordTimeoutMs" | "sendsKeepalives"
> & {
  rule: Exclude<Rule, { roles: unknown }> | (Omit<Extract<Rule, { roles: unknown }>, "object"> & { object?: Kind });
  handle(call: Call<Deps, R, Kind>): Promise<Output<R> | Reply<Output<R>> | SpecialReply>;
};

/**
 * Returns a function that defines a route. The contract and the rule determine the types of its handler. `Deps` are the dependencies that the
 * handlers of one file use.
 */
export function createRouteBuilder<Deps extends RecordDeps>() {
  return function route<R extends RouteName, const Kind extends ObjectKind | undefined = undefined>(
    name: R,
    definition: RouteDefinition<Deps, R, Kind>,
  ): Route<Deps> {
    const [method = "", path = ""] = name.split(" ");
    // The API passes every handler the input that its own contract and rule produced.
    return { name, method: method.toLowerCase(), path, ...definition } as unknown as Route<Deps>;
  };
}
