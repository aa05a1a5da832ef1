import { afterEach, beforeEach, expect, it } from "vitest";
import { openHost, sampleAgent, createManualClock, type Host } from "../../test/fixtures/dispatch/host.ts";

let host: Host;
beforeEach(async () => {
  host = await openHost();
});
afterEach(async () => {
  await host.close();
  await host.dispose();
});

const getFault = async (request: ReturnType<Host["ask"]>) => {
  const result = await request;
  if (result.ok) throw new Error("the request was accepted");
  return result.fault;
};

it("creates a pending run with a new session", async () => {
  const result = await host.ask({
    parameters: { message: "hi" },
    priority: 3,
    task_id: "t",
    project_dir: "/p",
    demands: { tags: ["b", "a", "b"] },
  });
  if (!result.ok) throw new Error(result.fault.message);
  expect(result).toMatchObject({ repeated: false });
  expect(result.run).toMatchObject({
    agent_name: "echo",
    created_by: "ann",
    status: "pending",
    attempt: 0,
    parameters: { message: "hi" },
    priority: 3,
    task_id: "t",
    project_dir: "/p",
    demands: { executor_type: "procedural", tags: ["a", "b"] },
  });
  expect(await host.store.read.session(result.run.session_id ?? "")).toMatchObject({
    agent_name: "echo",
    created_by: "ann",
  });
});

it("suggests the intended agent, and lists all matches of an ambiguous name", async () => {
  expect(await getFault(host.ask({ agent_name: "ehco" }))).toMatchObject({
    status: 404,
    code: "DROVER-SUB-001",
    message: "There is no agent ehco. Did you mean echo?",
  });
  const [one, two] = [
    await host.register({ name: "one", agents: [sampleAgent({ name: "a" })] }),
    await host.register({ name: "two", agents: [sampleAgent({ name: "a" })] }),
  ];
  const fault = await getFault(host.ask({ agent_name: "a" }));
  expect(fault).toMatchObject({ status: 409, code: "DROVER-API-021" });
  expect(fault.faults.map(({ message }) => message)).toEqual([`a@${one.runner_id}`, `a@${two.runner_id}`]);
  const picked = await host.submit({ agent_name: "a@two" });
  expect(await host.run(picked)).toMatchObject({ agent_name: "a", demands: { runner_id: two.runner_id } });
  const retried = await host.submit({ agent_name: "a", demands: { runner_id: two.runner_id }, retry_of: picked });
  expect(await host.run(retried)).toMatchObject({ retry_of: picked, demands: { runner_id: two.runner_id } });
});

it("does not count a draining runner among several that offer an agent", async () => {
  const [one, two] = [
    await host.register({ name: "one", agents: [sampleAgent({ name: "a" })] }),
    await host.register({ name: "two", agents: [sampleAgent({ name: "a" })] }),
  ];
  await host.dispatcher.drainRunner(one.runner_id, true);
  const run_id = await host.submit({ agent_name: "a" });
  expect(await host.run(run_id)).toMatchObject({ demands: { runner_id: two.runner_id } });
  await host.dispatcher.drainRunner(two.runner_id, true);
  expect(await getFault(host.ask({ agent_name: "a" }))).toMatchObject({ code: "DROVER-API-021" });
});

it("reports each wrong parameter, unless the executor validates them", async () => {
  const parameters_schema = {
    type: "object",
    properties: { n: { type: "integer" }, list: { type: "array", items: { type: "string" } } },
    additionalProperties: false,
  };
  host.agents.setFileAgents([
    sampleAgent({ parameters_schema }),
    sampleAgent({ name: "free", parameters_schema, parameters_validation: "executor" }),
  ]);
  const fault = await getFault(host.ask({ parameters: { n: "x", list: [1], odd: true } }));
  expect(fault).toMatchObject({ status: 400, code: "DROVER-PAR-001" });
  expect(fault.faults.map(({ path }) => path).sort()).toEqual([
    "body.parameters.list[0]",
    "body.parameters.n",
    "body.parameters.odd",
  ]);
  expect(await host.run(await host.submit({ agent_name: "free", parameters: { odd: true } }))).toMatchObject({
    parameters: { odd: true },
  });
  const argv = await getFault(host.ask({ agent_name: "free", parameters: { a: "x\0y" } }));
  expect(argv).toMatchObject({ status: 400, code: "DROVER-PAR-002", faults: [{ path: "body.parameters.a" }] });
});

it("refuses to resume or fork a procedural agent with exactly this message", async () => {
  for (const mode of ["resume", "fork"] as const) {
    expect(await getFault(host.ask({ mode, session_id: "s" }))).toMatchObject({
      status: 400,
      message: "Procedural agents cannot resume or fork a session.",
    });
  }
});

