import { infiniteQueryOptions, keepPreviousData, QueryClient, queryOptions } from "@tanstack/react-query";
import { HostError } from "../../src/model/errors.ts";
import type { Input, Output } from "../../src/wire/contracts.ts";
import { api } from "./client.ts";
import { listenLive } from "./live.ts";

export type RunRow = Output<"GET /runs">["items"][number];
export type Run = Output<"GET /runs/{run_id}">;
export type Agent = Output<"GET /agents/{name}">;
export type Runner = Output<"GET /runners">["items"][number];
export type Session = Output<"GET /sessions">["items"][number];
export type SessionWithRuns = Output<"GET /sessions/{session_id}">;
export type Execution = Output<"GET /executions">["items"][number];
export type Question = Output<"GET /questions">["items"][number];
export type Stats = Output<"GET /stats">;
export type Token = Output<"GET /tokens">["items"][number];
export type Schedule = Output<"GET /schedules/{schedule_id}">;
export type Slot = Output<"GET /schedules/{schedule_id}/history">["items"][number];
export type Timing = Pick<Input<"POST /schedules/preview">["body"], "cron" | "every" | "timezone">;
export type Webhook = Output<"GET /webhooks">["items"][number];
export type Hook = Output<"GET /hooks">["items"][number];
export type Delivery = Output<"GET /deliveries">["items"][number];
export type DeliveriesFilter = Omit<NonNullable<Input<"GET /deliveries">["query"]>, "limit" | "cursor">;
export type RunsFilter = Omit<NonNullable<Input<"GET /runs">["query"]>, "limit" | "cursor">;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The event stream invalidates queries when data changes.
      staleTime: 10_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < 5 && error instanceof HostError,
    },
  },
});

const statsIntervalMs = 5000;
/** The interval for polling changes that cause no event, such as skipped slots and delivery attempts. */
const pollIntervalMs = 5000;

