import { expect, test } from "vitest";
import type { RegistrationResult, Registration } from "../../src/model/runner-port.ts";
import type { Run } from "../../src/model/run.ts";
import { createHttpPort } from "../../src/wire/http-port.ts";
import { registration } from "../coordinator.ts";
import { createDirectory } from "./drover.ts";
import { startCoordinator, type CoordinatorProcess } from "./coordinator-process.ts";

const never = new AbortController().signal;
const agent = (command: string) =>
  ({
    name: "deploy",
    description: null,
    type: "procedural",
    command,
    parameters_validation: "strict",
    list_style: "comma",
    max_attempts: 1,
    trust_project_settings: false,
  }) as const;

/** Enrols a runner of this owner and returns its token, as another machine would get it. */
async function enrol(coordinator: CoordinatorProcess, subject: string): Promise<{ token: string; enrolment: string }> {
  const created = await coordinator.call<{ token: string }>("POST", "/tokens", {
    role: "runner",
    subject,
    enrolment: true,
  });
  expect(created.status).toBe(201);
  const exchanged = await coordinator.call<{ token: string }>("POST", "/runner/enroll", {}, created.json.token);
  expect(exchanged.status).toBe(201);
  return { token: exchanged.json.token, enrolment: created.json.token };
}

function register(
  coordinator: CoordinatorProcess,
  token: string,
  changes: Partial<Registration>,
): Promise<{ status: number; json: RegistrationResult & { code?: string } }> {
  return coordinator.call("POST", "/runner/register", { ...registration("key of ann"), ...changes }, token);
}

test("an enrolment works once and gives no other access", async () => {
  const coordinator = await startCoordinator(createDirectory());
  const { enrolment, token } = await enrol(coordinator, "ann");
  const reused = await coordinator.call<{ code: string }>("POST", "/runner/enroll", {}, enrolment);
  expect(reused.status).toBeGreaterThanOrEqual(401);
  expect(reused.status).toBeLessThanOrEqual(409);
  for (const [method, path] of [
    ["GET", "/runs"],
    ["GET", "/agents"],
    ["POST", "/runner/register"],
    ["GET", "/tokens"],
  ] as const) {
    const { status } = await coordinator.call(
      method,
      path,
      method === "POST" ? registration("key of eve") : undefined,
      enrolment,
    );
    expect([401, 403]).toContain(status);
  }
  // A runner's token does not work as a user's.
  expect((await coordinator.call("GET", "/tokens", undefined, token)).status).toBe(403);
  expect((await coordinator.call("POST", "/tokens", { role: "admin", subject: "eve" }, token)).status).toBe(403);
});

test("refuses to replace, report for, drain or write to another owner's runner", async () => {
  const coordinator = await startCoordinator(createDirectory());
  const ann = await enrol(coordinator, "ann");
  const eve = await enrol(coordinator, "eve");
  const runnerOfAnn = await register(coordinator, ann.token, { name: "box-1" });
  expect(runnerOfAnn.status).toBe(200);
  // The same names, once with her own key and once with the stolen one.
  for (const runner_key of ["key of eve......", registration("key of ann").runner_key]) {
    const forgedRegistration = await register(coordinator, eve.token, { name: "box-1", runner_key });
    expect([forgedRegistration.status, forgedRegistration.json.code]).toEqual([409, "DROVER-API-018"]);
  }
  await coordinator.call("PUT", "/agents/work", { type: "procedural", command: "true" });
  const { json: run } = await coordinator.call<Run>("POST", "/runs", { agent_name: "work" });
  const { runner_id, epoch } = runnerOfAnn.json;
  const port = createHttpPort({ url: coordinator.url, token: ann.token });
  const { claims } = await port.poll({ runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 }, never);
  expect(claims.map((claim) => claim.run_id)).toEqual([run.run_id]);

  const report = {
    runner_id,
    epoch,
    held: [],
    as_of_claim: "c1",
    events: [],
    partials: [],
    finishes: [
      { run_id: run.run_id, attempt: 1, last_n: 0, outcome: { status: "completed", exit_code: 0, text: "forged" } },
    ],
  };
  const forgedPoll = await coordinator.call<{ code: string }>("POST", "/runner/report", report, eve.token);
  expect([forgedPoll.status, forgedPoll.json.code]).toEqual([404, "DROVER-API-016"]);
  expect(
    (
      await coordinator.call(
        "POST",
        "/runner/poll",
        { runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 },
        eve.token,
      )
    ).status,
  ).toBe(404);
  await coordinator.call("POST", "/runner/deregister", { runner_id, epoch }, eve.token);
  expect((await coordinator.call("POST", `/runners/${runner_id}/drain`, {}, eve.token)).status).toBe(403);

  // Her own runner with the guessed ids of another owner's run.
  const ownRunner = await register(coordinator, eve.token, { name: "box-2", runner_key: "key of eve......" });
  const guessed = await coordinator.call<{ fenced: unknown }>(
    "POST",
    "/runner/report",
    { ...report, runner_id: ownRunner.json.runner_id, epoch: ownRunner.json.epoch },
    eve.token,
  );
  expect(guessed.json.fenced).toEqual([{ run_id: run.run_id, attempt: 1 }]);
  expect((await coordinator.call<Run>("GET", `/runs/${run.run_id}`)).json).toMatchObject({
    status: "claimed",
    runner_id,
    attempt: 1,
  });

  await port.report({
    ...report,
    held: [[run.run_id, 1]],
    finishes: [
      { run_id: run.run_id, attempt: 1, last_n: 0, outcome: { status: "completed", exit_code: 0, text: "hers" } },
    ],
  });
  expect((await coordinator.call<Run>("GET", `/runs/${run.run_id}`)).json).toMatchObject({
    status: "completed",
    result_text: "hers",
  });
  port.close();
});

test("refuses an agent name that two runners offer and lists the candidates, each of which can be named", async () => {
  const coordinator = await startCoordinator(createDirectory());
  const ann = await enrol(coordinator, "ann");
  const eve = await enrol(coordinator, "eve");
  const first = await register(coordinator, ann.token, { name: "good", agents: [agent("good")] });
  expect((await coordinator.call("POST", "/runs", { agent_name: "deploy" })).status).toBe(201);
  const second = await register(coordinator, eve.token, {
    name: "evil",
    runner_key: "key of eve......",
    agents: [agent("evil")],
  });
  const ambiguous = await coordinator.call<{ code: string; detail: string; faults: unknown }>("POST", "/runs", {
    agent_name: "deploy",
  });
  expect([ambiguous.status, ambiguous.json.code]).toEqual([409, "DROVER-API-021"]);
  for (const { json } of [first, second]) expect(JSON.stringify(ambiguous.json)).toContain(json.runner_id);
  const runOfNamedAgent = await coordinator.call<Run>("POST", "/runs", { agent_name: "deploy@good" });
  expect(runOfNamedAgent.status).toBe(201);

  // The second runner receives neither the earlier run nor the one that names the first runner.
  const { runner_id, epoch } = second.json;
  const port = createHttpPort({ url: coordinator.url, token: eve.token });
  const { claims } = await port
    .poll({ runner_id, epoch, claim_id: "c1", want: 10, ack_order: 0 }, AbortSignal.timeout(1000))
    .catch(() => ({ claims: [] }));
  expect(claims).toEqual([]);
  port.close();
});
