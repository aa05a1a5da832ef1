import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall, type RawCall } from "../../test/http-call.ts";

let coordinator: TestCoordinator;
let viewer: string;
beforeAll(async () => {
  coordinator = await startTestCoordinator();
  ({ token: viewer } = await coordinator.client.tokens.create({ role: "viewer", subject: "ann" }));
});
afterAll(() => coordinator.dispose());

const postJson = (body: unknown): RawCall => ({ path: "", method: "POST", body: JSON.stringify(body) });
const unknownRunner = { runner_id: "r", epoch: 1, claim_id: "c", want: 1, ack_order: 0 };

const refusals: [what: string, status: number, call: RawCall, as?: "viewer" | "nobody"][] = [
  ["no token", 401, { path: "/runs" }, "nobody"],
  ["a role without permission", 403, { path: "/backup", method: "POST" }, "viewer"],
  ["data of all users for a viewer of some", 403, { path: "/metrics" }, "viewer"],
  ["a foreign host", 403, { path: "/runs", headers: { host: "evil.example" } }],
  ["an unknown run", 404, { path: "/runs/nothing" }],
  ["an unknown agent", 404, { path: "/agents/nothing" }],
  ["an unknown file", 404, { path: "/runs/nothing/files/x" }],
  ["an unknown route", 404, { path: "/nothing" }],
  ["an unsupported method", 405, { path: "/runs", method: "DELETE" }],
  ["an unregistered runner", 404, { ...postJson(unknownRunner), path: "/runner/poll" }],
  ["a body that is not JSON", 400, { path: "/runs", method: "POST", body: "{" }],
  [
    "a body of another type",
    415,
    { path: "/runs", method: "POST", body: "a", headers: { "content-type": "text/plain" } },
  ],
  ["a body that is too deep", 400, { path: "/runs", method: "POST", body: "[".repeat(100) }],
  ["a body with a bad key", 400, { path: "/runs", method: "POST", body: '{"__proto__":1}' }],
  ["an unknown field", 400, { ...postJson({ x: 1 }), path: "/runs" }],
  ["an unknown query parameter", 400, { path: "/runs?x=1" }],
  ["a repeated query parameter", 400, { path: "/runs?limit=1&limit=2" }],
  ["an invalid cursor", 400, { path: "/runs?cursor=x" }],
  ["a run of an unknown agent", 404, { ...postJson({ agent_name: "nothing" }), path: "/runs" }],
  ["a user's token for all subjects", 400, { ...postJson({ role: "user", subject: "*" }), path: "/tokens" }],
];

test.each(refusals)("%s is refused with %i and a next step", async (_what, status, call, as) => {
  const token = as === "viewer" ? viewer : coordinator.adminToken;
  const headers = {
    "content-type": "application/json",
    ...(as === "nobody" ? {} : { authorization: `Bearer ${token}` }),
    ...call.headers,
  };
  const response = await rawCall(coordinator.url, { ...call, headers });
  expect([response.status, response.text]).toEqual([status, expect.stringMatching(/"next":"[A-Z`].{10,}"/)]);
});
