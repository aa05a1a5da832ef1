import { availableParallelism } from "node:os";
import { hasEnded } from "../src/model/states.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed } from "./testbed.ts";
import { readAllEvents, readAllRuns, findLogFaults, getStdout, readAudit } from "./record.ts";
import { forEachConcurrently, pause, countUpTo, waitFor } from "./wait.ts";

/** Spinning processes per core, so that every other process has to wait for CPU time. */
const spinnersPerCore = 2;

/** R5: all cores are busy with other work for minutes. No lease expires, and runs only take longer. */
export async function busyCores({ runs, seconds }: { runs: number; seconds: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    const { client } = testbed;
    await testbed.putAgent("work", { timeout_seconds: seconds * 10 + 60 });
    for (const index of countUpTo(2))
      await testbed.startRunner({ name: `runner-${index}`, slots: Math.ceil(runs / 2) });
    const runIds: string[] = [];
    await forEachConcurrently(countUpTo(runs), 4, async () => {
      const parameters = { lines: seconds, pause: "1" };
      runIds.push((await client.submit({ agent_name: "work", parameters })).run_id);
    });
    const spinners = [...countUpTo(availableParallelism() * spinnersPerCore)].map(() =>
      testbed.processes.start(["/bin/sh", "-c", "while :; do :; done"], { cwd: testbed.directory, env: {} }),
    );
    for (const index of countUpTo(Math.ceil(seconds / 60))) {
      await pause(Math.min(60, seconds - index * 60) * 1000);
      tools.progress(`all cores busy for ${Math.min(seconds, (index + 1) * 60)} of ${seconds} s`);
    }
    for (const spinner of spinners) spinner.signal("SIGKILL");
    await waitFor(
      async () => ((await readAllRuns(client)).every(({ status }) => hasEnded(status)) ? true : null),
      120_000 + seconds * 1000,
      500,
    );
    const stored = await readAllRuns(client);
    const expired = stored.filter(({ attempt, failures }) => attempt !== 1 || failures !== 0);
    const undone = stored.filter(({ status }) => status !== "completed");
    const logs = await readAllEvents(client);
    const text = [...countUpTo(seconds)].map((index) => `line ${index + 1}\n`).join("");
    const truncatedRuns = runIds.filter((run_id) => getStdout(logs.get(run_id) ?? []) !== text);
    const { fenced, verified } = await readAudit(testbed);
    const { items } = await client.runners.list();
    const lostRunners = items.filter(({ status }) => status === "lost");
    return {
      seen: {
        "seconds busy": seconds,
        runs: stored.length,
        expiries: expired.length + lostRunners.length + fenced.size,
        "not completed": undone.length,
        "with lines lost": truncatedRuns.length,
      },
      broken: [
        ...expired.map(({ run_id, attempt, failures }) => `${run_id}: attempt ${attempt}, failures ${failures}`),
        ...undone.map(({ run_id, status, error }) => `${run_id} is ${status}: ${error}`),
        ...lostRunners.map(({ runner_id }) => `${runner_id} was lost`),
        ...[...fenced].map((attempt) => `${attempt} was refused`),
        ...truncatedRuns.map((run_id) => `${run_id} has other lines than it printed`),
        ...[...logs].flatMap(([run_id, log]) => findLogFaults(run_id, log)),
        ...(verified ? [] : ["the audit chain does not verify"]),
      ],
      late: [],
    };
  });
}
