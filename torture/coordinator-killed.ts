import { answering } from "./coordinators.ts";
import type { Finding, Tools } from "./finding.ts";
import { judgeRuns } from "./judge-runs.ts";
import { inPlace, type Place } from "./place.ts";
import { startStorm, submitDuring, untilNothingMoves } from "./storm.ts";
import { pause, upTo } from "./wait.ts";

/**
 * R1, R2, R8: kills coordinators at random, also during startup, while runs are submitted, claimed and executed. Every
 * acknowledged run ends, is executed once, and is on record.
 */
export async function coordinatorKilled(
  { kills, runs, runners = 2 }: { kills: number; runs: number; runners?: number },
  tools: Tools,
): Promise<Finding> {
  return inPlace(tools, null, async (place) => {
    await place.putAgent("work");
    await startRunners(place, runners);
    const storm = startStorm(kills, () => killOne(place), tools.progress);
    const asked = await submitDuring(place, runs, storm);
    await storm.over;
    await Promise.all(place.coordinators.map(({ url, child }) => answering(url, child)));
    const startedAt = performance.now();
    const stuck = await untilNothingMoves(place);
    const settledMs = performance.now() - startedAt;
    const finding = await judgeRuns(place, { asked, stuck });
    for (const { child } of place.coordinators)
      if (!child.alive) finding.broken.push(`a coordinator ended by itself: ${child.said}`);
    return { ...finding, seen: { kills, ...finding.seen, "ms until all had ended": Math.round(settledMs) } };
  });
}

/** Twelve slots in total. Every second runner reconnects faster after an outage, so that kills always hit active runs. */
async function startRunners(place: Place, count: number): Promise<void> {
  for (const at of upTo(count))
    await place.startRunner({
      name: `runner-${at}`,
      slots: Math.ceil(12 / count),
      ...(at % 2 === 0 ? {} : { times: { pollPauseMs: 30 } }),
    });
}

/** Kills a coordinator and starts it again at once, as a service manager would. */
export async function killOne({ coordinators }: Place): Promise<void> {
  await pause(Math.random() * 1500);
  const victim = coordinators[Math.floor(Math.random() * coordinators.length)]!;
  if (!victim.child.alive) throw new Error(`A coordinator ended by itself: ${victim.child.said}`);
  victim.child.signal("SIGKILL");
  await victim.child.closed;
  victim.spawn();
}
