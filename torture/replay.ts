import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { readAllEvents, readAllRuns, findLogFaults, readAudit } from "./record.ts";
import { startReplayingProxy } from "./replaying-proxy.ts";
import { forEachConcurrently, pause, countUpTo, waitFor } from "./wait.ts";

const delayMs = 400;

/** R10: each of a runner's requests reaches the coordinator three times, out of order. The result is as if it came once. */
export async function replay({ runs }: { runs: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, { leaseMs: 10_000, pollHoldMs: 1000 }, async (testbed) => {
    const { client } = testbed;
    await testbed.putAgent("work");
    const once = await listTypes(testbed, await runUndisturbed(testbed));
    const proxy = await startReplayingProxy(testbed.url, { port: testbed.proxyPort, copies: 3, delayMs });
    try {
      const { child } = await testbed.startRunner({
        name: "replayed",
        slots: 8,
        url: proxy.url,
        times: { heartbeatMs: 200, pollPauseMs: 30 },
      });
      await forEachConcurrently(
        countUpTo(runs),
        8,
        async () => void (await client.submit({ agent_name: "work", parameters: { lines: 3, pause: "0.02" } })),
      );
      const remaining = await waitFor(
        async () =>
          (await client.runs.list({ status: ["pending", "claimed", "running"], limit: 1 })).items.length === 0
            ? 0
            : null,
        300_000,
        200,
      );
      await pause(delayMs * 2);
      const finding = await judge(testbed, once, runs, remaining === null);
      if (!child.alive) finding.broken.push(`the runner ended: ${child.output}`);
      const { came, sent } = proxy;
      return {
        ...finding,
        seen: { runs, "requests of the runner": came, "requests that arrived": sent, ...finding.seen },
      };
    } finally {
      await testbed.processes.endAll();
      await proxy.close();
    }
  });
}

/** A run whose requests arrive once, as the reference. */
async function runUndisturbed(testbed: Testbed): Promise<string> {
  const { client } = testbed;
  const { child } = await testbed.startRunner({ name: "undisturbed", slots: 1, times: { heartbeatMs: 200 } });
  const { run_id } = await client.submit({ agent_name: "work", parameters: { lines: 3, pause: "0.02" } });
  await waitFor(async () => ((await client.runs.get(run_id)).status === "completed" ? true : null), 120_000);
  child.signal("SIGTERM");
  await child.closed;
  return run_id;
}

async function listTypes({ client }: Testbed, run_id: string): Promise<string> {
  return listTypesInLog((await client.runs.events(run_id, { limit: 1000 })).items);
}

/** Lists the event types of a log. Consecutive output counts once, because it arrives in any number of pieces. */
function listTypesInLog(log: readonly { event: { type: string; status?: unknown } }[]): string {
  const args = log.map(({ event }) => [event.type, event.status].filter((part) => part !== undefined).join(" "));
  return args.filter((word, index) => word !== "output" || args[index - 1] !== "output").join(", ");
}

async function judge(testbed: Testbed, once: string, runs: number, hung: boolean): Promise<Finding> {
  const stored = await readAllRuns(testbed.client);
  const logs = await readAllEvents(testbed.client);
  const marks = testbed.marks();
  const unexpectedRuns = stored.filter(
    ({ status, attempt, failures }) => status !== "completed" || attempt !== 1 || failures !== 0,
  );
  const differentLogs = [...logs].filter(([, log]) => listTypesInLog(log) !== once);
  const gaps = [...logs].flatMap(([run_id, log]) => findLogFaults(run_id, log));
  const { verified, executions, fenced } = await readAudit(testbed);
  return {
    seen: {
      "with another log": differentLogs.length,
      "at a second attempt or not completed": unexpectedRuns.length,
      "gaps or doubles": gaps.length,
      executions: marks.length,
      refused: fenced.size,
    },
    broken: [
      ...(hung ? ["not all of them ended"] : []),
      ...(stored.length === runs + 1 ? [] : [`${stored.length} runs for ${runs + 1} requests`]),
      ...unexpectedRuns
        .slice(0, 20)
        .map(
          ({ run_id, status, attempt, error }) =>
            `${run_id} is ${status} at attempt ${attempt}: ${error}; ${listTypesInLog(logs.get(run_id) ?? [])}`,
        ),
      ...differentLogs
        .slice(0, 20)
        .map(([run_id, log]) => `${run_id} has the log ${listTypesInLog(log)} in place of ${once}`),
      ...gaps,
      ...(marks.length === runs + 1 && executions.size === runs + 1
        ? []
        : [`${marks.length} marks and ${executions.size} executions on the record for ${runs + 1} runs`]),
      ...(fenced.size === 0 ? [] : [`refused although it was the same again: ${[...fenced].slice(0, 20).join(", ")}`]),
      ...(verified ? [] : ["the audit chain does not verify"]),
    ],
    late: [],
  };
}
