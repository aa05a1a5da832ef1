import { afterEach, expect, test } from "vitest";
import { openHost, sampleAgent, serve } from "../../../test/fixtures/dispatch/host.ts";
import { runnerFixture } from "../../../test/fixtures/execute/open-runner.ts";
import type { RunEvent } from "../../model/event.ts";
import { PortError } from "../../model/port-error.ts";
import type { Run } from "../../model/run.ts";
import type { RunnerPort } from "../../model/runner-port.ts";
import { hasEnded } from "../../model/states.ts";

/** Uses the long default timeout, because a busy machine may be slow. */
const poll = <T>(get: () => T | Promise<T>) => expect.poll(get, { interval: 10 });

/** A real runner with real commands, over the in-process port to a real store. */
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

async function setUp({ slots = 4, leaseMs = 10_000 } = {}) {
  const host = await openHost({ leaseMs });
  let current: RunnerPort | null = host.port;
  const currentPort = (): RunnerPort => {
    if (current) return current;
    throw new PortError("away", "nobody listens", Object.assign(new Error("refused"), { code: "ECONNREFUSED" }));
  };
  const port: RunnerPort = {
    register: async (registration) => currentPort().register(registration),
    poll: async (request, signal) => currentPort().poll(request, signal),
    report: async (request) => currentPort().report(request),
    upload: async (request, content, signal) => currentPort().upload(request, content, signal),
    loadSession: (request) => currentPort().loadSession(request),
    saveSession: (request) => currentPort().saveSession(request),
    sessions: async (request) => currentPort().sessions(request),
    deregister: async (request) => currentPort().deregister(request),
  };
  await host.dispatcher.start();
  cleanups.push(host.dispose, host.close);
  const fixture = runnerFixture({ port, slots });
  cleanups.push(fixture.remove);
  const runner = await fixture.open();
  cleanups.push(runner.stop);
  host.agents.setFileAgents([
    sampleAgent({ name: "greet", command: "sh -c 'echo hello; echo oops >&2' sh" }),
    sampleAgent({ name: "endless", command: "sleep 1000" }),
    sampleAgent({
      name: "slow",
      command: "sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo line $i; sleep 0.4; done' sh",
    }),
  ]);
  const waitForEnd = async (run_id: string): Promise<Run> => {
    await poll(async () => hasEnded((await host.run(run_id)).status)).toBe(true);
    return host.run(run_id);
  };
  const restart = async (awayMs: number): Promise<void> => {
    current = null;
    await host.close();
    await new Promise((resolve) => setTimeout(resolve, awayMs));
    const restarted = serve(host.store, { leaseMs });
    cleanups.push(restarted.close);
    await restarted.dispatcher.start();
    current = restarted.port;
  };
  const expectComplete = async (run_id: string): Promise<RunEvent[]> => {
    const events = await host.events(run_id);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(events.at(-1)!.event.type).toBe("result");
    return events.map(({ event }) => event);
  };
  return { ...host, ...fixture, runner, waitForEnd, restart, expectComplete };
}

test("runs many runs in few slots, each once and complete, with a valid audit chain", async () => {
  const { submit, waitForEnd, expectComplete, verify, logs } = await setUp();
  const ids = await Promise.all(Array.from({ length: 30 }, () => submit({ agent_name: "greet" })));
  for (const id of ids) {
    expect(await waitForEnd(id)).toMatchObject({
      status: "completed",
      exit_code: 0,
      result_text: "hello\n",
      attempt: 1,
      failures: 0,
    });
    const events = await expectComplete(id);
    expect(events.filter(({ type }) => type === "execution_started")).toHaveLength(1);
    expect(events.filter(({ type }) => type === "execution_ended")).toHaveLength(1);
  }
  expect(await verify()).toMatchObject({ ok: true });
  await poll(logs).toEqual([]);
});

test("stops a run on request and at its own time limit", async () => {
  const { submit, waitForEnd, dispatcher, run } = await setUp();
  const stopped = await submit({ agent_name: "endless" });
  const late = await submit({ agent_name: "endless", timeout_seconds: 0.4 });
  await poll(async () => (await run(stopped)).status).toBe("running");
  await dispatcher.stopRuns([stopped], "ann");
  expect(await waitForEnd(stopped)).toMatchObject({ status: "cancelled" });
  expect(await waitForEnd(late)).toMatchObject({ status: "failed", reason: "timeout" });
});

test("loses no run and no line when the coordinator is unreachable for longer than a lease", async () => {
  const { submit, waitForEnd, restart, expectComplete, events } = await setUp({ leaseMs: 4000 });
  const ids = await Promise.all(Array.from({ length: 4 }, () => submit({ agent_name: "slow" })));
  for (const id of ids)
    await poll(async () => (await events(id)).some(({ event }) => event.type === "output")).toBe(true);
  await restart(4500);
  for (const id of ids) {
    expect(await waitForEnd(id)).toMatchObject({ status: "completed", attempt: 1, failures: 0 });
    const output = (await expectComplete(id)).flatMap((event) => (event.type === "output" ? [event.text ?? ""] : []));
    expect(output.join("")).toBe(Array.from({ length: 15 }, (_, i) => `line ${i + 1}\n`).join(""));
  }
});

test("gives the runs of a stopped runner to the next runner without counting a failure", async () => {
  const { submit, run, runner, open } = await setUp();
  const id = await submit({ agent_name: "endless" });
  await poll(async () => (await run(id)).status).toBe("running");
  await runner.stop();
  expect(await run(id)).toMatchObject({ status: "pending", failures: 0 });
  const next = await open();
  cleanups.push(next.stop);
  await poll(async () => (await run(id)).status).toBe("running");
  expect(await run(id)).toMatchObject({ attempt: 2, failures: 0 });
});