export const queries = {
  me: () => queryOptions({ queryKey: ["me"], queryFn: () => api.me(), staleTime: Infinity }),
  agents: () => queryOptions({ queryKey: ["agents"], queryFn: async () => (await api.agents.list()).items }),
  runners: () =>
    queryOptions({
      queryKey: ["runners"],
      queryFn: async () => (await api.runners.list()).items,
      // Poll, because heartbeats cause no events.
      refetchInterval: 5000,
    }),
  runs: (filter: RunsFilter) =>
    infiniteQueryOptions({
      queryKey: ["runs", filter],
      queryFn: ({ pageParam }) =>
        api.runs.list({ ...filter, limit: 100, ...(pageParam === null ? {} : { cursor: pageParam }) }),
      initialPageParam: null as string | null,
      getNextPageParam: (page) => page.next_cursor,
    }),
  recentRuns: (filter: RunsFilter, limit: number) =>
    queryOptions({
      queryKey: ["runs", "recent", filter, limit],
      queryFn: async () => (await api.runs.list({ ...filter, limit })).items,
    }),
  run: (run_id: string) => queryOptions({ queryKey: ["run", run_id], queryFn: () => api.runs.get(run_id) }),
  why: (run_id: string) => queryOptions({ queryKey: ["run", run_id, "why"], queryFn: () => api.runs.why(run_id) }),
  files: (run_id: string) =>
    queryOptions({ queryKey: ["run", run_id, "files"], queryFn: async () => (await api.runs.files(run_id)).items }),
  executions: (run_id: string) =>
    queryOptions({
      queryKey: ["run", run_id, "executions"],
      queryFn: async () => (await api.executions.list({ run_id, limit: 1000 })).items,
    }),
  allExecutions: () =>
    infiniteQueryOptions({
      queryKey: ["runs", "executions"],
      queryFn: ({ pageParam }) =>
        api.executions.list({ limit: 100, ...(pageParam === null ? {} : { cursor: pageParam }) }),
      initialPageParam: null as string | null,
      getNextPageParam: (page) => page.next_cursor,
    }),
  sessions: () =>
    infiniteQueryOptions({
      queryKey: ["sessions"],
      queryFn: ({ pageParam }) =>
        api.sessions.list({ limit: 100, ...(pageParam === null ? {} : { cursor: pageParam }) }),
      initialPageParam: null as string | null,
      getNextPageParam: (page) => page.next_cursor,
    }),
  session: (session_id: string) =>
    queryOptions({ queryKey: ["session", session_id], queryFn: () => api.sessions.get(session_id) }),
  questions: (open: boolean) =>
    queryOptions({ queryKey: ["questions", open], queryFn: () => api.questions.list({ open, limit: 200 }) }),
  runQuestions: (run_id: string) =>
    queryOptions({
      queryKey: ["questions", run_id],
      queryFn: async () => (await api.questions.list({ open: true, run_id })).items,
    }),
  /** Statistics for the last `hours` hours. */
  stats: (hours: number) =>
    queryOptions({
      queryKey: ["stats", hours],
      queryFn: () => api.stats({ since: new Date(Date.now() - hours * 3_600_000).toISOString() }),
      // Stats cover many runs, so do not request them again after each one.
      staleTime: statsIntervalMs,
      refetchInterval: statsIntervalMs,
    }),
  schedules: (agent_name?: string) =>
    infiniteQueryOptions({
      queryKey: ["schedules", "list", agent_name],
      queryFn: ({ pageParam }) =>
        api.schedules.list({
          limit: 200,
          ...(agent_name === undefined ? {} : { agent_name }),
          ...(pageParam === null ? {} : { cursor: pageParam }),
        }),
      initialPageParam: null as string | null,
      getNextPageParam: (page) => page.next_cursor,
      refetchInterval: pollIntervalMs,
    }),
  schedule: (schedule_id: string) =>
    queryOptions({
      queryKey: ["schedules", "one", schedule_id],
      queryFn: () => api.schedules.get(schedule_id),
      refetchInterval: pollIntervalMs,
    }),
  slots: (schedule_id: string) =>
    infiniteQueryOptions({
      queryKey: ["schedules", "slots", schedule_id],
      queryFn: ({ pageParam }) =>
        api.schedules.history(schedule_id, { limit: 50, ...(pageParam === null ? {} : { cursor: pageParam }) }),
      initialPageParam: null as string | null,
      getNextPageParam: (page) => page.next_cursor,
      refetchInterval: pollIntervalMs,
    }),
  /** The next five slots of a timing, saved or not. Disabled if `timing` is null. */
  preview: (timing: Timing | null) =>
    queryOptions({
      queryKey: ["preview", timing],
      enabled: timing !== null,
      queryFn: async () => (timing === null ? [] : (await api.schedules.preview(timing)).next),
      // The first slot may already be in the past.
      staleTime: 0,
    }),
  webhooks: () => queryOptions({ queryKey: ["webhooks"], queryFn: async () => (await api.webhooks.list()).items }),
  hooks: () => queryOptions({ queryKey: ["hooks"], queryFn: async () => (await api.hooks.list()).items }),
  deliveries: (filter: DeliveriesFilter) =>
    infiniteQueryOptions({
      queryKey: ["deliveries", filter],
      queryFn: ({ pageParam }) =>
        api.webhooks.deliveries({ ...filter, limit: 100, ...(pageParam === null ? {} : { cursor: pageParam }) }),
      initialPageParam: null as string | null,
      getNextPageParam: (page) => page.next_cursor,
      // Poll more often while a delivery is being sent.
      refetchInterval: ({ state }) =>
        state.data?.pages.some(({ items }) => items.some(isDue)) ? 1000 : pollIntervalMs,
    }),
  audit: () =>
    queryOptions({ queryKey: ["audit"], queryFn: () => api.audit.state(), refetchInterval: statsIntervalMs }),
  search: (text: string, limit: number) =>
    queryOptions({
      queryKey: ["search", text, limit],
      enabled: text !== "",
      queryFn: async () => (await api.runs.list({ search: text, limit })).items,
      placeholderData: keepPreviousData,
    }),
  tokens: () =>
    queryOptions({ queryKey: ["tokens"], queryFn: async () => (await api.tokens.list({ limit: 200 })).items }),
};

function isDue({ next_attempt_at }: Delivery): boolean {
  return next_attempt_at !== null && Date.parse(next_attempt_at) <= Date.now();
}

/** Batches changes, so that a busy fleet does not cause one request per event. */
const batchIntervalMs = 250;
const changedRuns = new Set<string>();
let batchTimer: ReturnType<typeof setTimeout> | null = null;

listenLive((message) => {
  if (message.kind === "caught_up") void queryClient.invalidateQueries();
  if (message.kind !== "events") return;
  for (const { run_id, event } of message.events)
    if (event.type !== "output" && event.type !== "assistant") changedRuns.add(run_id);
  if (changedRuns.size > 0) batchTimer ??= setTimeout(refresh, batchIntervalMs);
});

function refresh(): void {
  batchTimer = null;
  for (const run_id of changedRuns) void queryClient.invalidateQueries({ queryKey: ["run", run_id] });
  changedRuns.clear();
  for (const key of ["runs", "questions", "sessions", "session", "schedules", "deliveries"])
    void queryClient.invalidateQueries({ queryKey: [key] });
}
