import { createClient } from "../src/wire/client.ts";
import type { CoordinatorTimes } from "./coordinators.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { retryWhileUnreachable, waitFor } from "./wait.ts";

export interface Size {
  /** The number of runners that wait at the coordinator that will freeze. */
  waiting: number;
  /** null for the command line's defaults. */
  times: CoordinatorTimes | null;
  /** The time limit. */
  withinMs: number;
}

/**
 * R7: idle runners wait for work at a coordinator that freezes but still accepts connections. They notice its silence and
 * take work from the other coordinator.
 */
export async function idle({ waiting, times, withinMs }: Size, tools: Tools): Promise<Finding> {
  return withTestbed(tools, times, async (testbed) => {
    await testbed.putAgent("work");
    const names: string[] = [];
    let polls: number[];
    // The balancer decides which coordinator a runner reaches.
    while (Math.max(...(polls = await countHeldPolls(testbed))) < waiting)
      names.push(await startWaitingRunner(testbed, names.length));
    const hanging = testbed.coordinators[polls.indexOf(Math.max(...polls))]!;
    const otherCoordinator = testbed.coordinators.find((item) => item !== hanging)!;
    const client = createClient({ url: otherCoordinator.url, token: testbed.token });
    tools.progress(`${waiting} of ${names.length} runners wait at the one that is stopped`);
    hanging.child.signal("SIGSTOP");
    const startedAt = performance.now();
    try {
      for (const name of names) await client.submit({ agent_name: "work", demands: { tags: [name] } });
      const done = await waitFor(
        async () => {
          const { items } = await retryWhileUnreachable(() => client.runs.list({ status: ["completed"], limit: 1000 }));
          return items.length === names.length ? true : null;
        },
        2 * withinMs,
        200,
      );
      const ms = Math.round(performance.now() - startedAt);
      const remaining = names.length - (await client.runs.list({ status: ["completed"], limit: 1000 })).items.length;
      return {
        seen: { "waited there": waiting, "back within ms": ms, "not back": remaining },
        broken: done === null ? [`${remaining} of ${names.length} runners have taken nothing for ${ms} ms`] : [],
        late: ms > withinMs ? [`they were back after ${ms} ms`] : [],
      };
    } finally {
      hanging.child.signal("SIGCONT");
    }
  });
}

/** Starts a runner and resolves once it waits for work. */
async function startWaitingRunner(testbed: Testbed, index: number): Promise<string> {
  const name = `idle-${index}`;
  await testbed.startRunner({ name, slots: 1, tags: [name] });
  const waits = await waitFor(async () => (sum(await countHeldPolls(testbed)) > index ? true : null), 120_000);
  if (waits === null) throw new Error(`The runner ${name} waits nowhere.`);
  return name;
}

function countHeldPolls({ coordinators, token }: Testbed): Promise<number[]> {
  return Promise.all(
    coordinators.map(async ({ url }) => {
      const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
      const found = /^drover_held_polls (\d+)$/m.exec(await response.text());
      if (found === null) throw new Error(`${url} does not say how many polls it holds.`);
      return Number(found[1]);
    }),
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
