import { recordDirectory } from "../src/model/state-layout.ts";
import { exportAudit, exportFrom } from "../src/record/audit/export.ts";
import { type VerifyResult, verifyAudit, verifyChain, createVerifyingMac } from "../src/record/audit/verify.ts";
import { openPostgresEngine } from "../src/record/postgres/engine.ts";
import { walkStatements } from "../src/record/postgres/walk-statements.ts";
import type { StoredEvent } from "../src/model/event.ts";
import type { RunRow } from "../src/model/store.ts";
import type { ApiClient } from "../src/wire/client.ts";
import type { FleetAccess } from "./coordinators.ts";
import type { Testbed } from "./testbed.ts";

/** Reads all runs as list rows. */
export async function readAllRuns(client: ApiClient): Promise<RunRow[]> {
  const runs: RunRow[] = [];
  for (let cursor: string | null = null; ;) {
    const page: Awaited<ReturnType<ApiClient["runs"]["list"]>> = await client.runs.list({
      limit: 1000,
      ...(cursor === null ? {} : { cursor }),
    });
    runs.push(...page.items);
    cursor = page.next_cursor;
    if (cursor === null) return runs;
  }
}

/** Reads the logs of all runs from the feed. */
export async function readAllEvents(client: ApiClient): Promise<Map<string, StoredEvent[]>> {
  const logs = new Map<string, StoredEvent[]>();
  for (let after = 0; ;) {
    const { items } = await client.events({ after, limit: 1000 });
    for (const event of items) {
      const log = logs.get(event.run_id);
      if (log === undefined) logs.set(event.run_id, [event]);
      else log.push(event);
      after = event.cursor;
    }
    if (items.length === 0) return logs;
  }
}

/** Lists numbering faults in a log: gaps, duplicates, and events after the result. */
export function findLogFaults(run_id: string, log: readonly StoredEvent[]): string[] {
  const faults: string[] = [];
  const lastN = new Map<number, number>();
  log.forEach(({ seq, attempt, n, event }, index) => {
    if (seq !== index + 1) faults.push(`${run_id}: seq ${seq} where ${index + 1} was due`);
    if (event.type === "result" && index !== log.length - 1) faults.push(`${run_id}: events after the result`);
    if (n === null) return;
    const expectedN = (lastN.get(attempt) ?? 0) + 1;
    if (n !== expectedN) faults.push(`${run_id}: attempt ${attempt} has n ${n} where ${expectedN} was due`);
    lastN.set(attempt, n);
  });
  return faults;
}

/** Returns a run's whole stdout. */
export function getStdout(log: readonly StoredEvent[]): string {
  return log
    .map(({ event }) => (event.type === "output" && event.stream === "stdout" ? (event.text ?? "") : ""))
    .join("");
}

export interface AuditSeen {
  /** Keyed by execution_id. */
  executions: Map<string, { runId: string; state: string; success: boolean }>;
  /** `run_id.attempt` of every refused write. */
  fenced: Set<string>;
  verified: boolean;
  rows: number;
}

export async function readAudit(testbed: Pick<Testbed, "fleet" | "state">): Promise<AuditSeen> {
  const executions: AuditSeen["executions"] = new Map();
  const fenced: AuditSeen["fenced"] = new Set();
  const note = (line: string): void => {
    // Our own export.
    const record = JSON.parse(line) as
      | { eventType: "command_execution"; executionId: string; runId: string; state: string; success: boolean }
      | { eventType: "refused_write"; runId: string; attempt: number }
      | { eventType: "permission_decision" };
    if (record.eventType === "command_execution") executions.set(record.executionId, record);
    if (record.eventType === "refused_write") fenced.add(`${record.runId}.${record.attempt}`);
  };
  const { ok, rows } = await (testbed.fleet
    ? readFleet(testbed.fleet, note)
    : readRecord(recordDirectory(testbed.state), note));
  return { executions, fenced, verified: ok, rows };
}

async function readRecord(directory: string, note: (line: string) => void): Promise<VerifyResult> {
  await exportAudit({ directory }, note);
  return verifyAudit({ directory });
}

async function readFleet({ url, secret }: FleetAccess, note: (line: string) => void): Promise<VerifyResult> {
  const engine = openPostgresEngine(url, 10_000);
  try {
    await exportFrom(engine, {}, note);
    return await verifyChain(engine, walkStatements, createVerifyingMac(secret), []);
  } finally {
    engine.close();
  }
}
