import { afterEach, expect, test } from "vitest";
import { openHost, sampleAgent } from "../../../test/fixtures/dispatch/host.ts";
import { runnerFixture } from "../../../test/fixtures/execute/open-runner.ts";
import type { PollResponse, PollRequest, ReportRequest, RunnerPort } from "../../model/runner-port.ts";

/** Uses the long default timeout, because a busy machine may be slow. */
const poll = <T>(get: () => T | Promise<T>) => expect.poll(get, { interval: 10 });

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

/** Starts a runner on a real store with short polls, and records everything it sends. */
async function setUp() {
  const host = await openHost({ pollHoldMs: 30 });
  await host.dispatcher.start();
  host.agents.setFileAgents([
    sampleAgent({ name: "endless", command: "sleep 1000" }),
    sampleAgent({ command: "true" }),
  ]);
  const polls: (PollRequest & { response: PollResponse | null })[] = [];
  const reports: ReportRequest[] = [];
  const port: RunnerPort = {
    ...host.port,
    async poll(request, signal) {
      const recorded = { ...request, response: null as PollResponse | null };
      polls.push(recorded);
      return (recorded.response = await host.port.poll(request, signal));
    },
    report(request) {
      reports.push(structuredClone(request));
      return host.port.report(request);
    },
  };
  cleanups.push(host.dispose, host.close);
  const fixture = runnerFixture({ port });
  cleanups.push(fixture.remove);
  const runner = await fixture.open();
  cleanups.push(runner.stop);
  const listEmptyPolls = () => polls.filter(({ response }) => response?.claims.length === 0);
  return { ...host, runner, polls, listEmptyPolls, reports };
}

test("polls with the same claim id until the claim returns runs, then with a new id", async () => {
  const { polls, listEmptyPolls, submit, run, runner } = await setUp();
  await poll(() => listEmptyPolls().length).toBeGreaterThan(3);
  const [first] = polls;
  expect(new Set(polls.map(({ claim_id }) => claim_id))).toEqual(new Set([first?.claim_id]));
  const id = await submit();
  await poll(async () => (await run(id)).status).toBe("completed");
  const pollsBefore = polls.length;
  await poll(() => listEmptyPolls().length).toBeGreaterThan(pollsBefore + 3);
  expect(new Set(polls.map(({ claim_id }) => claim_id)).size).toBe(2);
  await runner.replaceAgents([]);
  await poll(() => new Set(polls.map(({ claim_id }) => claim_id)).size).toBe(3);
});

test("a delayed report of an idle runner does not take back a run that the runner claimed later", async () => {
  const { polls, listEmptyPolls, reports, submit, run, events, runner, port } = await setUp();
  await poll(() => listEmptyPolls().length).toBeGreaterThan(2);
  // The runner registers again and reports that it has no runs.
  await runner.replaceAgents([]);
  const getLastPoll = () => polls.at(-1)!;
  await poll(
    () => listEmptyPolls().filter(({ epoch }) => epoch === getLastPoll().epoch && epoch !== polls[0]!.epoch).length,
  ).toBeGreaterThan(1);
  const { claim_id, epoch } = getLastPoll();
  await poll(() => reports.filter((report) => report.epoch === epoch).length).toBeGreaterThan(0);
  const pollsBefore = polls.length;

  const id = await submit({ agent_name: "endless" });
  await poll(async () => (await run(id)).status).toBe("running");
  // Both sides have closed the claim that returned the run.
  await poll(() =>
    polls.slice(pollsBefore).some((request) => request.claim_id !== claim_id && request.response !== null),
  ).toBe(true);
  const lateReports = reports.filter((report) => report.epoch === epoch && report.held.length === 0);
  expect(lateReports.length).toBeGreaterThan(0);
  for (const report of lateReports) await port.report(report);
  expect(await run(id)).toMatchObject({ status: "running", attempt: 1, failures: 0 });
  expect((await events(id)).filter(({ event }) => event.type === "status")).toHaveLength(3);
});
