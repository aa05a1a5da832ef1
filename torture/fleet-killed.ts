import { killOne } from "./coordinator-killed.ts";
import { waitUntilAnswering } from "./coordinators.ts";
import type { Finding, Tools } from "./finding.ts";
import { judgeRuns } from "./judge-runs.ts";
import { withTestbed, type Testbed, type RunnerSpec } from "./testbed.ts";
import type { Child } from "./processes.ts";
import { startStorm, submitDuring, waitUntilNothingMoves } from "./storm.ts";
import { pause, countUpTo } from "./wait.ts";

/**
 * R1 to R4 together: kills coordinators and runners at random and replaces each at once. A run whose runner died is
 * retried if its agent allows it. No attempt is executed twice, and every run ends.
 */
export async function fleetKilled({ kills, runs }: { kills: number; runs: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    await testbed.putAgent("work", { max_attempts: 50 });
    const runners: RunnerSlot[] = [];
    for (const index of countUpTo(4)) {
      const spec: RunnerSpec = { name: `runner-${index}`, slots: 3, times: { pollPauseMs: 50 } };
      runners.push({ spec, child: (await testbed.startRunner(spec)).child });
    }
    let died = 0;
    const injectFault = async (): Promise<void> => {
      if (Math.random() < 0.7) return killOne(testbed);
      await killRunner(testbed, runners[Math.floor(Math.random() * runners.length)]!);
      died += 1;
    };
    const storm = startStorm(kills, injectFault, tools.progress);
    // Long enough to be hit by a kill.
    const submitted = await submitDuring(testbed, runs, storm, { lines: 3, pause: "0.1" });
    await storm.over;
    await Promise.all(testbed.coordinators.map(({ url, child }) => waitUntilAnswering(url, child)));
    const stuck = await waitUntilNothingMoves(testbed);
    const finding = await judgeRuns(testbed, { submitted, stuck, runnersDied: true });
    for (const { child } of [...testbed.coordinators, ...runners])
      if (!child.alive) finding.broken.push(`a process exited on its own: ${child.output}`);
    return { ...finding, seen: { kills, "of runners": died, ...finding.seen } };
  });
}

export interface RunnerSlot {
  spec: RunnerSpec;
  child: Child;
}

/** Kills a runner and starts it again on the same state, as a service manager would. */
export async function killRunner(testbed: Testbed, slot: RunnerSlot): Promise<void> {
  await pause(Math.random() * 1500);
  slot.child.signal("SIGKILL");
  await slot.child.closed;
  slot.child = testbed.spawnRunner(slot.spec);
}
