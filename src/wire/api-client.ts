import type { Input, Output, RouteName } from "./contracts.ts";
import { followEvents, type FollowOptions } from "./follow-events.ts";
import type { Transport } from "./transport.ts";

export type ApiClient = ReturnType<typeof createApiClient>;
export type FlatAgent = Output<"GET /agents/{name}">;
export type NewToken = Input<"POST /tokens">["body"];
export type AnswerBody = Input<"POST /runs/{run_id}/permissions/{request_id}">["body"];
export type Submission = Input<"POST /runs">["body"] & { idempotency_key?: string };

/** The API as functions, typed by the contracts. The imports are types only, so no schema is loaded. */
export function createApiClient(transport: Transport) {
  // The coordinator responds according to the same contracts.
  const call = <R extends RouteName>(route: R, input: Input<R>) => transport.json(route, input) as Promise<Output<R>>;
  type Query<R extends RouteName> = Input<R>["query"];
  return {
    url: transport.url,
    health: () => call("GET /health", {}),
    me: () => call("GET /me", {}),
    signIn: {
      link: () => call("POST /sign-in/links", {}),
      exchange: (code: string) => call("POST /sign-in", { body: { code } }),
      end: () => call("DELETE /sign-in", {}),
    },
    submit({ idempotency_key, ...body }: Submission) {
      return call("POST /runs", {
        body,
        ...(idempotency_key === undefined ? {} : { headers: { "idempotency-key": idempotency_key } }),
      });
    },
    /** Submits up to 1,000 runs at once. Each item has the run, or the problem that caused its refusal. */
    async submitAll(runs: readonly Submission[]) {
      return (await call("POST /runs/batch", { body: { runs: [...runs] } })).items;
    },
    runs: {
      list: (query: Query<"GET /runs"> = {}) => call("GET /runs", { query }),
      get: (run_id: string) => call("GET /runs/{run_id}", { params: { run_id } }),
      stop: (run_id: string) => call("POST /runs/{run_id}/stop", { params: { run_id } }),
      stopMany: (body: Input<"POST /runs/stop">["body"]) => call("POST /runs/stop", { body }),
      /** Continues a parked run now. */
      resume: (run_id: string) => call("POST /runs/{run_id}/resume", { params: { run_id } }),
      input: (run_id: string, text: string) =>
        call("POST /runs/{run_id}/input", { params: { run_id }, body: { text } }),
      retry: (run_id: string) => call("POST /runs/{run_id}/retry", { params: { run_id } }),
      why: (run_id: string) => call("GET /runs/{run_id}/why", { params: { run_id } }),
      events: (run_id: string, query: Query<"GET /runs/{run_id}/events"> = {}) =>
        call("GET /runs/{run_id}/events", { params: { run_id }, query }),
      files: (run_id: string) => call("GET /runs/{run_id}/files", { params: { run_id } }),
      file,
      follow: (run_id: string, follow: FollowOptions = {}) => followEvents(transport, run_id, follow),
    },
    questions: {
      /** Lists open questions unless the query asks for others. */
      list: (query: Query<"GET /questions"> = {}) => call("GET /questions", { query }),
      answer: (run_id: string, request_id: string, body: AnswerBody) =>
        call("POST /runs/{run_id}/permissions/{request_id}", { params: { run_id, request_id }, body }),
    },
    usage: (query: Query<"GET /usage"> = {}) => call("GET /usage", { query }),
    stats: (query: Query<"GET /stats"> = {}) => call("GET /stats", { query }),
    audit: {
      state: () => call("GET /audit", {}),
      verify: () => call("POST /audit/verify", {}),
    },
    events: (query: Query<"GET /events"> = {}) => call("GET /events", { query }),
    follow: (follow: FollowOptions = {}) => followEvents(transport, null, follow),
    agents: {
      /** Reads every page. */
      list: () => readAllPages((query) => call("GET /agents", { query })),
      get: (name: string) => call("GET /agents/{name}", { params: { name } }),
      put: (name: string, body: Input<"PUT /agents/{name}">["body"]) =>
        call("PUT /agents/{name}", { params: { name }, body }),
      remove: (name: string) => call("DELETE /agents/{name}", { params: { name } }),
    },
    schedules: {
      list: (query: Query<"GET /schedules"> = {}) => call("GET /schedules", { query }),
      get: (schedule_id: string) => call("GET /schedules/{schedule_id}", { params: { schedule_id } }),
      create: (body: Input<"POST /schedules">["body"]) => call("POST /schedules", { body }),
      change: (schedule_id: string, body: Input<"PATCH /schedules/{schedule_id}">["body"]) =>
        call("PATCH /schedules/{schedule_id}", { params: { schedule_id }, body }),
      remove: (schedule_id: string) => call("DELETE /schedules/{schedule_id}", { params: { schedule_id } }),
      /** Runs it now, regardless of its times. */
      run: (schedule_id: string) => call("POST /schedules/{schedule_id}/run", { params: { schedule_id } }),
      history: (schedule_id: string, query: Query<"GET /schedules/{schedule_id}/history"> = {}) =>
        call("GET /schedules/{schedule_id}/history", { params: { schedule_id }, query }),
      preview: (body: Input<"POST /schedules/preview">["body"]) => call("POST /schedules/preview", { body }),
    },
    runners: {
      /** Reads every page. */
      list: () => readAllPages((query) => call("GET /runners", { query })),
      drain: (runner_id: string, draining = true) =>
        call("POST /runners/{runner_id}/drain", { params: { runner_id }, body: { draining } }),
      /** Exchanges this client's enrolment token for the runner's own token. */
      enroll: () => call("POST /runner/enroll", {}),
    },
    sessions: {
      list: (query: Query<"GET /sessions"> = {}) => call("GET /sessions", { query }),
      get: (session_id: string) => call("GET /sessions/{session_id}", { params: { session_id } }),
      remove: (session_id: string) => call("DELETE /sessions/{session_id}", { params: { session_id } }),
      bind: (session_id: string, executor_session_id: string) =>
        call("POST /sessions/{session_id}/bind", { params: { session_id }, body: { executor_session_id } }),
    },
    executions: {
      list: (query: Query<"GET /executions"> = {}) => call("GET /executions", { query }),
      get: (execution_id: string) => call("GET /executions/{execution_id}", { params: { execution_id } }),
    },
    tokens: {
      list: (query: Query<"GET /tokens"> = {}) => call("GET /tokens", { query }),
      create: (body: NewToken) => call("POST /tokens", { body }),
      revoke: (token_id: string) => call("DELETE /tokens/{token_id}", { params: { token_id } }),
      revokeSubject: (subject: string) => call("POST /tokens/revoke", { body: { subject } }),
      /** The id `self` means this client's own token. */
      rotate: (token_id: string, body: Input<"POST /tokens/{token_id}/rotate">["body"] = {}) =>
        call("POST /tokens/{token_id}/rotate", { params: { token_id }, body }),
    },
    hooks: {
      /** Reads every page. */
      list: () => readAllPages((query) => call("GET /hooks", { query })),
      get: (name: string) => call("GET /hooks/{name}", { params: { name } }),
      add: (body: Input<"POST /hooks">["body"]) => call("POST /hooks", { body }),
      change: (name: string, body: Input<"PATCH /hooks/{name}">["body"]) =>
        call("PATCH /hooks/{name}", { params: { name }, body }),
      remove: (name: string) => call("DELETE /hooks/{name}", { params: { name } }),
    },
    webhooks: {
      /** Reads every page. */
      list: () => readAllPages((query) => call("GET /webhooks", { query })),
      add: (body: Input<"POST /webhooks">["body"]) => call("POST /webhooks", { body }),
      change: (name: string, body: Input<"PATCH /webhooks/{name}">["body"]) =>
        call("PATCH /webhooks/{name}", { params: { name }, body }),
      remove: (name: string) => call("DELETE /webhooks/{name}", { params: { name } }),
      deliveries: (query: Query<"GET /deliveries"> = {}) => call("GET /deliveries", { query }),
      redeliver: (delivery_id: string) => call("POST /deliveries/{delivery_id}/redeliver", { params: { delivery_id } }),
    },
    /** Downloads a consistent copy of the record while the coordinator keeps running. */
    async backup(signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
      return (await transport.bytes("POST /backup", { signal }))?.bytes ?? (async function* () {})();
    },
  };

  /** Streams a file. The stream throws if the response is cut off. */
  async function file(run_id: string, path: string, signal?: AbortSignal) {
    const response = await transport.bytes("GET /runs/{run_id}/files/{path*}", { params: { run_id, path }, signal });
    return {
      size: Number(response?.header("content-length")),
      sha256: (response?.header("etag") ?? "").replaceAll('"', ""),
      stream: response?.bytes ?? (async function* () {})(),
    };
  }
}

async function readAllPages<T>(
  readPage: (query: { cursor?: string }) => Promise<{ items: T[]; next_cursor: string | null }>,
): Promise<{ items: T[]; next_cursor: null }> {
  const items: T[] = [];
  for (let cursor: string | null = null; ;) {
    const page = await readPage(cursor === null ? {} : { cursor });
    items.push(...page.items);
    cursor = page.next_cursor;
    // Coordinators before pagination send no next_cursor.
    if (!cursor) return { items, next_cursor: null };
  }
}
