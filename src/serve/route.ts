import type { BodyOf, HeadersOf, Output, QueryOf, RouteName } from "../wire/contracts.ts";
import type { SizedBytes } from "../wire/transport.ts";
import type { RecordDeps } from "./deps.ts";
import type { Reply, SpecialReply } from "./reply.ts";
import type { ObjectKind, Objects, Principal, Rule } from "./rule.ts";

/** One route as it is served: what it takes and gives is its contract in `wire/`. */
export interface Route<Deps = never> {
  name: RouteName;
  /** The two halves of the name; the method in lower case. */
  method: string;
  path: string;
  rule: Rule;
  bodyLimit?: number;
  /** How long the record may take before the caller is refused. Only for requests that may be repeated. */
  recordMs?: number;
  /** The answer may take long: over HTTP, keepalives are sent until it is there. */
  held?: true;
  handle(call: AnyCall<Deps>): Promise<unknown>;
}

/** A call of a route: data, whatever brought it. */
export interface Call<Deps, R extends RouteName, Object extends ObjectKind | undefined> {
  deps: Deps;
  principal: Principal;
  params: Readonly<Record<string, string>>;
  query: QueryOf<R>;
  headers: HeadersOf<R>;
  body: BodyOf<R>;
  object: Object extends ObjectKind ? Objects[Object] : undefined;
  /** The caller wants events as a stream, not as a page. */
  stream: boolean;
  /** The origin that a caller who is connected directly sees; null for a call that did not come over TCP. */
  readonly arrivedAt: string | null;
  /** The body of a route that takes bytes. */
  bytes: SizedBytes | undefined;
  /** Aborted with a Refusal when the caller hangs up or may no longer go on. A handler that waits has to heed it. */
  readonly signal: AbortSignal;
}

type AnyCall<Deps> = Omit<Call<Deps, RouteName, ObjectKind | undefined>, "query" | "headers" | "body"> & {
  query: unknown;
  headers: unknown;
  body: unknown;
};

type RowOf<Deps, R extends RouteName, Object extends ObjectKind | undefined> = Pick<
  Route,
  "bodyLimit" | "recordMs" | "held"
> & {
  rule: Exclude<Rule, { roles: unknown }> | (Omit<Extract<Rule, { roles: unknown }>, "object"> & { object?: Object });
  handle(call: Call<Deps, R, Object>): Promise<Output<R> | Reply<Output<R>> | SpecialReply>;
};

/** Gives the handler the types of its contract and its rule; `Deps` is all that the handlers of one file use. */
export function routeWith<Deps extends RecordDeps>() {
  return function route<R extends RouteName, const Object extends ObjectKind | undefined = undefined>(
    name: R,
    row: RowOf<Deps, R, Object>,
  ): Route<Deps> {
    const [method = "", path = ""] = name.split(" ");
    // the API hands every handler what its own contract and rule made: the types above say exactly that
    return { name, method: method.toLowerCase(), path, ...row } as unknown as Route<Deps>;
  };
}
