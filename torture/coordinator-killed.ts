import { waitUntilAnswering } from "./coordinators.ts";
import type { Finding, Tools } from "./finding.ts";
import { judgeRuns } from "./judge-runs.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { startStorm, submitDuring, waitUntilNothingMoves } from "./storm.ts";
import { pause, countUpTo } from "./wait.ts";

/**
 * R1, R2, R8: kills coordinators at random, also during startup, while runs are submitted, claimed and executed. Every
 * acknowledged run ends, is executed once, and is on record.
 */
export async function coordinatorKilled(
  { kills, runs, runners = 2 }: { kills: number; runs: number; runners?: number },
  tools: Tools,
): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    await testbed.putAgent("work");
    await startRunners(testbed, runners);
    const storm = startStorm(kills, () => killOne(testbed), tools.progress);
    const submitted = await submitDuring(testbed, runs, storm);
    await storm.over;
    await Promise.all(testbed.coordinators.map(({ url, child }) => waitUntilAnswering(url, child)));
    const startedAt = performance.now();
    const stuck = await waitUntilNothingMoves(testbed);
    const settledMs = performance.now() - startedAt;
    const finding = await judgeRuns(testbed, { submitted, stuck });
    for (const { child } of testbed.coordinators)
      if (!child.alive) finding.broken.push(`a coordinator exited on its own: ${child.output}`);
    return { ...finding, seen: { kills, ...finding.seen, "ms until all had ended": Math.round(settledMs) } };
  });
}

/** Twelve slots in total. Every second runner reconnects faster after an outage, so that kills always hit active runs. */
async function startRunners(testbed: Testbed, count: number): Promise<void> {
  for (const index of countUpTo(count))
    await testbed.startRunner({
      name: `runner-${index}`,
      slots: Math.ceil(12 / count),
      ...(index % 2 === 0 ? {} : { times: { pollPauseMs: 30 } }),
    });
}

/** Kills a coordinator and starts it again at once, as a service manager would. */
export async function killOne({ coordinators }: Testbed): Promise<void> {
  await pause(Math.random() * 1500);
  const victim = coordinators[Math.floor(Math.random() * coordinators.length)]!;
  if (!victim.child.alive) throw new Error(`A coordinator exited on its own: ${victim.child.output}`);
  victim.child.signal("SIGKILL");
  await victim.child.closed;
  victim.spawn();
}