it("continues a session where it is stored, and never another user's", async () => {
  host.agents.setFileAgents([
    sampleAgent({ name: "chat", type: "autonomous", command: null }),
    sampleAgent({ name: "other", type: "autonomous", command: null }),
  ]);
  const runner = await host.register({
    hostname: "there",
    executor_profile: "claude",
    executor: { type: "claude", config: {} },
  });
  const first = await host.run(await host.submit({ agent_name: "chat" }));
  const unstartedId = first.session_id ?? "";
  expect(await getFault(host.ask({ agent_name: "chat", mode: "fork", session_id: unstartedId }))).toMatchObject({
    status: 409,
  });
  await host.port.poll(
    { runner_id: runner.runner_id, epoch: runner.epoch, claim_id: "c", want: 1, ack_order: 0 },
    AbortSignal.timeout(60_000),
  );
  const session_id = first.session_id ?? "";
  const resumed = await host.run(await host.submit({ agent_name: "chat", mode: "resume", session_id }));
  expect(resumed).toMatchObject({
    session_id,
    // The session keeps the run's own directory: it must not start working in the runner's project.
    project_dir: null,
    demands: { hostname: "there", executor_profile: "claude", runner_id: runner.runner_id },
  });
  const resumeRequest = { agent_name: "chat", mode: "resume", session_id } as const;
  for (const demands of [{ hostname: "here" }, { executor_profile: "codex" }, { runner_id: "another" }])
    expect(await getFault(host.ask({ ...resumeRequest, demands }))).toMatchObject({
      status: 409,
      code: "DROVER-SUB-005",
    });
  expect(await getFault(host.ask({ ...resumeRequest, project_dir: "/other" }))).toMatchObject({ status: 409 });
  const forked = await host.run(await host.submit({ agent_name: "chat", mode: "fork", session_id }));
  expect(forked).toMatchObject({ forked_from: session_id, trigger_type: "fork" });
  expect(forked.session_id).not.toBe(session_id);
  expect(await getFault(host.ask({ agent_name: "chat", mode: "resume", session_id }, "bob"))).toMatchObject({
    status: 404,
    code: "DROVER-SUB-003",
  });
  expect(await getFault(host.ask({ agent_name: "other", mode: "resume", session_id }))).toMatchObject({ status: 409 });
  expect(await getFault(host.ask({ agent_name: "chat", mode: "resume" }))).toMatchObject({ status: 400 });
  expect(await getFault(host.ask({ agent_name: "chat", session_id }))).toMatchObject({ status: 400 });
});

it("continues a session with its own runner's agent if several runners offer that name", async () => {
  const offerAgents = (name: string) =>
    host.register({
      name,
      project_dir: `/${name}`,
      agents: [sampleAgent({ name: "chat", type: "autonomous", command: null, description: name })],
    });
  const [one, two] = [await offerAgents("one"), await offerAgents("two")];
  const first = await host.run(await host.submit({ agent_name: `chat@${two.runner_id}` }));
  await host.port.poll(
    { runner_id: two.runner_id, epoch: two.epoch, claim_id: "c", want: 1, ack_order: 0 },
    AbortSignal.timeout(60_000),
  );
  const session_id = first.session_id ?? "";
  expect(await getFault(host.ask({ agent_name: "chat" }))).toMatchObject({ status: 409, code: "DROVER-API-021" });
  for (const mode of ["resume", "fork"] as const) {
    const run = await host.run(await host.submit({ agent_name: "chat", mode, session_id }));
    expect(run.demands).toMatchObject({ runner_id: two.runner_id });
  }
  expect(await getFault(host.ask({ agent_name: `chat@${one.runner_id}`, mode: "resume", session_id }))).toMatchObject({
    status: 409,
  });
});

it("if only another runner offers a session's agent, names the directory of the session's runner, and no demand", async () => {
  const agents = [sampleAgent({ name: "chat", type: "autonomous", command: null })];
  const runnerAgents = { agents, executor: { type: "claude", config: {} }, executor_profile: "claude" };
  const runner = await host.register({ ...runnerAgents, name: "one", project_dir: "/first/directory" });
  const { session_id } = await host.run(await host.submit({ agent_name: "chat" }));
  await host.port.poll(
    { runner_id: runner.runner_id, epoch: runner.epoch, claim_id: "c", want: 1, ack_order: 0 },
    AbortSignal.timeout(60_000),
  );
  await host.register({ ...runnerAgents, agents: [], name: "one", project_dir: "/first/directory" });
  await host.register({ ...runnerAgents, name: "two", project_dir: "/other" });
  const resume = { agent_name: "chat", mode: "resume", session_id: session_id ?? "" } as const;
  const fault = await getFault(host.ask(resume));
  expect(fault).toMatchObject({ status: 409, code: "DROVER-SUB-005", faults: [{ path: "body.session_id" }] });
  expect(fault.message).toContain(`${runner.runner_id} in /first/directory`);
  expect(fault.next).toContain("in /first/directory");
  expect(await getFault(host.ask({ ...resume, demands: { hostname: "elsewhere" } }))).toMatchObject({
    faults: [{ path: "body.demands.hostname" }],
    next: "Remove these demands from the request.",
  });
  host.agents.setFileAgents([sampleAgent({ ...agents[0]!, demands: { hostname: "elsewhere" } })]);
  expect(await getFault(host.ask(resume))).toMatchObject({
    faults: [{ path: "body.session_id" }],
    next: "Change the agent's demands, or start a new session.",
  });
});

