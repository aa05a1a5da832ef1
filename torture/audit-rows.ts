import { recordDirectory } from "../src/model/state-layout.ts";
import { openStore } from "../src/record/open.ts";
import { openPostgresStore } from "../src/record/postgres/open.ts";
import type { RecordStore } from "../src/record/record-store.ts";
import { claimOverHttp } from "../test/fixtures/dispatch/claimed.ts";
import { executionEnded, executionStarted } from "../test/fixtures/record/sample.ts";
import { type Finding, largest, percentile, type Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { readAudit } from "./record.ts";
import { countUpTo } from "./wait.ts";

/** The limit for the p99 of one row on an idle machine. */
const lateMs = 5;

/** R8: measures how long an audit row takes to become durable, since every command waits for its row before it starts. */
export async function auditRows({ rows }: { rows: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, { leaseMs: 3_600_000 }, async (testbed) => {
    const run = await claimOverHttp({ ...testbed, adminToken: testbed.token }, "writes");
    const store = await openRecord(testbed);
    const tookMs: number[] = [];
    try {
      for (const index of countUpTo(rows)) {
        const event = index % 2 === 0 ? executionStarted(getId(index)) : executionEnded(getId(index - 1));
        const events = [{ n: index + 1, at: new Date().toISOString(), event }];
        const startedAt = performance.now();
        const [stored] = await store.apply([{ op: "append_events", run_id: run.run_id, attempt: run.attempt, events }]);
        tookMs.push(performance.now() - startedAt);
        if (!stored.ok) throw new Error(`row ${index} was refused: ${stored.conflict}`);
      }
    } finally {
      await store.close();
      run.port.close();
    }
    const audit = await readAudit(testbed);
    const [p50, p99] = [percentile(tookMs, 0.5), percentile(tookMs, 0.99)];
    return {
      seen: {
        rows,
        "p50 ms": Math.round(p50 * 100) / 100,
        "p99 ms": Math.round(p99 * 100) / 100,
        "longest ms": Math.round(largest(tookMs)),
        "missing on the record": Math.ceil(rows / 2) - audit.executions.size,
      },
      broken: [
        ...(audit.executions.size === Math.ceil(rows / 2) ? [] : [`${audit.executions.size} are on the record`]),
        ...(audit.verified ? [] : ["the audit chain does not verify"]),
      ],
      late: p99 > lateMs ? [`p99 is ${p99.toFixed(1)} ms`] : [],
    };
  });
}

/** Opens the record as a second process would. */
function openRecord({ fleet, state }: Testbed): Promise<RecordStore> {
  return fleet
    ? openPostgresStore(fleet)
    : openStore({ directory: recordDirectory(state), now: () => new Date(), createIfMissing: false });
}

const getId = (index: number): string => `0190aaaa-0000-7000-8000-${String(index).padStart(12, "0")}`;
