import { hasEnded } from "../src/model/states.ts";
import { type Finding, largest, type Tools } from "./finding.ts";
import { withTestbed } from "./testbed.ts";
import { readAllRuns } from "./record.ts";
import { forEachConcurrently, countUpTo, waitFor } from "./wait.ts";

const timeoutMs = 1000;
/** The time between SIGTERM and SIGKILL. */
const graceMs = 2000;
/** How much later than timeout plus grace a run may end. */
const lateMs = 500;

/** K2: runs that ignore SIGTERM still end in time after their timeout. */
export async function ignoredSigterm(
  { runs, atOnce }: { runs: number; atOnce: number },
  tools: Tools,
): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    const { client } = testbed;
    await testbed.putAgent("ignores-sigterm", { timeout_seconds: timeoutMs / 1000 });
    await testbed.startRunner({ name: "patient", slots: atOnce });
    await forEachConcurrently(
      countUpTo(runs),
      8,
      async () =>
        void (await client.submit({
          agent_name: "ignores-sigterm",
          parameters: { "ignore-sigterm": true, stay: "60" },
        })),
    );
    const withinMs = 60_000 + (runs / atOnce) * (timeoutMs + graceMs + 5000);
    await waitFor(
      async () => ((await readAllRuns(client)).every(({ status }) => hasEnded(status)) ? true : null),
      withinMs,
      500,
    );
    const stored = await readAllRuns(client);
    const tookMs = stored.map(
      ({ started_at, finished_at }) => Date.parse(finished_at ?? "") - Date.parse(started_at ?? ""),
    );
    const wrong = stored.filter(({ reason }) => reason !== "timeout");
    const lateMsValues = tookMs.filter((ms) => !(ms <= timeoutMs + graceMs + lateMs));
    return {
      seen: {
        runs: stored.length,
        "ended later than timeout + grace + 0.5 s": lateMsValues.length,
        "ended after ms, at most": Math.round(largest(tookMs)),
        "ended otherwise": wrong.length,
      },
      broken: wrong
        .slice(0, 20)
        .map(({ run_id, status, reason, error }) => `${run_id} is ${status}: ${reason} ${error}`),
      late: lateMsValues.map((ms) => `one took ${ms} ms`),
    };
  });
}
