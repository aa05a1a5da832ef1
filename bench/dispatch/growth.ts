import { join } from "node:path";
import { createLocalIds } from "../../src/local.ts";
import type { NewId } from "../../src/model/ids.ts";
import { openStore, type SqliteStore } from "../../src/record/open.ts";
import { median, formatMs, printTable, computeRatio, formatTimes } from "../rounds.ts";
import { addSample, percentile, type Rounds } from "./figures.ts";
import { createNoopRun } from "./noop-run.ts";

const maxFillMs = 150_000;

/** Compares the same operations on a store with few pending runs and on one with very many. */
export async function measureGrowth(directory: string, rounds: number, samples: number): Promise<void> {
  const newId = createLocalIds();
  const small = await openFilledStore(join(directory, "small"), 1000, newId);
  const large = await openFilledStore(join(directory, "large"), 1_000_000, newId);
  const stores = [
    { name: "small", ...small },
    { name: "large", ...large },
  ];
  const tails = { claim: new Map() as Rounds, create: new Map() as Rounds };
  const middles = { claim: new Map() as Rounds, create: new Map() as Rounds };
  for (const { once } of stores) for (let warm = 0; warm < 200; warm++) await once();
  for (let round = 0; round < rounds; round++) {
    const durations = new Map(stores.map(({ name }) => [name, { claim: [] as number[], create: [] as number[] }]));
    // Alternate, so that disk noise hits both.
    for (let count = 0; count < samples; count++) {
      for (const { name, once } of count % 2 === 0 ? stores : stores.toReversed()) {
        const sample = await once();
        durations.get(name)!.claim.push(sample.claim);
        durations.get(name)!.create.push(sample.create);
      }
    }
    for (const [name, { claim, create }] of durations) {
      addSample(tails.claim, name, percentile(claim, 0.99));
      addSample(tails.create, name, percentile(create, 0.99));
      addSample(middles.claim, name, median(claim));
      addSample(middles.create, name, median(create));
    }
  }
  for (const { store } of stores) await store.close();
  const row = (label: string, what: "claim" | "create"): string[] => [
    label,
    ...["small", "large"].map(
      (name) => `${formatMs(median(middles[what].get(name)!))} / ${formatMs(median(tails[what].get(name)!))}`,
    ),
    formatTimes(computeRatio(middles[what], "large", "small")),
    formatTimes(computeRatio(tails[what], "large", "small")),
    "p99 <= 1.2x",
  ];
  printTable(
    `Growth: the same with ${large.count.toLocaleString("en")} pending runs (filled in ${Math.round(large.seconds)} s)`,
    [
      "what, durable",
      "1,000: p50 / p99",
      `${large.count.toLocaleString("en")}: p50 / p99`,
      "p50 ratio",
      "p99 ratio",
      "goal",
    ],
    [row("claim of one run", "claim"), row("one more run", "create")],
  );
}

async function openFilledStore(directory: string, count: number, newId: NewId) {
  const store = await openStore({ directory, now: () => new Date(), createIfMissing: true });
  const epoch = await register(store);
  const startedAt = performance.now();
  let stored = 0;
  while (stored < count && performance.now() - startedAt < maxFillMs) {
    await store.apply(Array.from({ length: Math.min(1000, count - stored) }, () => createNoopRun(newId, "some")));
    stored = Math.min(count, stored + 1000);
  }
  return {
    store,
    count: stored,
    seconds: (performance.now() - startedAt) / 1000,
    once: claimAndCreate(store, epoch, newId),
  };
}

async function register(store: SqliteStore): Promise<number> {
  const [registered] = await store.apply([
    {
      op: "register_runner",
      runner_id: "bench",
      key_hash: "k",
      owner: "bench",
      lease_ms: 3_600_000,
      registration: {
        hostname: "box",
        project_dir: "/",
        executor_profile: "noop",
        executor: { type: "noop", config: {} },
        tags: [],
        require_matching_tags: false,
        agents: [],
        slots: 10,
      },
    },
  ]);
  if (!registered.ok) throw new Error(registered.conflict);
  return registered.epoch;
}

/** Claims and (untimed) ends one run and creates another, so that the number of pending runs stays constant. */
function claimAndCreate(
  store: SqliteStore,
  epoch: number,
  newId: NewId,
): () => Promise<{ claim: number; create: number }> {
  return async () => {
    const startedAt = performance.now();
    const [claimed] = await store.apply([
      { op: "claim_runs", runner_id: "bench", epoch, claim_id: newId(), want: 1, ack_order: 0, lease_ms: 3_600_000 },
    ]);
    const claim = performance.now() - startedAt;
    const [run] = claimed.ok ? claimed.claims : [];
    if (run === undefined) throw new Error("nothing was claimed");
    await store.apply([
      {
        op: "finish_run",
        run_id: run.run_id,
        attempt: run.attempt,
        at: new Date().toISOString(),
        events: [],
        isolation: null,
        result: {
          type: "result",
          status: "completed",
          reason: null,
          error: null,
          exit_code: null,
          result_text: null,
          result_data: null,
        },
      },
    ]);
    const secondStart = performance.now();
    await store.apply([createNoopRun(newId, "some")]);
    return { claim, create: performance.now() - secondStart };
  };
}
