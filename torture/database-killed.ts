import type { PostgresServer } from "../test/postgres/server.ts";
import type { Finding, Tools } from "./finding.ts";
import { judgeRuns } from "./judge-runs.ts";
import { withServer } from "./own-server.ts";
import { withTestbed } from "./testbed.ts";
import { startStorm, submitDuring, waitUntilNothingMoves } from "./storm.ts";
import { pause, countUpTo } from "./wait.ts";

/**
 * R1: kills or restarts the database server while runs are submitted, claimed and executed. Acknowledged runs are there
 * when it is back. Unacknowledged ones are submitted again and are not stored twice.
 */
export async function databaseKilled({ kills, runs }: { kills: number; runs: number }, tools: Tools): Promise<Finding> {
  return withServer(tools, (own, server) =>
    withTestbed(own, null, async (testbed) => {
      await testbed.putAgent("work");
      for (const index of countUpTo(4)) await testbed.startRunner({ name: `runner-${index}`, slots: 3 });
      const storm = startStorm(kills, () => killOnce(server), tools.progress);
      const submitted = await submitDuring(testbed, runs, storm);
      await storm.over;
      const stuck = await waitUntilNothingMoves(testbed);
      const finding = await judgeRuns(testbed, { submitted, stuck });
      for (const { child } of testbed.coordinators)
        if (!child.alive) finding.broken.push(`a coordinator exited on its own: ${child.output}`);
      return { ...finding, seen: { kills, ...finding.seen } };
    }),
  );
}

/** Mostly crashes. Sometimes a fast shutdown, or only the sessions are terminated. */
async function killOnce(server: PostgresServer): Promise<void> {
  await pause(500 + Math.random() * 3000);
  server.kill((["SIGKILL", "SIGKILL", "SIGQUIT", "SIGINT"] as const)[Math.floor(Math.random() * 4)]!);
  await pause(Math.random() * 2000);
  await server.restart();
}
