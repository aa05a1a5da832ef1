import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { sampleAgent } from "../../../test/fixtures/dispatch/host.ts";
import { runnerFixture } from "../../../test/fixtures/execute/open-runner.ts";
import { startCoordinator } from "../../coordinator.ts";
import type { Run } from "../../model/run.ts";
import { createHttpPort } from "../../wire/http-port.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

/** Uses the long default timeout, because a busy machine may be slow. */
const poll = <T>(get: () => T | Promise<T>) => expect.poll(get, { interval: 20 });

test("runs the runner's own agents over HTTP, and stops one on request", async () => {
  const stateDirectory = mkdtempSync(join(tmpdir(), "drover-http-"));
  cleanups.push(() => rm(stateDirectory, { recursive: true, force: true }));
  const coordinator = await startCoordinator({ stateDirectory, port: 0, pollHoldMs: 1000 });
  cleanups.push(() => coordinator.stop());
  const port = createHttpPort({ url: coordinator.url, token: coordinator.adminToken, pollHoldMs: 1000 });
  cleanups.push(async () => port.close());
  const fixture = runnerFixture({ port });
  cleanups.push(fixture.remove);
  const agents = [
    sampleAgent({ name: "greet", command: "sh -c 'echo hello' sh" }),
    sampleAgent({ name: "endless", command: "sleep 1000" }),
  ];
  const runner = await fixture.open({ registration: { ...fixture.options().registration, agents } });
  cleanups.push(runner.stop);

  const call = async (method: string, path: string, body?: object): Promise<Run> => {
    const response = await fetch(`${coordinator.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${coordinator.adminToken}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as Run; // The coordinator's schema has validated it.
  };
  const greeting = await call("POST", "/runs", { agent_name: "greet" });
  await poll(async () => (await call("GET", `/runs/${greeting.run_id}`)).status).toBe("completed");
  expect(await call("GET", `/runs/${greeting.run_id}`)).toMatchObject({
    exit_code: 0,
    result_text: "hello\n",
    attempt: 1,
  });

  const endless = await call("POST", "/runs", { agent_name: "endless" });
  await poll(async () => (await call("GET", `/runs/${endless.run_id}`)).status).toBe("running");
  await call("POST", `/runs/${endless.run_id}/stop`, {});
  await poll(async () => (await call("GET", `/runs/${endless.run_id}`)).status).toBe("cancelled");
  await poll(fixture.logs).toEqual([]);
});
