import { expect, test } from "vitest";
import type { RegistrationResult, Registration } from "../../src/model/runner-port.ts";
import type { Run } from "../../src/model/run.ts";
import { createHttpPort } from "../../src/wire/http-port.ts";
import { registration } from "../coordinator.ts";
import { folder } from "./drover.ts";
import { serve, type Serving } from "./serving.ts";

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

/** A token of a runner of this owner, by enrolment, as another machine would get it. */
async function enrol(serving: Serving, subject: string): Promise<{ token: string; enrolment: string }> {
  const made = await serving.call<{ token: string }>("POST", "/tokens", { role: "runner", subject, enrolment: true });
  expect(made.status).toBe(201);
  const got = await serving.call<{ token: string }>("POST", "/runner/enroll", {}, made.json.token);
  expect(got.status).toBe(201);
  return { token: got.json.token, enrolment: made.json.token };
}

function register(
  serving: Serving,
  token: string,
  changes: Partial<Registration>,
): Promise<{ status: number; json: RegistrationResult & { code?: string } }> {
  return serving.call("POST", "/runner/register", { ...registration("key of ann"), ...changes }, token);
}

test("an enrolment works once, and is good for nothing else", async () => {
  const serving = await serve(folder());
  const { enrolment, token } = await enrol(serving, "ann");
  const again = await serving.call<{ code: string }>("POST", "/runner/enroll", {}, enrolment);
  expect(again.status).toBeGreaterThanOrEqual(401);
  expect(again.status).toBeLessThanOrEqual(409);
  for (const [method, path] of [
    ["GET", "/runs"],
    ["GET", "/agents"],
    ["POST", "/runner/register"],
    ["GET", "/tokens"],
  ] as const) {
    const { status } = await serving.call(
      method,
      path,
      method === "POST" ? registration("key of eve") : undefined,
      enrolment,
    );
    expect([401, 403]).toContain(status);
  }
  // a runner's own token is no user's
  expect((await serving.call("GET", "/tokens", undefined, token)).status).toBe(403);
  expect((await serving.call("POST", "/tokens", { role: "admin", subject: "eve" }, token)).status).toBe(403);
});

test("another's runner cannot be replaced, spoken for, drained of its claims or written to", async () => {
  const serving = await serve(folder());
  const ann = await enrol(serving, "ann");
  const eve = await enrol(serving, "eve");
  const hers = await register(serving, ann.token, { name: "box-1" });
  expect(hers.status).toBe(200);
  // the same names, with a key of her own and with the stolen one
  for (const runner_key of ["key of eve......", registration("key of ann").runner_key]) {
    const taken = await register(serving, eve.token, { name: "box-1", runner_key });
    expect([taken.status, taken.json.code]).toEqual([409, "DROVER-API-018"]);
  }
  await serving.call("PUT", "/agents/work", { type: "procedural", command: "true" });
  const { json: run } = await serving.call<Run>("POST", "/runs", { agent_name: "work" });
  const { runner_id, epoch } = hers.json;
  const port = createHttpPort({ url: serving.url, token: ann.token });
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
  const forged = await serving.call<{ code: string }>("POST", "/runner/report", report, eve.token);
  expect([forged.status, forged.json.code]).toEqual([404, "DROVER-API-016"]);
  expect(
    (await serving.call("POST", "/runner/poll", { runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 }, eve.token))
      .status,
  ).toBe(404);
  await serving.call("POST", "/runner/deregister", { runner_id, epoch }, eve.token);
  expect((await serving.call("POST", `/runners/${runner_id}/drain`, {}, eve.token)).status).toBe(403);

  // a runner of her own, and the guessed ids of another's run
  const own = await register(serving, eve.token, { name: "box-2", runner_key: "key of eve......" });
  const guessed = await serving.call<{ fenced: unknown }>(
    "POST",
    "/runner/report",
    { ...report, runner_id: own.json.runner_id, epoch: own.json.epoch },
    eve.token,
  );
  expect(guessed.json.fenced).toEqual([{ run_id: run.run_id, attempt: 1 }]);
  expect((await serving.call<Run>("GET", `/runs/${run.run_id}`)).json).toMatchObject({
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
  expect((await serving.call<Run>("GET", `/runs/${run.run_id}`)).json).toMatchObject({
    status: "completed",
    result_text: "hers",
  });
  port.close();
});

test("two runners with one agent's name: the bare name is refused with its candidates, and each can be named", async () => {
  const serving = await serve(folder());
  const ann = await enrol(serving, "ann");
  const eve = await enrol(serving, "eve");
  const first = await register(serving, ann.token, { name: "good", agents: [agent("good")] });
  expect((await serving.call("POST", "/runs", { agent_name: "deploy" })).status).toBe(201);
  const second = await register(serving, eve.token, {
    name: "evil",
    runner_key: "key of eve......",
    agents: [agent("evil")],
  });
  const ambiguous = await serving.call<{ code: string; detail: string; faults: unknown }>("POST", "/runs", {
    agent_name: "deploy",
  });
  expect([ambiguous.status, ambiguous.json.code]).toEqual([409, "DROVER-API-021"]);
  for (const { json } of [first, second]) expect(JSON.stringify(ambiguous.json)).toContain(json.runner_id);
  const named = await serving.call<Run>("POST", "/runs", { agent_name: "deploy@good" });
  expect(named.status).toBe(201);

  // what was asked for before and what names the first is never handed to the second
  const { runner_id, epoch } = second.json;
  const port = createHttpPort({ url: serving.url, token: eve.token });
  const { claims } = await port
    .poll({ runner_id, epoch, claim_id: "c1", want: 10, ack_order: 0 }, AbortSignal.timeout(1000))
    .catch(() => ({ claims: [] }));
  expect(claims).toEqual([]);
  port.close();
});
