import { availableParallelism } from "node:os";
import { hasEnded } from "../src/model/states.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed } from "./testbed.ts";
import { allEvents, allRuns, faultsOfLog, printed, readAudit } from "./record.ts";
import { each, pause, upTo, waitFor } from "./wait.ts";

/** Spinning processes per core, so that every other process has to wait for CPU time. */
const spinnersEach = 2;

/** R5: all cores are busy with other work for minutes. No lease expires, and runs only take longer. */
export async function busyCores({ runs, seconds }: { runs: number; seconds: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    const { client } = testbed;
    await testbed.putAgent("work", { timeout_seconds: seconds * 10 + 60 });
    for (const index of upTo(2)) await testbed.startRunner({ name: `runner-${index}`, slots: Math.ceil(runs / 2) });
    const runIds: string[] = [];
    await each(upTo(runs), 4, async () => {
      const parameters = { lines: seconds, pause: "1" };
      runIds.push((await client.submit({ agent_name: "work", parameters })).run_id);
    });
    const spinners = [...upTo(availableParallelism() * spinnersEach)].map(() =>
      testbed.processes.start(["/bin/sh", "-c", "while :; do :; done"], { cwd: testbed.directory, env: {} }),
    );
    for (const index of upTo(Math.ceil(seconds / 60))) {
      await pause(Math.min(60, seconds - index * 60) * 1000);
      tools.progress(`all cores busy for ${Math.min(seconds, (index + 1) * 60)} of ${seconds} s`);
    }
    for (const spinner of spinners) spinner.signal("SIGKILL");
    await waitFor(
      async () => ((await allRuns(client)).every(({ status }) => hasEnded(status)) ? true : null),
      120_000 + seconds * 1000,
      500,
    );
    const stored = await allRuns(client);
    const expired = stored.filter(({ attempt, failures }) => attempt !== 1 || failures !== 0);
    const undone = stored.filter(({ status }) => status !== "completed");
    const logs = await allEvents(client);
    const text = [...upTo(seconds)].map((index) => `line ${index + 1}\n`).join("");
    const short = runIds.filter((run_id) => printed(logs.get(run_id) ?? []) !== text);
    const { fenced, verified } = await readAudit(testbed);
    const { items } = await client.runners.list();
    const lost = items.filter(({ status }) => status === "lost");
    return {
      seen: {
        "seconds busy": seconds,
        runs: stored.length,
        expiries: expired.length + lost.length + fenced.size,
        "not completed": undone.length,
        "with lines lost": short.length,
      },
      broken: [
        ...expired.map(({ run_id, attempt, failures }) => `${run_id}: attempt ${attempt}, failures ${failures}`),
        ...undone.map(({ run_id, status, error }) => `${run_id} is ${status}: ${error}`),
        ...lost.map(({ runner_id }) => `${runner_id} was lost`),
        ...[...fenced].map((attempt) => `${attempt} was refused`),
        ...short.map((run_id) => `${run_id} has other lines than it printed`),
        ...[...logs].flatMap(([run_id, log]) => faultsOfLog(run_id, log)),
        ...(verified ? [] : ["the audit chain does not verify"]),
      ],
      late: [],
    };
  });
}
