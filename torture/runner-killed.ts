import { hostHas } from "../test/fixtures/process/host.ts";
import { createMark, findSurvivors } from "../test/fixtures/process/survivors.ts";
import { type Finding, largest, type Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { forEachConcurrently, pause, countUpTo, waitFor } from "./wait.ts";

/** A lease of 10 s plus the time to notice that it expired. */
const lateMs = 15_000;

/**
 * R4: kills runners in the middle of a run, with the command line's default leases. The run is requeued, or fails as
 * runner_lost if it has no attempt left. A second later none of its processes is alive.
 */
export async function runnerKilled(
  { kills, atOnce }: { kills: number; atOnce: number },
  tools: Tools,
): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    await testbed.putAgent("once");
    await testbed.putAgent("twice", { max_attempts: 2 });
    const found: Loss[] = [];
    await forEachConcurrently(countUpTo(kills), atOnce, async (index) => {
      found.push(await killOne(testbed, index, index % 2 === 0 ? "once" : "twice"));
      if (found.length % 20 === 0) tools.progress(`${found.length} of ${kills} kills`);
    });
    const lost = found.filter((item) => item.fault === null);
    return {
      seen: {
        kills: found.length,
        requeued: lost.filter(({ became }) => became === "pending").length,
        "failed as runner_lost": lost.filter(({ became }) => became === "failed").length,
        "noticed within ms": Math.round(largest(found.map(({ noticedMs }) => noticedMs))),
        "alive a second later": found.reduce((sum, { alive }) => sum + alive, 0),
      },
      broken: found.flatMap(({ fault }) => fault ?? []),
      late: found.flatMap(({ noticedMs, alive }) => [
        ...(noticedMs > lateMs ? [`one was noticed after ${Math.round(noticedMs)} ms`] : []),
        ...(alive > 0 && hostHas("pid") ? [`${alive} processes alive a second after its runner's death`] : []),
      ]),
    };
  });
}

interface Loss {
  became: string;
  noticedMs: number;
  alive: number;
  fault: string | null;
}

async function killOne(testbed: Testbed, index: number, agent_name: string): Promise<Loss> {
  const { client } = testbed;
  const name = `victim-${index}`;
  const { child } = await testbed.startRunner({ name, slots: 1, tags: [name] });
  const mark = createMark();
  const { run_id } = await client.submit({ agent_name, parameters: { stay: mark }, demands: { tags: [name] } });
  const started = await waitFor(async () => (findSurvivors(mark).length > 0 ? true : null), 120_000);
  await pause(Math.random() * 500);
  child.signal("SIGKILL");
  const killedAt = performance.now();
  await child.closed;
  const findOutlivers = pause(1000).then(() => findSurvivors(mark).length);
  const ended = await waitFor(
    async () => {
      const run = await client.runs.get(run_id);
      return run.status === "pending" || run.status === "failed" ? run : null;
    },
    60_000,
    20,
  );
  const noticedMs = performance.now() - killedAt;
  const alive = await findOutlivers;
  // A busy machine may need longer to end killed processes.
  const outlived = await waitFor(async () => (findSurvivors(mark).length === 0 ? [] : null), 60_000);
  const remaining = outlived ?? findSurvivors(mark);
  for (const pid of remaining) process.kill(pid, "SIGKILL");
  // No runner is left to claim it again.
  if (ended?.status === "pending") await client.runs.stop(run_id);
  const faults = [
    ...(started === null ? ["did not begin"] : []),
    // Weaker isolation levels do not promise this.
    ...(remaining.length > 0 && hostHas("pid") ? [`${remaining.length} processes outlive its runner`] : []),
    ...(ended === null ? ["was not noticed"] : []),
    ...(ended?.status === "failed" && ended.reason !== "runner_lost" ? [`failed as ${ended.reason}`] : []),
    ...(ended && ended.status !== (agent_name === "once" ? "failed" : "pending")
      ? [`became ${ended.status} with ${agent_name}`]
      : []),
    ...(ended && ended.failures !== 1 ? [`counts ${ended.failures} failures`] : []),
  ];
  return {
    became: ended?.status ?? "nothing",
    noticedMs,
    alive,
    fault: faults.length === 0 ? null : `${run_id} ${faults.join("; ")}`,
  };
}
