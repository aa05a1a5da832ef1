import type { Finding, Tools } from "./finding.ts";
import { inPlace } from "./place.ts";
import { allEvents, allRuns, faultsOfLog, printed } from "./record.ts";
import { each, pause, upTo, waitFor } from "./wait.ts";

/** R7: the coordinator is away while runs are under way. They go on, and everything they did meanwhile arrives. */
export async function outage({ runs, seconds }: { runs: number; seconds: number }, tools: Tools): Promise<Finding> {
  return inPlace(tools, null, async (place) => {
    const { client } = place;
    await place.putAgent("work");
    await place.startRunner({ name: "steady", slots: runs });
    // half of them end while the coordinator is away, half go on after it is back
    const lines = (at: number): number => (at % 2 === 0 ? Math.ceil(seconds / 2) : seconds + 4);
    const asked = new Map<string, number>();
    await each(upTo(runs), 8, async (at) => {
      const { run_id } = await client.submit({ agent_name: "work", parameters: { lines: lines(at), pause: "1" } });
      asked.set(run_id, lines(at));
    });
    await waitFor(
      async () => ((await client.runs.list({ status: ["running"], limit: 1000 })).items.length === runs ? true : null),
      60_000,
    );
    const underWay = (await client.runs.list({ status: ["running"], limit: 1000 })).items.length;
    place.coordinator.signal("SIGKILL");
    tools.progress(`${underWay} under way, the coordinator is away for ${seconds} s`);
    await pause(seconds * 1000);
    await place.startCoordinator();
    await waitFor(
      async () =>
        (await allRuns(client)).every(({ status }) => status === "completed" || status === "failed") ? true : null,
      60_000,
      500,
    );

    const stored = await allRuns(client);
    const logs = await allEvents(client);
    const undone = stored.filter(
      ({ status, attempt, failures }) => status !== "completed" || attempt !== 1 || failures !== 0,
    );
    const short = [...asked].filter(
      ([run_id, count]) =>
        printed(logs.get(run_id) ?? []) !== [...upTo(count)].map((at) => `line ${at + 1}\n`).join(""),
    );
    const gaps = [...logs].flatMap(([run_id, log]) => faultsOfLog(run_id, log));
    const again = place.marks().length - new Set(place.marks().map((mark) => mark.split(".")[0])).size;
    return {
      seen: {
        "seconds away": seconds,
        "runs under way": underWay,
        "runs lost": asked.size - stored.length + undone.length,
        "runs with lines lost": short.length,
        "gaps in numbers": gaps.length,
        "carried out twice": again,
      },
      broken: [
        ...(underWay === runs ? [] : [`only ${underWay} of ${runs} were under way`]),
        ...undone.map(({ run_id, status, attempt, error }) => `${run_id} is ${status} at attempt ${attempt}: ${error}`),
        ...short.map(
          ([run_id, count]) =>
            `${run_id} printed other than its ${count} lines: ${JSON.stringify(printed(logs.get(run_id) ?? []))}`,
        ),
        ...gaps,
        ...(again === 0 ? [] : [`${again} were carried out again`]),
      ],
      late: [],
    };
  });
}
