import { setMaxListeners } from "node:events";
import type { RunnerPort } from "../src/model/runner-port.ts";
import { createHttpPort } from "../src/wire/http-port.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed } from "./testbed.ts";
import { readAllEvents, readAllRuns, findLogFaults } from "./record.ts";
import { forEachConcurrently, retryWhileUnreachable, countUpTo } from "./wait.ts";

/** R2: many claimers race for many runs over HTTP. Each run goes to exactly one of them. */
export async function race({ claimers, runs }: { claimers: number; runs: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, null, async ({ client, url, token, putAgent }) => {
    await putAgent("work");
    const claimCounts = new Map<string, number>();
    let finished = 0;
    const ending = new AbortController();
    setMaxListeners(0, ending.signal); // Every claimer listens.
    const claim = async (index: number): Promise<void> => {
      const port = createHttpPort({ url, token });
      try {
        await claimAll(
          port,
          index,
          ending.signal,
          (run_ids) => {
            for (const run_id of run_ids) claimCounts.set(run_id, (claimCounts.get(run_id) ?? 0) + 1);
          },
          (count) => {
            finished += count;
            if (finished >= runs) ending.abort();
          },
        );
      } finally {
        port.close();
      }
    };
    const claiming = Promise.all([...countUpTo(claimers)].map(claim));
    const startedAt = performance.now();
    await forEachConcurrently(countUpTo(runs), 32, async () => void (await client.submit({ agent_name: "work" })));
    const overdue = setTimeout(() => ending.abort(), 120_000);
    await claiming;
    clearTimeout(overdue);

    const stored = await readAllRuns(client);
    const twice = [...claimCounts].filter(([, count]) => count > 1);
    const undone = stored.filter(({ status, attempt }) => status !== "completed" || attempt !== 1);
    const logs = await readAllEvents(client);
    return {
      seen: {
        claimers,
        runs: stored.length,
        "handed out twice": twice.length,
        "not completed at the first attempt": undone.length,
        ms: Math.round(performance.now() - startedAt),
      },
      broken: [
        ...twice.map(([run_id, count]) => `${run_id} was handed out ${count} times`),
        ...undone
          .slice(0, 20)
          .map(({ run_id, status, attempt, error }) => `${run_id} is ${status} at attempt ${attempt}: ${error}`),
        ...(stored.length === runs && claimCounts.size === runs
          ? []
          : [`${stored.length} stored and ${claimCounts.size} handed out of ${runs}`]),
        ...[...logs].flatMap(([run_id, log]) => findLogFaults(run_id, log)),
      ],
      late: [],
    };
  });
}

async function claimAll(
  port: RunnerPort,
  index: number,
  signal: AbortSignal,
  onHanded: (run_ids: string[]) => void,
  onFinished: (count: number) => void,
): Promise<void> {
  const { runner_id, epoch } = await port.register({
    protocol: 1,
    runner_key: `key of claimer ${index}`,
    name: `claimer-${index}`,
    hostname: "race",
    project_dir: "/",
    executor_profile: "race",
    executor: { type: "procedural", config: {} },
    tags: [],
    require_matching_tags: false,
    agents: [],
    slots: 10,
  });
  for (let no = 1; !signal.aborted; no += 1) {
    const claim_id = `${index}-${no}`;
    const want = 1 + Math.floor(Math.random() * 5);
    // Like a runner, repeat the request until it is answered.
    const { claims } = await retryWhileUnreachable(() =>
      port.poll({ runner_id, epoch, claim_id, want, ack_order: 0 }, signal).catch((error: unknown) => {
        if (signal.aborted) return { claims: [] };
        throw error;
      }),
    );
    if (claims.length === 0) continue;
    onHanded(claims.map(({ run_id }) => run_id));
    const report = {
      runner_id,
      epoch,
      held: claims.map(({ run_id, attempt }): [string, number] => [run_id, attempt]),
      as_of_claim: claim_id,
      events: [],
      partials: [],
      finishes: claims.map(({ run_id, attempt }) => ({
        run_id,
        attempt,
        last_n: 0,
        outcome: { status: "completed" as const, exit_code: 0, text: null },
      })),
    };
    await retryWhileUnreachable(() => port.report(report));
    onFinished(claims.length);
  }
}
