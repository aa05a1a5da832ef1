import { HostError } from "../../model/errors.ts";
import type { Op, ResultOf, Store, StoreResult } from "../../model/store.ts";
import type { Registry } from "./registry.ts";
import type { RunMetrics } from "./runs.ts";

const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Wraps a store to count and time its writes, without adding latency. */
export function watchStore<S extends Store>(
  store: S,
  registry: Registry,
  runs: RunMetrics,
  onError: (error: unknown) => void,
): S {
  const duration = registry.addHistogram(
    "drover_store_apply_seconds",
    "Time from handing operations to the store until they are durable.",
    bounds,
  );
  const commits = registry.addCounter("drover_store_commits_total", "Transactions that wrote operations.");
  const operations = registry.addCounter("drover_store_operations_total", "Operations written, by kind.", ["op"]);
  const foreignChanges = registry.addCounter(
    "drover_store_foreign_changes_total",
    "Number of times that another process had written, so that its changes had to be looked up.",
  );
  const faults = registry.addCounter(
    "drover_store_faults_total",
    "Writes that the database could not accept, by code.",
    ["code"],
  );
  const outage = watchOutage(registry);
  // All callers that share a transaction get their results right after its change was announced. The first of them counts
  // the transaction.
  let announcedChanges = 0;
  let countedChanges = 0;

  store.changes((change) => {
    announcedChanges += 1;
    if (change.fromOtherProcess) foreignChanges.add(1);
    runs.recordChange(change);
  });
  return { ...store, apply };

  function apply<const T extends readonly Op[]>(ops: T): Promise<{ [K in keyof T]: ResultOf<T[K]> }> {
    const startedAt = performance.now();
    const results = store.apply(ops);
    results
      .then(
        // There is one result per operation, in order.
        (settled) => recordSuccess(ops, settled as readonly StoreResult[], startedAt),
        (error: unknown) => recordFailure(error, startedAt),
      )
      .catch(onError);
    return results;
  }

  function recordSuccess(ops: readonly Op[], results: readonly StoreResult[], startedAt: number): void {
    duration.observe((performance.now() - startedAt) / 1000);
    outage.end();
    if (countedChanges !== announcedChanges) commits.add(1);
    countedChanges = announcedChanges;
    ops.forEach((op, index) => {
      operations.add(1, op.op);
      runs.recordResult(op, results[index]!);
    });
  }

  /** Only a HostError means that the database failed. The caller of `apply` gets every error. */
  function recordFailure(error: unknown, startedAt: number): void {
    if (!(error instanceof HostError)) return;
    faults.add(1, error.code);
    outage.start(startedAt);
  }
}

/** The coordinator writes at least once a second, so an outage and its end are noticed quickly. */
function watchOutage(registry: Registry): { start(startedAt: number): void; end(): void } {
  let startedAt: number | null = null;
  let totalSeconds = 0;
  const currentSeconds = (): number => (startedAt === null ? 0 : (performance.now() - startedAt) / 1000);
  registry.collect(
    {
      drover_store_up: { type: "gauge", help: "1 if the database accepted the last write, else 0." },
      drover_store_down_seconds_total: {
        type: "counter",
        help: "Total time during which the database accepted no writes.",
      },
    },
    () => ({
      drover_store_up: startedAt === null ? 1 : 0,
      drover_store_down_seconds_total: totalSeconds + currentSeconds(),
    }),
  );
  return {
    start(failedAt) {
      startedAt ??= failedAt;
    },
    end() {
      totalSeconds += currentSeconds();
      startedAt = null;
    },
  };
}
