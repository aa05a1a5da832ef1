import { statfs } from "node:fs/promises";
import type { RunnerRow } from "../model/dispatch-ops.ts";
import { readRecordTotals } from "../record/reads/record-totals.ts";
import type { RecordStore } from "../record/record-store.ts";
import { watchProcess } from "../show/metrics/process.ts";
import { createRegistry, type Registry, type Sample } from "../show/metrics/registry.ts";
import { type ObserveRequest, watchRequests } from "../show/metrics/requests.ts";
import { parseSubmitTime, watchRuns } from "../show/metrics/runs.ts";
import { watchStore } from "../show/metrics/store.ts";

export interface CoordinatorMetrics {
  /** Use this store instead of the one passed in: this one counts writes. */
  store: RecordStore;
  observeRequest: ObserveRequest;
  /** Adds metrics of event streams and held polls. */
  watchConnections(count: () => { followers: number; polls: number }): void;
  render(): Promise<string>;
  stop(): void;
}

interface Options {
  version: string;
  /** The directory of the record, or null if it is not on this machine's disk. */
  directory: string | null;
  onError(error: unknown): void;
}

/** Collects all metrics that docs/monitoring.md lists. */
export function openMetrics(opened: RecordStore, { version, directory, onError }: Options): CoordinatorMetrics {
  const registry = createRegistry(onError);
  const info = { version, engine: opened.engine.kind, node: process.versions.node };
  const stop = watchProcess(registry, info);
  const store = watchStore(opened, registry, watchRuns(registry, Date.now), onError);
  collectRecordMetrics(registry, opened);
  if (directory !== null) collectDiskMetrics(registry, directory);
  return {
    store,
    observeRequest: watchRequests(registry),
    watchConnections(count) {
      registry.collect(
        {
          drover_event_streams: { type: "gauge", help: "Readers that follow events now." },
          drover_held_polls: { type: "gauge", help: "Polls of runners that are held open now." },
        },
        () => {
          const { followers, polls } = count();
          return { drover_event_streams: followers, drover_held_polls: polls };
        },
      );
    },
    render: registry.render,
    stop,
  };
}

const runnerStatuses: readonly RunnerRow["status"][] = ["online", "draining", "lost"];

/** These metrics describe the whole record, so all its coordinators report the same values. */
function collectRecordMetrics(registry: Registry, { engine }: RecordStore): void {
  registry.collect(
    {
      drover_runs: { type: "gauge", help: "Runs that have not ended, by state." },
      drover_oldest_pending_seconds: {
        type: "gauge",
        help: "How long the oldest pending run has waited; 0 if none is pending.",
      },
      drover_runners: { type: "gauge", help: "Runners, by state." },
      drover_runner_slots: { type: "gauge", help: "Runs that the runners of a state can carry out at once." },
      drover_audit_rows_total: { type: "counter", help: "Rows ever appended to the audit chain." },
    },
    async () => {
      const { runs, oldest_pending, runners, audit_rows } = await readRecordTotals(engine);
      const perState = (count: (row: (typeof runners)[number]) => number): Sample[] =>
        runnerStatuses.map((status) => {
          const row = runners.find((counted) => counted.status === status);
          return { labels: { status }, value: row === undefined ? 0 : count(row) };
        });
      return {
        drover_runs: runs.map(({ status, runs: value }) => ({ labels: { status }, value })),
        drover_oldest_pending_seconds:
          oldest_pending === null ? 0 : Math.max(0, Date.now() - parseSubmitTime(oldest_pending)) / 1000,
        drover_runners: perState((row) => row.runners),
        drover_runner_slots: perState((row) => row.slots),
        drover_audit_rows_total: audit_rows,
      };
    },
  );
}

function collectDiskMetrics(registry: Registry, directory: string): void {
  registry.collect(
    { drover_disk_free_bytes: { type: "gauge", help: "Free bytes on the filesystem that holds the state directory." } },
    async () => {
      const { bavail, bsize } = await statfs(directory);
      return { drover_disk_free_bytes: bavail * bsize };
    },
  );
}
