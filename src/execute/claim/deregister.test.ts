import { expect, test } from "vitest";
import { createMemoryCoordinator, type MemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { poll, runnersOfEachTest } from "../../../test/fixtures/execute/registered.ts";
import type { RunnerPort } from "../../model/runner-port.ts";

const { setUp } = runnersOfEachTest();

/** Which calls have arrived, in that order; each takes the way that is given for it. */
function overTheWay(coordinator: MemoryCoordinator, ways: Partial<Record<keyof RunnerPort, () => Promise<unknown>>>) {
  const arrived: string[] = [];
  const { port } = coordinator;
  const through = async <T>(name: keyof RunnerPort, call: () => Promise<T>): Promise<T> => {
    await ways[name]?.();
    arrived.push(name);
    return call();
  };
  const slow: RunnerPort = {
    ...port,
    register: (registration) => through("register", () => port.register(registration)),
    report: (report) => through("report", () => port.report(report)),
    deregister: (request) => through("deregister", () => port.deregister(request)),
  };
  return { port: slow, arrived };
}

const someMs = (ms: number) => () => new Promise((resolve) => setTimeout(resolve, ms));
const never = () => new Promise<never>(() => undefined);
const notRegistered = /\(register\)|who are you|newer registration/;

for (const end of ["stop", "drain"] as const) {
  test(`a ${end} lets the report under way arrive before the goodbye, and says nothing`, async () => {
    const coordinator = createMemoryCoordinator();
    const { port, arrived } = overTheWay(coordinator, { report: someMs(150) });
    const { open, notices } = await setUp(coordinator, { port });
    // the first report goes out with the start
    await (await open())[end]();
    expect(arrived).toEqual(["register", "report", "deregister"]);
    expect(notices).toEqual([]);
  });

  test(`a ${end} while a poll is held says nothing, and needs no report where there is nothing to say`, async () => {
    const coordinator = createMemoryCoordinator({ holdMs: 60_000 });
    const { port, arrived } = overTheWay(coordinator, {});
    const { open, notices } = await setUp(coordinator, { port });
    const runner = await open();
    await poll(() => [coordinator.calls.poll, arrived.length]).toEqual([1, 2]);
    await runner[end]();
    expect(arrived).toEqual(["register", "report", "deregister"]);
    expect(notices).toEqual([]);
    expect([...coordinator.runners.values()]).toMatchObject([{ gone: true }]);
  });

  test(`a ${end} while the coordinator is away ends, and says that it is away and nothing else`, async () => {
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

  test(`a ${end} ends while the runner registers again with a coordinator that is away`, async () => {
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

test("a report that is never answered delays the goodbye for a while only, and is not told afterwards", async () => {
  const coordinator = createMemoryCoordinator();
  let fail = (): void => undefined;
  const { port, arrived } = overTheWay(coordinator, {
    report: () => new Promise((_resolve, reject) => (fail = () => reject(new Error("cut off")))),
  });
  const { open, notices } = await setUp(coordinator, { port, times: { shutdownMs: 100 } });
  await (await open()).stop();
  expect(arrived).toEqual(["register", "deregister"]);
  fail();
  await someMs(0)();
  expect(notices).toEqual([]);
});

test("agents that change while a runner leaves do not bring it back", async () => {
  const coordinator = createMemoryCoordinator();
  let slow = false;
  const { port, arrived } = overTheWay(coordinator, {
    register: () => (slow ? someMs(150)() : Promise.resolve()),
    deregister: someMs(20),
  });
  const { open, notices } = await setUp(coordinator, { port });
  const runner = await open();
  await poll(() => arrived).toEqual(["register", "report"]);
  slow = true;
  const replacing = runner.replaceAgents([]);
  const stopping = runner.stop();
  const late = runner.replaceAgents([]);
  await Promise.all([replacing, stopping, late]);
  expect(arrived.filter((name) => name !== "report")).toEqual(["register", "register", "deregister"]);
  expect([...coordinator.runners.values()]).toMatchObject([{ gone: true }]);
  expect(notices).toEqual([]);
});

test("a registration that never comes through does not keep a runner that leaves", async () => {
  const coordinator = createMemoryCoordinator();
  let stuck = false;
  const { port, arrived } = overTheWay(coordinator, { register: () => (stuck ? never() : Promise.resolve()) });
  const { open } = await setUp(coordinator, { port, times: { shutdownMs: 100 } });
  const runner = await open();
  await poll(() => arrived).toEqual(["register", "report"]);
  stuck = true;
  void runner.replaceAgents([]);
  await runner.drain();
  expect(arrived.at(-1)).toBe("deregister");
});
