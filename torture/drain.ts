import { createMark, findSurvivors } from "../test/fixtures/process/survivors.ts";
import { type Finding, largest, type Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { forEachConcurrently, countUpTo, waitFor } from "./wait.ts";

/** How long runs may continue after a SIGTERM. */
const graceMs = 4000;

/**
 * R6: a runner with short and long commands gets a SIGTERM. Short ones finish, long ones are stopped after the grace
 * period and requeued without counting a failure, nothing new is claimed, and the runner exits in time.
 */
export async function drain({ terms, atOnce }: { terms: number; atOnce: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, { leaseMs: 10_000, pollHoldMs: 5000 }, async (testbed) => {
    await testbed.putAgent("work");
    const found: Drained[] = [];
    await forEachConcurrently(countUpTo(terms), atOnce, async (index) => {
      found.push(await drainOne(testbed, index));
      if (found.length % 10 === 0) tools.progress(`${found.length} of ${terms} drains`);
    });
    return {
      seen: {
        drains: found.length,
        "killed before grace": found.reduce((sum, { early }) => sum + early, 0),
        "new claims": found.reduce((sum, { begunLate }) => sum + begunLate, 0),
        "ended after ms, at most": Math.round(largest(found.map(({ endedMs }) => endedMs))),
        "grace ms": graceMs,
      },
      broken: found.flatMap(({ faults }) => faults),
      late: found.flatMap(({ endedMs }) =>
        endedMs > graceMs + 2000 ? [`one exited ${endedMs} ms after SIGTERM`] : [],
      ),
    };
  });
}

interface Drained {
  early: number;
  begunLate: number;
  endedMs: number;
  faults: string[];
}

async function drainOne(testbed: Testbed, index: number): Promise<Drained> {
  const { client } = testbed;
  const name = `drained-${index}`;
  const { child, runner_id } = await testbed.startRunner({
    name,
    slots: 4,
    tags: [name],
    times: { drainMs: graceMs, heartbeatMs: 500 },
  });
  const demands = { tags: [name] };
  const longMark = createMark();
  const submit = async (parameters: Record<string, unknown>) =>
    (await client.submit({ agent_name: "work", parameters, demands })).run_id;
  const longRuns = [await submit({ stay: longMark }), await submit({ stay: longMark })];
  await waitFor(
    async () => (longRuns.every((run_id) => testbed.marks().some((mark) => mark.startsWith(run_id))) ? true : null),
    120_000,
  );
  // Leave one slot free: a runner that kept claiming would fill it.
  const shortRun = await submit({ lines: 4, pause: "0.1" });
  await waitFor(async () => ((await client.runs.get(shortRun)).status === "running" ? true : null), 120_000, 10);
  child.signal("SIGTERM");
  const termAt = Date.now();
  await child.waitForOutput(/^draining$/m);
  const lateRuns = [await submit({}), await submit({})];
  const { code } = await child.closed;
  const endedMs = Date.now() - termAt;

  const faults: string[] = [];
  if (code !== 0) faults.push(`${name} ended with ${code}: ${child.output}`);
  const checkShortRun = await client.runs.get(shortRun);
  if (checkShortRun.status !== "completed" || checkShortRun.attempt !== 1)
    faults.push(`the short ${shortRun} is ${checkShortRun.status}: ${checkShortRun.error}`);
  let early = 0;
  for (const run_id of longRuns) {
    const run = await client.runs.get(run_id);
    if (run.status !== "pending" || run.failures !== 0)
      faults.push(`the long ${run_id} is ${run.status} with ${run.failures} failures: ${run.error}`);
    const { items } = await client.executions.list({ run_id });
    const ended = items[0]?.end?.ended_at;
    if (ended === undefined) faults.push(`the long ${run_id} has no end on the record`);
    else if (Date.parse(ended) - termAt < graceMs - 50) early += 1;
  }
  const started = new Set(testbed.marks().map((mark) => mark.split(".")[0]));
  const begunLate = lateRuns.filter((run_id) => started.has(run_id)).length;
  if (early > 0) faults.push(`${early} of ${name} were killed before the grace was over`);
  if (begunLate > 0) faults.push(`${name} started ${begunLate} runs after SIGTERM`);
  if (findSurvivors(longMark).length > 0) faults.push(`${name} left processes behind`);
  const { items } = await client.runners.list();
  if (items.some((row) => row.runner_id === runner_id)) faults.push(`${name} is still listed`);
  for (const run_id of [...longRuns, ...lateRuns]) await client.runs.stop(run_id);
  return { early, begunLate, endedMs, faults };
}
