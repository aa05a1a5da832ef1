import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Executor, RunContext } from "../src/model/executor.ts";
import { type Host, openHost, sampleAgent } from "../test/fixtures/dispatch/host.ts";
import { runnerFixture } from "../test/fixtures/execute/open-runner.ts";
import { median, formatMs, printTable } from "./rounds.ts";
import { describeMachine, chooseRounds, runBench, isRequested } from "./run-bench.ts";

/** Measures from a person's answer until the run continues: the record, the order, the runner and the executor. */
async function main(): Promise<void> {
  process.stdout.write(`${describeMachine()}\n`);
  const rows: string[][] = [];
  if (isRequested("alive"))
    rows.push(createRow("while it waits", await measure("alive", chooseRounds(500)), "p99 <= 100 ms"));
  if (isRequested("parked"))
    rows.push(createRow("from parked", await measure("parked", chooseRounds(100)), "p99 <= 1.5 s"));
  printTable(
    "questions: from the answer until the run continues",
    ["what", "answers", "p50", "p99", "max", "goal"],
    rows,
  );
}

function createRow(what: string, durations: readonly number[], goal: string): string[] {
  const sorted = durations.toSorted((a, b) => a - b);
  const p99 = sorted[Math.ceil(sorted.length * 0.99) - 1]!;
  return [what, String(durations.length), formatMs(median(sorted)), formatMs(p99), formatMs(sorted.at(-1)!), goal];
}

/** Each run asks once. Answers are given one at a time, after the question is on record. */
async function measure(how: "alive" | "parked", answers: number): Promise<number[]> {
  const host = await openHost();
  await host.dispatcher.start();
  const park = how === "parked" ? { park_after_seconds: 0.001 } : {};
  host.agents.setFileAgents([sampleAgent({ name: "asking", type: "autonomous", ...park })]);
  let continued: () => void = () => undefined;
  const fixture = runnerFixture({ port: host.port, executor: createAskingExecutor(() => continued()) });
  const runner = await fixture.open();
  const durations: number[] = [];
  for (let index = 0; index < answers; index += 1) {
    const run_id = await host.submit({ agent_name: "asking", prompt: "go", attended: true });
    await waitForStatus(host, run_id, how === "alive" ? "waiting" : "parked");
    const going = new Promise<void>((resolve) => (continued = resolve));
    const answeredAt = performance.now();
    await host.store.apply([
      { op: "answer_question", run_id, request_id: "q", answer: { decision: "allow" }, by: "bench" },
    ]);
    await going;
    durations.push(performance.now() - answeredAt);
    await waitForStatus(host, run_id, "completed");
  }
  await runner.stop();
  await host.close();
  await host.dispose();
  await fixture.remove();
  return durations;
}

function createAskingExecutor(onAllowed: () => void): Executor {
  const ask = async (context: RunContext): Promise<Answer> => {
    await context.session.save("bench-1", Buffer.from("{}"));
    return context.ask({ request_id: "q", tool: "deploy", input: { to: "production" } });
  };
  return {
    name: "asking",
    can: { resume: true, fork: false, ask: true, input: false, state: true, park: true },
    async run(_invocation, context) {
      const { decision } = await ask(context);
      if (decision === "park") return { status: "parked", why: "approval" };
      onAllowed();
      return { status: "completed", exit_code: null, text: decision };
    },
  };
}

async function waitForStatus(host: Host, run_id: string, status: string): Promise<void> {
  while ((await host.run(run_id)).status !== status) await sleep(2);
}

runBench(main, {});
