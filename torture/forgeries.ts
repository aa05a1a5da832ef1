import { recordDirectory } from "../src/model/state-layout.ts";
import { randomUUID } from "node:crypto";
import type { RunEvent } from "../src/model/event.ts";
import { exportAudit, exportFrom } from "../src/record/audit/export.ts";
import { openPostgresEngine } from "../src/record/postgres/engine.ts";
import { type ClaimedRun, claimOverHttp } from "../test/fixtures/dispatch/claimed.ts";
import { executionEnded, executionStarted } from "../test/fixtures/record/sample.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { readAllEvents, readAudit } from "./record.ts";
import { countUpTo } from "./wait.ts";

interface Victims {
  ended: string;
  open: string;
}

type Forge = (victims: Victims, own: { run_id: string; id: string }) => { events: RunEvent[]; refused: number };

const invalidTimes = ["0001-01-01T00:00:00.000Z", "2001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"];
const forgedEnd = (id: string): RunEvent => executionEnded(id, { exit_code: 66 });

const forgeries: Record<string, Forge> = {
  "end of a finished run's execution": ({ ended }) => ({ events: [forgedEnd(ended)], refused: 1 }),
  "end of a running execution": ({ open }) => ({ events: [forgedEnd(open)], refused: 1 }),
  "start with another's id": ({ open }) => ({ events: [executionStarted(open)], refused: 1 }),
  "start with an ended id": ({ ended }) => ({ events: [executionStarted(ended), forgedEnd(ended)], refused: 2 }),
  "end without a start": (_, { id }) => ({ events: [forgedEnd(id)], refused: 1 }),
  "end before the start": (_, { id }) => ({ events: [forgedEnd(id), executionStarted(id)], refused: 1 }),
  "two starts": (_, { id }) => ({ events: [executionStarted(id), executionStarted(id)], refused: 1 }),
  "two ends": (_, { id }) => ({ events: [executionStarted(id), executionEnded(id), forgedEnd(id)], refused: 1 }),
  "id of its own run": (_, { run_id }) => ({
    events: [{ ...executionStarted(randomUUID()), execution: findStart(run_id) } as RunEvent],
    refused: 1,
  }),
  "a person's decision": (_, { id }) => ({
    events: [{ type: "permission_decision", request_id: id, decision: "allow", by: "admin" }],
    refused: 1,
  }),
  "wild times": (_, { id }) => ({
    events: [
      executionStarted(id, { started_at: invalidTimes[0]! }),
      executionEnded(id, { ended_at: invalidTimes[2]!, duration_ms: 1 }),
    ],
    refused: 0,
  }),
};

/**
 * H1: a runner reports forged execution starts and ends, for its own run and for others', with forged times. Nobody
 * else's record changes, each attempt is on record, and the rest of the runner's log is stored.
 */
export async function testForgeries({ tries }: { tries: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, { leaseMs: 3_600_000 }, async (testbed) => {
    const at = { ...testbed, adminToken: testbed.token };
    const startedAt = new Date(Date.now() - 1000).toISOString();
    const victims = { ended: randomUUID(), open: randomUUID() };
    const finished = await claimOverHttp(at, "finished");
    await finished.append(executionStarted(victims.ended), executionEnded(victims.ended));
    await finished.finish();
    const running = await claimOverHttp(at, "running");
    await running.append(executionStarted(victims.open));
    const before = await listExecutions(testbed, victims);
    const eve = await claimOverHttp(at, "eve");

    const seen = { tries: 0, refused: 0, fenced: 0, "wild times": 0 };
    const broken: string[] = [];
    const wild: string[] = [];
    const kinds = Object.entries(forgeries);
    for (const turn of countUpTo(tries)) {
      const [name, forge] = kinds[turn % kinds.length]!;
      const id = randomUUID();
      const { events, refused } = forge(victims, { run_id: eve.run_id, id });
      await eve.append(marker(turn), ...events, marker(turn));
      seen.tries += 1;
      seen.refused += refused;
      if (name === "wild times") wild.push(id);
      for (const run of [finished, running]) seen.fenced += await reportFor(run, eve, events, broken);
    }
    seen["wild times"] = wild.length;
    await eve.finish();

    if (JSON.stringify(await listExecutions(testbed, victims)) !== JSON.stringify(before))
      broken.push("an execution of somebody else was changed");
    const log = (await readAllEvents(testbed.client)).get(eve.run_id) ?? [];
    const markers = log.filter(({ event }) => event.type === "output").length;
    if (markers !== 2 * tries) broken.push(`${markers} of ${2 * tries} lines of the forger's own log are there`);
    const errors = log.filter(({ event }) => event.type === "error" && event.code?.startsWith("refused_")).length;
    if (errors !== seen.refused) broken.push(`${errors} of ${seen.refused} refusals are in the log`);
    const exported = await exportedSince(testbed, startedAt);
    for (const id of wild) if (!exported.has(id)) broken.push(`${id} is missing from the export since ${startedAt}`);
    if (!(await readAudit(testbed)).verified) broken.push("the audit chain does not verify");
    for (const run of [finished, running, eve]) run.port.close();
    return { seen, broken, late: [] };
  });
}

/**
 * Reports events of another owner's run through the forger's own runner. The request is answered, but nothing is
 * stored.
 */
async function reportFor(victim: ClaimedRun, eve: ClaimedRun, events: RunEvent[], broken: string[]): Promise<number> {
  const { run_id, attempt } = victim;
  const numbered = events.map((event, index) => ({ n: 100 + index, at: new Date().toISOString(), event }));
  const { fenced } = await eve.report({ events: [{ run_id, attempt, events: numbered }] });
  if (fenced.some((item) => item.run_id === run_id)) return 1;
  broken.push(`not fenced from ${run_id}`);
  return 0;
}

async function listExecutions({ client }: Testbed, { ended, open }: Victims): Promise<unknown> {
  return [await client.executions.get(ended), await client.executions.get(open)];
}

async function exportedSince({ fleet, state }: Testbed, startedAt: string): Promise<Set<string>> {
  const ids = new Set<string>();
  // Written by exportFrom.
  const keep = (line: string): void => void ids.add((JSON.parse(line) as { executionId?: string }).executionId ?? "");
  if (fleet === null) {
    await exportAudit({ directory: recordDirectory(state), since: startedAt }, keep);
    return ids;
  }
  const engine = openPostgresEngine(fleet.url, 10_000);
  try {
    await exportFrom(engine, { since: startedAt }, keep);
    return ids;
  } finally {
    engine.close();
  }
}

function findStart(execution_id: string) {
  const event = executionStarted(randomUUID());
  if (event.type !== "execution_started") throw new Error("not a start");
  return { ...event.execution, execution_id };
}

const marker = (turn: number): RunEvent => ({ type: "output", stream: "stdout", text: `line ${turn}\n` });
