import { afterAll, beforeAll, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { createHttpPort } from "../wire/http-port.ts";

let coordinator: TestCoordinator;
let tokens: Record<"admin" | "user" | "viewer" | "runner", string>;
let poll: { runner_id: string; epoch: number; claim_id: string; want: number; ack_order: number };

beforeAll(async () => {
  coordinator = await startTestCoordinator({ leaseMs: 600_000, pollHoldMs: 1 });
  const { client, url, adminToken } = coordinator;
  await client.agents.put("work", { command: "true" });
  const createToken = async (role: "user" | "viewer" | "runner") =>
    (await client.tokens.create({ role, subject: "ann" })).token;
  tokens = {
    admin: adminToken,
    user: await createToken("user"),
    viewer: await createToken("viewer"),
    runner: await createToken("runner"),
  };
  const port = createHttpPort({ url, token: tokens.runner });
  const { runner_id, epoch } = await port.register(registration("direct"));
  port.close();
  poll = { runner_id, epoch, claim_id: "c", want: 0, ack_order: 0 };
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

const json = { "content-type": "application/json" };
const buildHeaders = (role: keyof typeof tokens) => ({ ...json, authorization: `Bearer ${tokens[role]}` });
const submission = JSON.stringify({ agent_name: "work" });
const buildReport = (): string => {
  const { runner_id, epoch } = poll;
  return JSON.stringify({ runner_id, epoch, held: [], as_of_claim: null, events: [], partials: [], finishes: [] });
};

interface RequestToSend {
  path: string;
  headers: Record<string, string>;
  body?: string;
  method?: string;
}
const cases: [string, () => RequestToSend][] = [
  [
    "a submission",
    () => ({ path: "/runs", headers: { ...buildHeaders("user"), "idempotency-key": "k" }, body: submission }),
  ],
  ["an unknown agent", () => ({ path: "/runs", headers: buildHeaders("user"), body: '{"agent_name":"wrk"}' })],
  ["no token", () => ({ path: "/runs", headers: json, body: submission })],
  [
    "an unknown token",
    () => ({ path: "/runs", headers: { ...json, authorization: "Bearer drv_x" }, body: submission }),
  ],
  ["a viewer", () => ({ path: "/runs", headers: buildHeaders("viewer"), body: submission })],
  [
    "a foreign host",
    () => ({ path: "/runs", headers: { ...buildHeaders("user"), host: "evil.example" }, body: submission }),
  ],
  [
    "a Host that is no host",
    () => ({ path: "/runs", headers: { ...buildHeaders("user"), host: "127.0.0.1:99999" }, body: "{}" }),
  ],
  [
    "a foreign origin",
    () => ({ path: "/runs", headers: { ...buildHeaders("user"), origin: "https://evil.example" }, body: "{}" }),
  ],
  ["a cookie without an origin", () => ({ path: "/runs", headers: { ...json, cookie: "drover=x" }, body: submission })],
  [
    "another type",
    () => ({ path: "/runs", headers: { ...buildHeaders("user"), "content-type": "text/plain" }, body: submission }),
  ],
  ["invalid JSON", () => ({ path: "/runs", headers: buildHeaders("user"), body: "{" })],
  ["no body", () => ({ path: "/runs", headers: buildHeaders("user") })],
  [
    "a body that is too large",
    () => ({ path: "/runs", headers: buildHeaders("user"), body: " ".repeat(1024 * 1024 + 1) }),
  ],
  ["another method", () => ({ path: "/runs", headers: buildHeaders("user"), method: "PUT", body: submission })],
  ["a poll", () => ({ path: "/runner/poll", headers: buildHeaders("runner"), body: JSON.stringify(poll) })],
  ["a poll by a user", () => ({ path: "/runner/poll", headers: buildHeaders("user"), body: JSON.stringify(poll) })],
  [
    "a poll of an old epoch",
    () => ({ path: "/runner/poll", headers: buildHeaders("runner"), body: JSON.stringify({ ...poll, epoch: 0 }) }),
  ],
  [
    "a poll of an unknown runner",
    () => ({
      path: "/runner/poll",
      headers: buildHeaders("runner"),
      body: JSON.stringify({ ...poll, runner_id: "x" }),
    }),
  ],
  ["a report", () => ({ path: "/runner/report", headers: buildHeaders("runner"), body: buildReport() })],
  ["a report by a viewer", () => ({ path: "/runner/report", headers: buildHeaders("viewer"), body: buildReport() })],
  ["an incomplete report", () => ({ path: "/runner/report", headers: buildHeaders("runner"), body: "{}" })],
];

test.each(cases)("responds the same with and without the router: %s", async (_what, build) => {
  const { path, headers, body, method = "POST" } = build();
  const call = async (target: string) => {
    const response = await rawCall(coordinator.url, {
      path: target,
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    const { date: _date, ...responseHeaders } = response.headers;
    return { ...response, headers: responseHeaders };
  };
  // Submit once first, so that the two requests that are compared get the same run.
  await call(path);
  // Only the plain path is served directly.
  const [direct, routed] = [await call(path), await call(`${path}?`)];
  expect(direct).toEqual(routed);
});

test("counts requests under their route, with and without the router", async () => {
  const countRequests = async () => {
    const text = await (
      await fetch(`${coordinator.url}/metrics`, { headers: { authorization: `Bearer ${tokens.admin}` } })
    ).text();
    const samples = text.matchAll(/^drover_http_requests_total\{method="post",path="\/runs",status="201"\} (\d+)$/gm);
    return [...samples].reduce((sum, [, number]) => sum + Number(number), 0);
  };
  const before = await countRequests();
  for (const path of ["/runs", "/runs?"])
    await rawCall(coordinator.url, { path, method: "POST", headers: buildHeaders("user"), body: submission });
  expect(await countRequests()).toBe(before + 2);
});
