import { createClient } from "../src/wire/client.ts";
import { createHttpPort } from "../src/wire/http-port.ts";
import { registration } from "../test/coordinator.ts";
import { type Finding, largest, percentile, type Tools } from "./finding.ts";
import { withTestbed } from "./testbed.ts";
import { pause, countUpTo } from "./wait.ts";

/** Beyond this, the poll was not woken but found the run on its own. */
const unwokenMs = 60_000;
/** The limit for the p99 on an idle machine. */
const lateMs = 100;

/** A runner's poll waits at one coordinator while a run is submitted at another. Measures how long the poll takes to get it. */
export async function wake({ times }: { times: number }, tools: Tools): Promise<Finding> {
  // A long lease, so that the poll's own check at a third of it cannot be mistaken for a wake-up.
  return withTestbed(tools, { leaseMs: 600_000, pollHoldMs: 150_000 }, async ({ coordinators, token, putAgent }) => {
    const [here, there] = [coordinators[0]!, coordinators[1]!];
    await putAgent("work");
    const submitClient = createClient({ url: there.url, token });
    const port = createHttpPort({ url: here.url, token });
    const { runner_id, epoch } = await port.register(registration("waits here"));
    const wokenMs: number[] = [];
    const broken: string[] = [];
    for (const index of countUpTo(times)) {
      const claim_id = `claim ${index}`;
      const waiting = port.poll({ runner_id, epoch, claim_id, want: 1, ack_order: 0 }, AbortSignal.timeout(200_000));
      // By then the poll is held, and only a wake-up ends it.
      await pause(5 + Math.random() * 10);
      const startedAt = performance.now();
      const { run_id } = await submitClient.submit({ agent_name: "work" });
      const { claims } = await waiting;
      wokenMs.push(performance.now() - startedAt);
      if (claims.length !== 1 || claims[0]?.run_id !== run_id)
        broken.push(
          `submitted ${run_id}, but the poll returned ${JSON.stringify(claims.map((claim) => claim.run_id))}`,
        );
      const outcome = { status: "completed", exit_code: 0, text: null } as const;
      const finishes = claims.map((claim) => ({ run_id: claim.run_id, attempt: claim.attempt, last_n: 0, outcome }));
      await port.report({ runner_id, epoch, held: [], as_of_claim: claim_id, events: [], partials: [], finishes });
      if ((index + 1) % 200 === 0) tools.progress(`${index + 1} of ${times}`);
    }
    port.close();
    const [p50, p99] = [percentile(wokenMs, 0.5), percentile(wokenMs, 0.99)];
    const slept = wokenMs.filter((ms) => ms > unwokenMs);
    return {
      seen: {
        polls: times,
        "not woken": slept.length,
        "p50 ms": Math.round(p50 * 10) / 10,
        "p99 ms": Math.round(p99 * 10) / 10,
        "longest ms": Math.round(largest(wokenMs)),
      },
      broken: [...broken, ...slept.map((ms) => `one was woken after ${Math.round(ms)} ms`)],
      late: p99 > lateMs ? [`p99 is ${Math.round(p99)} ms`] : [],
    };
  });
}
