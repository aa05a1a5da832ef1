import { hasEnded } from "../src/model/states.ts";
import type { StoredEvent } from "../src/model/event.ts";
import type { ReportRequest } from "../src/model/runner-port.ts";
import { type Finding, largest, type Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import type { Child } from "./processes.ts";
import { readAllEvents, findLogFaults, readAudit } from "./record.ts";
import { startReplayingProxy } from "./replaying-proxy.ts";
import { forEachConcurrently, countUpTo, waitFor } from "./wait.ts";

/**
 * R3: freezes a runner in the middle of a run until its lease has expired, then continues it. It reports what its command
 * did meanwhile: none of that may be stored, and each attempt to write must be on record.
 */
export async function staleWriter(
  { stops, lanes, leaseMs = 1000 }: { stops: number; lanes: number; leaseMs?: number },
  tools: Tools,
): Promise<Finding> {
  return withTestbed(tools, { leaseMs, pollHoldMs: 2000, rescueEveryMs: 100 }, async (testbed) => {
    await testbed.putAgent("once");
    await testbed.putAgent("twice", { max_attempts: 2 });
    const lastSent = new Map<string, number>();
    const proxy = await startReplayingProxy(testbed.url, {
      port: testbed.proxyPort,
      copies: 1,
      delayMs: 0,
      onRequest: (path, body) => noteWrites(lastSent, path, body),
    });
    const stale: Stale[] = [];
    const unsettled: string[] = [];
    const missed: number[] = [];
    await forEachConcurrently(countUpTo(lanes), lanes, async (lane) => {
      const runners = await openLane(testbed, lane, proxy.url);
      for (let round = lane; round < stops;) {
        const outcome = await freezeOnce(testbed, runners, `lane ${lane}`, round % 2 === 0 ? "once" : "twice");
        if (outcome === "missed" && missed.push(lane) <= stops) continue;
        round += lanes;
        if (outcome === "missed") unsettled.push(`lane ${lane} missed too often`);
        else if ("fault" in outcome) unsettled.push(outcome.fault);
        else stale.push(outcome);
        if (stale.length % 50 === 0) tools.progress(`${stale.length} of ${stops} stops`);
      }
    });
    const finding = await judge(testbed, stale, unsettled, lastSent);
    await testbed.processes.endAll();
    await proxy.close();
    return finding;
  });
}

/** Records when the runner last sent events or a finish for each attempt. */
function noteWrites(lastSent: Map<string, number>, path: string, body: Buffer): void {
  if (path !== "/runner/report") return;
  // Sent by our own runner.
  const { events, finishes } = JSON.parse(body.toString("utf8")) as Pick<ReportRequest, "events" | "finishes">;
  for (const { run_id, attempt } of [...events, ...finishes]) lastSent.set(`${run_id}.${attempt}`, performance.now());
}

interface Stale {
  run_id: string;
  attempt: number;
  lostMs: number;
  /** Everything the runner sends after this time is stale. */
  continuedAt: number;
}

async function openLane(testbed: Testbed, lane: number, url: string): Promise<Map<string, Child>> {
  const runners = new Map<string, Child>();
  for (const side of ["a", "b"]) {
    const { child, runner_id } = await testbed.startRunner({
      name: `lane-${lane}-${side}`,
      slots: 1,
      tags: [`lane ${lane}`],
      url,
      times: { heartbeatMs: 150, pollPauseMs: 30 },
    });
    runners.set(runner_id, child);
  }
  return runners;
}

/**
 * Returns the superseded attempt, or a description of what did not happen in time. `missed` means that, before the
 * freeze, the run had ended or its runner had given it up because a report took longer than the lease.
 */
async function freezeOnce(
  { client }: Testbed,
  runners: Map<string, Child>,
  tag: string,
  agent_name: string,
): Promise<Stale | "missed" | { fault: string }> {
  // The command prints while its runner is frozen and ends before the runner continues.
  const { run_id } = await client.submit({
    agent_name,
    parameters: { lines: 8, pause: "0.08" },
    demands: { tags: [tag] },
  });
  const started = await waitFor(
    async () => {
      const run = await client.runs.get(run_id);
      return run.status === "running" || hasEnded(run.status) ? run : null;
    },
    120_000,
    10,
  );
  if (started !== null && hasEnded(started.status)) return "missed";
  const victim = runners.get(started?.runner_id ?? "");
  if (started === null || victim === undefined)
    return { fault: `${run_id} did not begin: ${JSON.stringify(await client.runs.get(run_id))}` };
  victim.signal("SIGSTOP");
  const stoppedAt = performance.now();
  const overtaken = await waitFor(
    async () => {
      const run = await client.runs.get(run_id);
      return run.attempt > started.attempt || run.status === "pending" || hasEnded(run.status) ? run : null;
    },
    120_000,
    25,
  );
  const continuedAt = performance.now();
  const lostMs = continuedAt - stoppedAt;
  victim.signal("SIGCONT");
  if (overtaken === null) return { fault: `${run_id} was not taken from the runner that stood still` };
  const settled = await waitFor(
    async () => {
      const run = await client.runs.get(run_id);
      const { items } = await client.runners.list();
      const back = [...runners.keys()].every((id) =>
        items.some((row) => row.runner_id === id && row.status === "online" && row.running === 0),
      );
      return hasEnded(run.status) && back ? run : null;
    },
    120_000,
    25,
  );
  if (settled === null)
    return {
      fault: `${run_id} or its runner did not come to an end: ${JSON.stringify(await client.runs.get(run_id))} ${victim.output}`,
    };
  const { items } = await client.runs.events(run_id, { limit: 1000 });
  if (!wasLost(items, started.attempt)) return "missed";
  return { run_id, attempt: started.attempt, lostMs, continuedAt };
}

async function judge(
  testbed: Testbed,
  stale: readonly Stale[],
  unsettled: readonly string[],
  lastSent: ReadonlyMap<string, number>,
): Promise<Finding> {
  // A runner that had sent everything before the freeze learns of the loss from its heartbeat and sends nothing.
  const wrote = stale.filter(
    ({ run_id, attempt, continuedAt }) => (lastSent.get(`${run_id}.${attempt}`) ?? 0) > continuedAt,
  );
  // The last write may still be in flight.
  const unaudited = await waitFor(
    async () => {
      const { fenced } = await readAudit(testbed);
      return wrote.every(({ run_id, attempt }) => fenced.has(`${run_id}.${attempt}`)) ? [] : null;
    },
    60_000,
    500,
  );
  const { fenced, verified } = await readAudit(testbed);
  const silent = unaudited ?? wrote.filter(({ run_id, attempt }) => !fenced.has(`${run_id}.${attempt}`));
  const logs = await readAllEvents(testbed.client);
  const accepted = stale.filter(({ run_id, attempt }) => wroteAfterLoss(logs.get(run_id) ?? [], attempt));
  return {
    seen: {
      stops: stale.length,
      "stale writes tried": wrote.length,
      "stale writes accepted": accepted.length,
      "refused and on the record": wrote.length - silent.length,
      "lost within ms": Math.round(largest(stale.map(({ lostMs }) => lostMs))),
    },
    broken: [
      ...unsettled,
      ...accepted.map(
        ({ run_id, attempt }) =>
          `${run_id}: attempt ${attempt} wrote after it was lost: ${JSON.stringify(logs.get(run_id))}`,
      ),
      ...silent.map(
        ({ run_id, attempt }) =>
          `${run_id}: attempt ${attempt} was not refused on the record: ${JSON.stringify(logs.get(run_id))}`,
      ),
      ...[...logs].flatMap(([run_id, log]) => findLogFaults(run_id, log)),
      ...(verified ? [] : ["the audit chain does not verify"]),
    ],
    late: [],
  };
}

/** The position of the coordinator's own event (requeued or result) after which the attempt may not write. */
function findLoss(log: readonly StoredEvent[], attempt: number): number {
  return log.findIndex(
    ({ n, event, ...of }) =>
      n === null &&
      of.attempt === attempt &&
      (event.type === "result" || (event.type === "status" && event.status === "pending")),
  );
}

function wasLost(log: readonly StoredEvent[], attempt: number): boolean {
  const event = log[findLoss(log, attempt)]?.event;
  const why = event?.type === "result" ? event.error : event?.type === "status" ? event.reason : null;
  return /^Its runner .* was lost\.$/.test(why ?? "");
}

function wroteAfterLoss(log: readonly StoredEvent[], attempt: number): boolean {
  const last = log.at(-1);
  const itsOwn = last?.event.type === "result" && last.event.status === "completed" && last.attempt === attempt;
  return itsOwn || log.slice(findLoss(log, attempt) + 1).some((event) => event.attempt === attempt && event.n !== null);
}
