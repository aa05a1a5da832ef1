import type { RouteName } from "../wire/contracts.ts";
import type { CallInput, SizedBytes } from "../wire/transport.ts";
import { authorize, loadObject } from "./authorize.ts";
import type { RecordDeps } from "./deps.ts";
import { Refusal } from "./refusal.ts";
import type { Route } from "./route.ts";
import type { Principal } from "./rule.ts";

/** Every call, over HTTP or in this process, goes through here: authorize, validate, load the object, run the handler. */
export interface Api {
  call(principal: Principal, name: RouteName, input: ApiInput): Promise<unknown>;
}

export interface ApiInput extends CallInput {
  bytes?: SizedBytes;
  readonly localOrigin?: string | null;
  /** Reads the body. Called only after the caller is authorized. */
  readBody?(): Promise<unknown>;
  /** Applies a deadline to the handler. */
  withDeadline?<T>(work: Promise<T>): Promise<T>;
  readonly signal?: AbortSignal | undefined;
}

/** Validates the parts of a call against the route's contract. Throws a Refusal if they do not match. */
export interface InputCheck {
  query(name: RouteName, value: CallInput["query"]): unknown;
  headers(name: RouteName, value: CallInput["headers"]): unknown;
  body(name: RouteName, value: unknown): unknown;
}

export function createApi<Deps extends RecordDeps>(deps: Deps, routes: readonly Route<Deps>[], check: InputCheck): Api {
  const byName = new Map<RouteName, Route<Deps>>(routes.map((route) => [route.name, route]));
  return {
    async call(principal, name, input) {
      const route = byName.get(name);
      if (route === undefined) throw needsCoordinator(name);
      authorize(route.rule, principal);
      const params = input.params ?? noParams;
      const query = check.query(name, input.query);
      const headers = check.headers(name, input.headers);
      const object = await loadObject(route.rule, principal, params, deps);
      const body = check.body(name, input.readBody ? await input.readBody() : input.body);
      const work = route.handle({
        deps,
        principal,
        params,
        query,
        headers,
        body,
        object,
        stream: input.stream === true,
        get localOrigin() {
          return input.localOrigin ?? null;
        },
        bytes: input.bytes,
        get signal() {
          return input.signal ?? neverAborted;
        },
      });
      return input.withDeadline ? input.withDeadline(work) : work;
    },
  };
}

const noParams = {};
const neverAborted = new AbortController().signal;

function needsCoordinator(name: RouteName): Refusal {
  return new Refusal(503, "DROVER-API-023", `${name} needs a coordinator, and none is running here.`, {
    next: "Start one with `drover up`, or set DROVER_API_URL and DROVER_API_KEY to use another.",
  });
}
