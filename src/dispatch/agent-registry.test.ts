import { afterEach, beforeEach, expect, it } from "vitest";
import { type Host, openHost, sampleAgent } from "../../test/fixtures/dispatch/host.ts";

let host: Host;
beforeEach(async () => {
  host = await openHost();
});
afterEach(async () => {
  await host.close();
  await host.dispose();
});

it("prefers an agent from a file over one from the API, that over runners' agents, and no runner over another", async () => {
  const agentWith = (description: string) => sampleAgent({ name: "a", description });
  const [one, two] = [
    await host.register({ name: "one", agents: [agentWith("one")] }),
    await host.register({ name: "two", agents: [agentWith("two")] }),
  ];
  expect(await host.agents.find("a")).toMatchObject({
    candidates: [{ agent: { description: "one" } }, { agent: { description: "two" } }],
  });
  expect(await host.agents.find("a@two")).toMatchObject({ runner_id: two.runner_id });
  expect(await host.agents.find(`a@${one.runner_id}`)).toMatchObject({ runner_id: one.runner_id });
  expect(await host.agents.find("a@three")).toBeNull();
  await host.agents.put(agentWith("api"), "ann");
  expect(await host.agents.find("a")).toMatchObject({ source: "api", owner: "ann" });
  host.agents.setFileAgents([agentWith("file")]);
  expect(await host.agents.find("a")).toMatchObject({ source: "file" });
  expect((await host.agents.page({ limit: 10 })).items.map(({ source }) => source)).toEqual([
    "file",
    "api",
    "runner",
    "runner",
  ]);
  host.agents.setFileAgents([agentWith("file")], new Map([["a", "a.json:1: unknown key comand"]]));
  expect(await host.agents.find("a")).toMatchObject({ source: "file", fault: "a.json:1: unknown key comand" });
  host.agents.setFileAgents([]);
  expect(await host.agents.remove("a")).toBe(true);
  expect(await host.agents.remove("a")).toBe(false);
  await host.port.deregister(two);
  expect(await host.agents.find("a")).toMatchObject({ runner_id: one.runner_id });
});

it("finds the first of several agents of the local runner that have the same name", async () => {
  const [first, second] = ["first", "second"].map((description) => sampleAgent({ name: "local", description }));
  host.agents.setLocal([first!, second!]);
  expect(await host.agents.find("local")).toMatchObject({ agent: { description: "first" } });
});
