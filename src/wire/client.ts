import type { Agent } from "../model/agent.ts";
import type { ListedAgent, RunnerRow, WhyPending } from "../model/dispatch-ops.ts";
import type { StoredEvent } from "../model/event.ts";
import type { Run } from "../model/run.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { StoredFile } from "../model/file.ts";
import type { Session, SessionVersion } from "../model/session.ts";
import type { RunStatus } from "../model/states.ts";
import type { Execution, RunFilter, RunRow } from "../model/store.ts";
import type { Token, TokenRole } from "../model/token.ts";
import { followEvents, type FollowOptions } from "./follow.ts";
import { type Call, type Fetch, send, sendJson, type Target } from "./send.ts";

export interface ClientOptions {
  url: string;
  token: string | null;
  fetch?: Fetch;
}

export interface PageOf<T> {
  items: T[];
  next_cursor: string | null;
}

// a type, not an interface, so that it passes for a record of query values
export type PageQuery = { limit?: number; cursor?: string };

/** What the caller need not say has a default on the server. */
export type Submission = Pick<RunRequest, "agent_name"> &
  Partial<Omit<RunRequest, "agent_name" | "trigger_type" | "retry_of">>;
export type StopFilter = RunFilter & { all?: true };
export type NewToken = { role: TokenRole; subject: string; label?: string; expires_at?: string; enrolment?: boolean };
export type RotatedToken = Token & {
  token: string;
  replaces: { token_id: string; ends_at: string; asked_with: boolean };
};
export interface Download {
  size: number;
  sha256: string;
  stream: AsyncIterable<Uint8Array>;
}
export type FlatAgent = Agent & Omit<ListedAgent, "agent">;

export type Client = ReturnType<typeof createClient>;

/** The HTTP API as functions, for the command line, the runner and the web. Types only: no schema is loaded. */
export function createClient(options: ClientOptions) {
  const target: Target = { url: options.url, token: options.token, fetch: options.fetch ?? globalThis.fetch };
  const get = <T>(path: string, query: Call["query"] = {}) => sendJson<T>(target, { method: "GET", path, query });
  const post = <T>(path: string, body: unknown = {}, headers = {}) =>
    sendJson<T>(target, { method: "POST", path, body, headers });
  return {
    url: options.url,
    health: () => get<{ status: "ok"; version: string; protocol: number }>("/health"),
    submit({ idempotency_key, ...request }: Submission) {
      return post<Run>("/runs", request, idempotency_key === undefined ? {} : { "idempotency-key": idempotency_key });
    },
    runs: {
      list: ({ status, ...filter }: RunFilter & PageQuery = {}) => get<PageOf<RunRow>>("/runs", { ...filter, status }),
      get: (run_id: string) => get<Run>(`/runs/${part(run_id)}`),
      stop: (run_id: string) => post<Run>(`/runs/${part(run_id)}/stop`),
      stopMany: (filter: StopFilter) =>
        post<{ cancelled: string[]; stopping: string[]; untouched: string[] }>("/runs/stop", filter),
      retry: (run_id: string) => post<Run>(`/runs/${part(run_id)}/retry`),
      why: (run_id: string) => get<{ status: RunStatus; why: WhyPending[] }>(`/runs/${part(run_id)}/why`),
      events: (run_id: string, query: { after?: number; limit?: number } = {}) =>
        get<PageOf<StoredEvent>>(`/runs/${part(run_id)}/events`, query),
      files: (run_id: string) => get<PageOf<StoredFile>>(`/runs/${part(run_id)}/files`),
      file: (run_id: string, path: string, signal?: AbortSignal) =>
        download(`/runs/${part(run_id)}/files/${path.split("/").map(part).join("/")}`, signal),
      follow: (run_id: string, follow: FollowOptions = {}) =>
        followEvents(target, `/runs/${part(run_id)}/events`, "seq", follow),
    },
    events: (query: { after?: number; limit?: number } = {}) => get<PageOf<StoredEvent>>("/events", query),
    follow: (follow: FollowOptions = {}) => followEvents(target, "/events", "cursor", follow),
    agents: {
      list: () => get<PageOf<FlatAgent>>("/agents"),
      get: (name: string) => get<FlatAgent>(`/agents/${part(name)}`),
      put: (name: string, agent: Omit<Partial<Agent>, "name">) =>
        sendJson<FlatAgent>(target, { method: "PUT", path: `/agents/${part(name)}`, body: agent }),
      remove: (name: string) => discard({ method: "DELETE", path: `/agents/${part(name)}` }),
    },
    runners: {
      list: () => get<PageOf<RunnerRow>>("/runners"),
      drain: (runner_id: string, draining = true) =>
        discard({ method: "POST", path: `/runners/${part(runner_id)}/drain`, body: { draining } }),
      /** Exchanges an enrolment token, which must be this client's, for the runner's own. */
      enroll: () => post<{ token: string; token_id: string; subject: string }>("/runner/enroll"),
    },
    sessions: {
      list: (query: { agent_name?: string } & PageQuery = {}) => get<PageOf<Session>>("/sessions", query),
      get: (session_id: string) => get<Session & { versions: SessionVersion[] }>(`/sessions/${part(session_id)}`),
      remove: (session_id: string) => discard({ method: "DELETE", path: `/sessions/${part(session_id)}` }),
      bind: (session_id: string, executor_session_id: string) =>
        post<Session>(`/sessions/${part(session_id)}/bind`, { executor_session_id }),
    },
    executions: {
      list: (query: { run_id?: string; open?: boolean } & PageQuery = {}) =>
        get<PageOf<Execution>>("/executions", query),
      get: (execution_id: string) => get<Execution>(`/executions/${part(execution_id)}`),
    },
    tokens: {
      list: (query: PageQuery = {}) => get<PageOf<Token>>("/tokens", query),
      create: (token: NewToken) => post<Token & { token: string }>("/tokens", token),
      revoke: (token_id: string) => discard({ method: "DELETE", path: `/tokens/${part(token_id)}` }),
      revokeOf: (subject: string) => post<{ revoked: string[] }>("/tokens/revoke", { subject }),
      /** `self` is the token that this is asked with. */
      rotate: (token_id: string, overlap: { overlap_seconds?: number } = {}) =>
        post<RotatedToken>(`/tokens/${part(token_id)}/rotate`, overlap),
    },
    /** The bytes of a consistent copy of the database, while the coordinator goes on. */
    async backup(signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
      const response = await send(target, {
        method: "POST",
        path: "/backup",
        body: {},
        timeoutMs: null,
        ...(signal ? { signal } : {}),
      });
      return response.body ?? (async function* () {})();
    },
  };

  /** The bytes as they come; shorter than `size` where the answer was cut off, which is thrown. */
  async function download(path: string, signal?: AbortSignal): Promise<Download> {
    const call = {
      method: "GET",
      path,
      timeoutMs: null,
      headers: { accept: "*/*" },
      ...(signal ? { signal } : {}),
    } as const;
    const { headers, body } = await send(target, call);
    const sha256 = (headers.get("etag") ?? "").replaceAll('"', "");
    const size = Number(headers.get("content-length"));
    return { size, sha256, stream: body ?? (async function* () {})() };
  }

  async function discard(call: Call): Promise<void> {
    await (await send(target, call)).arrayBuffer();
  }
}

function part(text: string): string {
  return encodeURIComponent(text);
}
