import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CoordinatorTimes } from "./coordinators.ts";
import type { Finding, Tools } from "./finding.ts";
import { startMutingProxy } from "./muting-proxy.ts";
import { withServer } from "./own-server.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { readAllEvents, readAllRuns, findLogFaults, getStdout } from "./record.ts";
import { forEachConcurrently, retryWhileUnreachable, pause, countUpTo, waitFor } from "./wait.ts";

export interface Size {
  runs: number;
  seconds: number;
  /** Replaces a coordinator's default times, for example with a longer lease on a busy machine. */
  times?: CoordinatorTimes;
}

/** Starts the outage and resolves to a function that ends it. */
export type Trouble = (testbed: Testbed) => Promise<() => Promise<void>>;

/** R7: the coordinators are down while runs are active. The runs continue, and their events arrive afterwards. */
export async function outage(size: Size, tools: Tools): Promise<Finding> {
  return withTestbed(tools, null, (testbed) =>
    testOutage(testbed, size, tools, async ({ coordinators }) => {
      for (const { child } of coordinators) child.signal("SIGKILL");
      return async () => void (await Promise.all(coordinators.map((slot) => slot.start())));
    }),
  );
}

/** R7: the database is down. The coordinators are up but can neither read nor write. */
export async function databaseOutage(size: Size, tools: Tools): Promise<Finding> {
  return withServer(tools, (own, server) =>
    withTestbed(own, null, (testbed) =>
      testOutage(testbed, size, tools, async () => {
        server.kill("SIGKILL");
        return () => server.restart();
      }),
    ),
  );
}

/** R7: the database is unreachable without an error: packets in both directions are held back. */
export async function databaseSilence(size: Size, tools: Tools): Promise<Finding> {
  const database = await tools.openDatabase();
  const url = new URL(database.url);
  const proxy = await startMutingProxy(Number(url.port));
  url.port = String(proxy.port);
  const openDatabase = async () => ({ url: url.href, drop: async () => undefined });
  try {
    return await withTestbed({ ...tools, openDatabase }, size.times ?? null, (testbed) =>
      testOutage(testbed, size, tools, async () => {
        proxy.mute();
        return async () => proxy.unmute();
      }),
    );
  } finally {
    await proxy.close();
    await database.drop();
  }
}

/** R7: one of two coordinators freezes but still accepts connections. */
export async function testFrozenCoordinator(size: Size, tools: Tools): Promise<Finding> {
  return withTestbed(tools, size.times ?? null, (testbed) =>
    testOutage(testbed, size, tools, async ({ coordinators }) => {
      const { child } = coordinators[0]!;
      child.signal("SIGSTOP");
      return async () => child.signal("SIGCONT");
    }),
  );
}

/** Runs continue during the outage, and all their events are there afterwards. */
export async function testOutage(
  testbed: Testbed,
  { runs, seconds }: Size,
  tools: Tools,
  begin: Trouble,
): Promise<Finding> {
  const { client } = testbed;
  await testbed.putAgent("work");
  const runners = [
    await testbed.startRunner({ name: "steady", slots: Math.ceil(runs / 2) }),
    await testbed.startRunner({ name: "other", slots: Math.max(1, Math.floor(runs / 2)) }),
  ];
  // Half of the runs end during the outage, half after it.
  const lines = (index: number): number => (index % 2 === 0 ? Math.ceil(seconds / 2) : seconds + 4);
  const submitted = new Map<string, number>();
  // On a busy machine the first run could end before the last has started, so all wait for this file.
  const startFile = join(testbed.directory, "begin-printing");
  await forEachConcurrently(countUpTo(runs), 8, async (index) => {
    const { run_id } = await client.submit({
      agent_name: "work",
      parameters: { lines: lines(index), pause: "1", after: startFile },
    });
    submitted.set(run_id, lines(index));
  });
  await waitFor(
    async () => ((await client.runs.list({ status: ["running"], limit: 1000 })).items.length === runs ? true : null),
    120_000,
  );
  const underWay = (await client.runs.list({ status: ["running"], limit: 1000 })).items.length;
  tools.progress(`${underWay} under way, trouble for ${seconds} s`);
  writeFileSync(startFile, "");
  const end = await begin(testbed);
  await pause(seconds * 1000);
  await end();
  await waitFor(
    async () =>
      (await retryWhileUnreachable(() => readAllRuns(client))).every(
        ({ status }) => status === "completed" || status === "failed",
      )
        ? true
        : null,
    120_000,
    500,
  );
  const finding = await judge(testbed, submitted, { underWay, seconds });
  const all = [...runners, ...testbed.coordinators].map(
    ({ child }) => `output of one of them: ${child.output.slice(-1500)}`,
  );
  if (finding.broken.length > 0) finding.broken.unshift(...all);
  return finding;
}

async function judge(
  testbed: Testbed,
  submitted: ReadonlyMap<string, number>,
  { underWay, seconds }: { underWay: number; seconds: number },
): Promise<Finding> {
  const stored = await readAllRuns(testbed.client);
  const ids = new Set(stored.map(({ run_id }) => run_id));
  const logs = await readAllEvents(testbed.client);
  const undone = stored.filter(
    ({ status, attempt, failures }) => status !== "completed" || attempt !== 1 || failures !== 0,
  );
  const short = [...submitted].filter(
    ([run_id, count]) =>
      getStdout(logs.get(run_id) ?? []) !== [...countUpTo(count)].map((index) => `line ${index + 1}\n`).join(""),
  );
  const gaps = [...logs].flatMap(([run_id, log]) => findLogFaults(run_id, log));
  const repeats = testbed.marks().length - new Set(testbed.marks().map((mark) => mark.split(".")[0])).size;
  return {
    seen: {
      seconds,
      "runs under way": underWay,
      "runs lost": [...submitted.keys()].filter((run_id) => !ids.has(run_id)).length + undone.length,
      "runs with lines lost": short.length,
      "gaps in numbers": gaps.length,
      "carried out twice": repeats,
    },
    broken: [
      ...(underWay === submitted.size ? [] : [`only ${underWay} of ${submitted.size} were under way`]),
      ...undone.map(({ run_id, status, attempt, error }) => `${run_id} is ${status} at attempt ${attempt}: ${error}`),
      ...short.map(
        ([run_id, count]) =>
          `${run_id} printed other than its ${count} lines: ${JSON.stringify(getStdout(logs.get(run_id) ?? []))}`,
      ),
      ...gaps,
      ...(repeats === 0 ? [] : [`${repeats} were carried out again`]),
    ],
    late: [],
  };
}
