import { expect, test } from "vitest";
import { createMemoryCoordinator, type MemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { poll, prepareRunners } from "../../../test/fixtures/execute/registered.ts";
import type { RunnerPort } from "../../model/runner-port.ts";

const { setUp } = prepareRunners();

/** A port that logs the calls that arrive, in order, and delays each by the given function. */
function delayedPort(
  coordinator: MemoryCoordinator,
  delays: Partial<Record<keyof RunnerPort, () => Promise<unknown>>>,
) {
  const arrived: string[] = [];
  const { port } = coordinator;
  const delayCall = async <T>(name: keyof RunnerPort, call: () => Promise<T>): Promise<T> => {
    await delays[name]?.();
    arrived.push(name);
    return call();
  };
  const isSlow: RunnerPort = {
    ...port,
    register: (registration) => delayCall("register", () => port.register(registration)),
    report: (report) => delayCall("report", () => port.report(report)),
    deregister: (request) => delayCall("deregister", () => port.deregister(request)),
  };
  return { port: isSlow, arrived };
}

const afterMs = (ms: number) => () => new Promise((resolve) => setTimeout(resolve, ms));
const never = () => new Promise<never>(() => undefined);
const notRegistered = /\(register\)|who are you|newer registration/;

for (const end of ["stop", "drain"] as const) {
  test(`a ${end} lets the report in flight arrive before it deregisters, and prints nothing`, async () => {
    const coordinator = createMemoryCoordinator();
    const { port, arrived } = delayedPort(coordinator, { report: afterMs(150) });
    const { open, notices } = await setUp(coordinator, { port });
    // A runner sends its first report when it starts.
    await (await open())[end]();
    expect(arrived).toEqual(["register", "report", "deregister"]);
    expect(notices).toEqual([]);
  });

  test(`a ${end} during an open poll prints nothing, and sends no report if there is nothing to report`, async () => {
    const coordinator = createMemoryCoordinator({ holdMs: 60_000 });
    const { port, arrived } = delayedPort(coordinator, {});
    const { open, notices } = await setUp(coordinator, { port });
    const runner = await open();
    await poll(() => [coordinator.calls.poll, arrived.length]).toEqual([1, 2]);
    await runner[end]();
    expect(arrived).toEqual(["register", "report", "deregister"]);
    expect(notices).toEqual([]);
    expect([...coordinator.runners.values()]).toMatchObject([{ gone: true }]);
  });

  test(`a ${end} finishes while the coordinator is unreachable, and reports only that it is unreachable`, async () => {
    for (const away of ["down", "silent"] as const) {
      const coordinator = createMemoryCoordinator({ holdMs: 50 });
      const { open, notices } = await setUp(coordinator);
      const runner = await open();
      await poll(() => coordinator.calls.poll).toBeGreaterThan(0);
      coordinator.faults.away = away;
      await poll(() => notices.length).toBeGreaterThan(0);
      await runner[end]();
      expect(notices.filter((notice) => !notice.includes(`nobody answers (${away})`))).toEqual([]);
      expect(notices.join("\n")).not.toMatch(notRegistered);
    }
  });

  test(`a ${end} finishes while the runner is registering again with a coordinator that is unreachable`, async () => {
    const coordinator = createMemoryCoordinator({ holdMs: 50 });
    const { open, notices } = await setUp(coordinator);
    const runner = await open();
    const { register } = coordinator.port;
    let tries = 0;
    coordinator.port.register = (registration) => {
      tries += 1;
      coordinator.faults.away = "down";
      return register(registration);
    };
    coordinator.forgetRunners();
    await poll(() => tries).toBeGreaterThan(1);
    await runner[end]();
    expect(notices.filter((notice) => notice.startsWith("deregister"))).toHaveLength(1);
  });
}

test("deregisters after a while even if a report is never answered, and does not print that failure later", async () => {
  const coordinator = createMemoryCoordinator();
  let fail = (): void => undefined;
  const { port, arrived } = delayedPort(coordinator, {
    report: () => new Promise((_resolve, reject) => (fail = () => reject(new Error("cut off")))),
  });
  const { open, notices } = await setUp(coordinator, { port, times: { shutdownMs: 100 } });
  await (await open()).stop();
  expect(arrived).toEqual(["register", "deregister"]);
  fail();
  await afterMs(0)();
  expect(notices).toEqual([]);
});

test("does not register again when agents change while the runner shuts down", async () => {
  const coordinator = createMemoryCoordinator();
  let isSlow = false;
  const { port, arrived } = delayedPort(coordinator, {
    register: () => (isSlow ? afterMs(150)() : Promise.resolve()),
    deregister: afterMs(20),
  });
  const { open, notices } = await setUp(coordinator, { port });
  const runner = await open();
  await poll(() => arrived).toEqual(["register", "report"]);
  isSlow = true;
  const replacement = runner.replaceAgents([]);
  const stopResult = runner.stop();
  const lateReplacement = runner.replaceAgents([]);
  await Promise.all([replacement, stopResult, lateReplacement]);
  expect(arrived.filter((name) => name !== "report")).toEqual(["register", "register", "deregister"]);
  expect([...coordinator.runners.values()]).toMatchObject([{ gone: true }]);
  expect(notices).toEqual([]);
});

test("reports no failure when its own registration ends the poll of the one before", async () => {
  const coordinator = createMemoryCoordinator({ holdMs: 50 });
  const { open, notices } = await setUp(coordinator);
  const runner = await open();
  await poll(() => coordinator.calls.poll).toBeGreaterThan(0);
  await runner.replaceAgents([]);
  const { poll: polls } = coordinator.calls;
  await poll(() => coordinator.calls.poll).toBeGreaterThan(polls + 1);
  expect(notices).toEqual([]);
  await runner.stop();
});

test("shuts down even if a registration never succeeds", async () => {
  const coordinator = createMemoryCoordinator();
  let isStuck = false;
  const { port, arrived } = delayedPort(coordinator, { register: () => (isStuck ? never() : Promise.resolve()) });
  const { open } = await setUp(coordinator, { port, times: { shutdownMs: 100 } });
  const runner = await open();
  await poll(() => arrived).toEqual(["register", "report"]);
  isStuck = true;
  void runner.replaceAgents([]);
  await runner.drain();
  expect(arrived.at(-1)).toBe("deregister");
});
