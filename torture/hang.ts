import pg from "pg";
import { rawCall } from "../test/http-call.ts";
import { type Finding, largest, type Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { readAllRuns } from "./record.ts";
import { idleTransactionMs } from "../src/record/postgres/limits.ts";
import { forEachConcurrently, pause, countUpTo, waitFor } from "./wait.ts";

/** Allowance on top of the limit itself. */
const slackMs = 1000;

interface Requests {
  /** The `task_id` of every answered request. */
  acknowledged: Set<string>;
  sent: number;
  /** Response times of the other coordinator. */
  tookMs: number[];
  refused: string[];
}

/**
 * Freezes a coordinator with SIGSTOP in the middle of a transaction, which holds the lock that all coordinators write
 * under. The others continue once the transaction's time limit has passed. After SIGCONT nothing is written twice.
 */
export async function hang({ stops }: { stops: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    const watcher = new pg.Client({ connectionString: testbed.fleet!.url });
    await watcher.connect();
    await testbed.putAgent("work");
    const requests: Requests = { acknowledged: new Set(), sent: 0, tookMs: [], refused: [] };
    const ending = new AbortController();
    // Load on the coordinator that will freeze; its responses may take as long as the freeze.
    const load = forEachConcurrently(countUpTo(8), 8, async (lane) => {
      for (let index = 0; !ending.signal.aborted; index += 1) await submit(testbed, 0, `0.${lane}.${index}`, requests);
    });
    const other = forEachConcurrently(countUpTo(2), 2, async (lane) => {
      for (let index = 0; !ending.signal.aborted; index += 1) {
        const startedAt = performance.now();
        await submit(testbed, 1, `1.${lane}.${index}`, requests);
        requests.tookMs.push(performance.now() - startedAt);
        await pause(10);
      }
    });
    let heldFreezes = 0;
    let misses = 0;
    while (heldFreezes < stops && misses < stops * 100) {
      const answeredBefore = countAnswered(0, requests);
      if (await stopInTransaction(testbed, watcher)) heldFreezes += 1;
      else misses += 1;
      // Wait until it answers again. If it never does, another check reports it.
      await waitFor(async () => (countAnswered(0, requests) > answeredBefore ? true : null), 120_000);
      if (heldFreezes > 0 && heldFreezes % 5 === 0) tools.progress(`${heldFreezes} of ${stops} stops`);
    }
    ending.abort();
    await Promise.all([load, other]);
    await watcher.end();
    return judge(testbed, requests, heldFreezes, stops);
  });
}

function countAnswered(coordinator: number, { acknowledged }: Requests): number {
  return [...acknowledged].filter((task_id) => task_id.startsWith(`${coordinator}.`)).length;
}

/** Returns false if the freeze fell between two transactions. */
async function stopInTransaction({ coordinators }: Testbed, watcher: pg.Client): Promise<boolean> {
  const { child } = coordinators[0]!;
  await pause(Math.random() * 50);
  child.signal("SIGSTOP");
  try {
    // Longer than any live transaction takes.
    await pause(150);
    if ((await countFrozen(watcher)) === 0) return false;
    await waitFor(async () => ((await countFrozen(watcher)) === 0 ? true : null), 60_000, 100);
    // By now the others hold the lock.
    await pause(500);
    return true;
  } finally {
    child.signal("SIGCONT");
    await pause(200);
  }
}

async function countFrozen(watcher: pg.Client): Promise<number> {
  const { rows } = await watcher.query<{ count: string }>(
    `select count(*) from pg_stat_activity
     where datname = current_database() and application_name = 'drover' and state like 'idle in transaction%'
       and state_change < clock_timestamp() - interval '100 ms'`,
  );
  return Number(rows[0]?.count);
}

/** Submits without an idempotency key, so that a double write becomes visible. */
async function submit(
  { coordinators, token }: Testbed,
  index: number,
  task_id: string,
  requests: Requests,
): Promise<void> {
  requests.sent += 1;
  const answer = await rawCall(coordinators[index]!.url, {
    method: "POST",
    path: "/runs",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ agent_name: "work", task_id }),
  });
  if (answer.status === 201) requests.acknowledged.add(task_id);
  else requests.refused.push(`${task_id}: ${answer.status} ${answer.text.slice(0, 300)}`);
}

async function judge(testbed: Testbed, requests: Requests, held: number, stops: number): Promise<Finding> {
  const stored = new Map<string, number>();
  for (const { task_id } of await readAllRuns(testbed.client))
    stored.set(task_id ?? "", (stored.get(task_id ?? "") ?? 0) + 1);
  const twice = [...stored].filter(([, count]) => count > 1);
  const lost = [...requests.acknowledged].filter((task_id) => !stored.has(task_id));
  const longest = largest(requests.tookMs);
  return {
    seen: {
      "stops in a transaction": held,
      requests: requests.sent,
      lost: lost.length,
      "stored twice": twice.length,
      refused: requests.refused.length,
      "longest wait of the others ms": Math.round(longest),
    },
    broken: [
      ...(held === stops ? [] : [`only ${held} of ${stops} stops met a transaction`]),
      ...lost.map((task_id) => `${task_id} was acknowledged and is not there`),
      ...twice.map(([task_id, count]) => `${task_id} is there ${count} times`),
      ...requests.refused.slice(0, 5),
    ],
    late:
      longest > idleTransactionMs + slackMs
        ? [`another coordinator was held up for ${Math.round(longest)} ms, the limit is ${idleTransactionMs}`]
        : [],
  };
}