it("combines the demands of agent and request, and reports conflicts", async () => {
  host.agents.setFileAgents([sampleAgent({ demands: { hostname: "big", tags: ["gpu"] } })]);
  expect(await host.run(await host.submit({ demands: { tags: ["a"] } }))).toMatchObject({
    demands: { hostname: "big", tags: ["a", "gpu"] },
  });
  expect(await getFault(host.ask({ demands: { hostname: "small" } }))).toMatchObject({
    status: 409,
    code: "DROVER-SUB-005",
    faults: [{ path: "body.demands.hostname" }],
  });
});

it("creates one run per idempotency key, whatever the order of fields, and refuses the key for another request", async () => {
  const first = await host.ask({ idempotency_key: "k", parameters: { a: 1, b: 2 } });
  const repeated = await host.ask({ idempotency_key: "k", parameters: { b: 2, a: 1 } });
  expect(repeated).toMatchObject({ ok: true, repeated: true });
  expect(repeated.ok && first.ok && repeated.run.run_id === first.run.run_id).toBe(true);
  expect(await getFault(host.ask({ idempotency_key: "k", parameters: { a: 2 } }))).toMatchObject({
    status: 409,
    code: "DROVER-SUB-004",
  });
  expect(await host.ask({ idempotency_key: "k", parameters: { a: 2 } }, "bob")).toMatchObject({
    ok: true,
    repeated: false,
  });
});

it("gives a retry the timeout of the original run", async () => {
  const first = await host.submit({ timeout_seconds: 9 });
  const retry = await host.submit({ retry_of: first });
  expect(await host.store.read.submitted_agent(retry)).toMatchObject({ timeout_seconds: 9 });
});

it("refuses a retry whose parameters contain a mark in place of a secret", async () => {
  const parameters = { note: "with [redacted:github-token]", list: [{ key: "[redacted:key]" }] };
  const first = await host.submit({});
  const fault = await getFault(host.ask({ parameters, retry_of: first }));
  expect(fault).toMatchObject({ status: 400, code: "DROVER-PAR-007" });
  expect(fault.faults.map(({ path }) => path)).toEqual(["body.parameters.note", "body.parameters.list[0].key"]);
  // Text in another request may contain a mark.
  await host.submit({ parameters: { note: parameters.note } });
});

it("uses the requested model, and refuses one for a procedural agent", async () => {
  const thinker = sampleAgent({ name: "thinker", type: "autonomous", model: "its-own" });
  const { runner_id, epoch } = await host.register({ name: "one", agents: [thinker] });
  await host.submit({ agent_name: "thinker", prompt: "hi", model: "another" });
  const request = { runner_id, epoch, claim_id: "c", want: 1, ack_order: 0 };
  const { claims } = await host.port.poll(request, new AbortController().signal);
  expect(claims[0]?.invocation.agent).toMatchObject({ name: "thinker", model: "another" });
  expect(await getFault(host.ask({ model: "another" }))).toMatchObject({ status: 400, code: "DROVER-SUB-002" });
});

it.each([
  ["90", 90],
  ["30m", 1800],
  ["24h", 86_400],
])("refuses to continue a session that was not used for %s, and says what to do", async (given, seconds) => {
  const clock = createManualClock();
  const ownHost = await openHost({ clock });
  try {
    const timeout = /^\d+$/.test(given) ? Number(given) : given;
    const chat = { name: "chat", type: "autonomous", command: null, session: { timeout } } as const;
    ownHost.agents.setFileAgents([sampleAgent(chat)]);
    await ownHost.register({ executor_profile: "claude", executor: { type: "claude", config: {} } });
    const { session_id } = await ownHost.run(await ownHost.submit({ agent_name: "chat" }));
    const resume = { agent_name: "chat", mode: "resume", session_id: session_id! } as const;
    clock.advance(seconds * 1000);
    expect(await ownHost.ask(resume)).toMatchObject({ ok: true });
    clock.advance(seconds * 1000 + 1);
    expect(await getFault(ownHost.ask(resume))).toMatchObject({
      status: 409,
      code: "DROVER-SUB-006",
      faults: [{ path: "body.session_id", message: "expired" }],
      next: expect.stringContaining("new session"),
    });
  } finally {
    await ownHost.close();
    await ownHost.dispose();
  }
});

it("refuses to continue a session that belongs to another executor", async () => {
  const chat = { name: "chat", type: "autonomous", command: null } as const;
  host.agents.setFileAgents([sampleAgent(chat)]);
  const { runner_id, epoch } = await host.register({
    executor_profile: "claude",
    executor: { type: "claude", config: {} },
  });
  const { session_id } = await host.run(await host.submit({ agent_name: "chat" }));
  await host.port.poll({ runner_id, epoch, claim_id: "c", want: 1, ack_order: 0 }, AbortSignal.timeout(60_000));
  host.agents.setFileAgents([sampleAgent({ ...chat, executor: "codex" })]);
  expect(await getFault(host.ask({ agent_name: "chat", mode: "resume", session_id: session_id! }))).toMatchObject({
    status: 409,
    code: "DROVER-SUB-003",
    message: expect.stringContaining("belongs to the executor claude"),
  });
});
