import { afterAll, beforeAll, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type Coordinator, startCoordinator } from "../coordinator.ts";
import { createClient } from "../wire/client.ts";
import { createHttpPort } from "../wire/http-port.ts";

let coordinator: TestCoordinator;
beforeAll(async () => {
  coordinator = await startTestCoordinator();
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

async function registerRunner({ url }: Pick<Coordinator, "url">, token: string): Promise<string> {
  const port = createHttpPort({ url, token });
  try {
    const { runner_id, epoch } = await port.register(registration("one"));
    await port.deregister({ runner_id, epoch });
    return "registered";
  } catch (error) {
    return String(Reflect.get(error as object, "conflict"));
  } finally {
    port.close();
  }
}

test("an ephemeral token acts only as a runner of the admin", async () => {
  const token = await coordinator.issueRunnerToken();
  expect(token).toMatch(/^drv_[0-9A-Za-z]{32}$/);
  expect(await coordinator.issueRunnerToken()).not.toBe(token);
  expect(await registerRunner(coordinator, token)).toBe("registered");
  const client = createClient({ url: coordinator.url, token });
  for (const call of [
    client.runs.list(),
    client.agents.list(),
    client.tokens.list(),
    client.tokens.rotate("self"),
    client.tokens.create({ role: "admin", subject: "eve" }),
    client.submit({ agent_name: "x" }),
  ])
    await expect(call).rejects.toMatchObject({ code: "DROVER-API-011" });
  const port = createHttpPort({ url: coordinator.url, token });
  const { runner_id, epoch } = await port.register(registration("two"));
  expect((await coordinator.client.runners.list()).items).toMatchObject([{ owner: "admin" }]);
  await port.deregister({ runner_id, epoch });
  port.close();
});

test("an ephemeral token is not stored: not listed, unknown to another coordinator, gone after a restart", async () => {
  const token = await coordinator.issueRunnerToken();
  expect((await coordinator.client.tokens.list()).items).toMatchObject([{ role: "admin" }]);
  const other = await startCoordinator({ stateDirectory: coordinator.directory, port: 0 });
  try {
    expect(await registerRunner(other, token)).toBe("unproven");
    expect(await registerRunner(other, await other.issueRunnerToken())).toBe("registered");
  } finally {
    await other.stop();
  }
});

test("an ephemeral token outlives the admin token it was issued under", async () => {
  const own = await startTestCoordinator();
  try {
    const token = await own.issueRunnerToken();
    await own.client.tokens.revoke("self");
    expect(await registerRunner(own, token)).toBe("registered");
  } finally {
    await own.dispose();
  }
});
