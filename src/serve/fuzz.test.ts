import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";

let coordinator: TestCoordinator;
let headers: Record<string, string>;
beforeAll(async () => {
  coordinator = await startTestCoordinator({ pollHoldMs: 20 });
  headers = { authorization: `Bearer ${coordinator.adminToken}`, "content-type": "application/json" };
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

const post = (path: string, body: string | Buffer, extraHeaders: Record<string, string> = {}) =>
  rawCall(coordinator.url, { method: "POST", path, headers: { ...headers, ...extraHeaders }, body });

test.each([
  ["not JSON", "{", 400, "DROVER-API-001"],
  ["nothing", "", 400, "DROVER-API-006"],
  ["not UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), 400, "DROVER-API-001"],
  ["65 levels", "[".repeat(65) + "]".repeat(65), 400, "DROVER-API-004"],
  ["400,000 levels", "[".repeat(400_000) + "]".repeat(400_000), 400, "DROVER-API-004"],
  ["200,000 objects in each other", '{"a":'.repeat(150_000) + "1" + "}".repeat(150_000), 400, "DROVER-API-004"],
  ["__proto__", '{"agent_name":"x","parameters":{"a":[{"__proto__":{"admin":true}}]}}', 400, "DROVER-API-005"],
  ["a long integer", '{"agent_name":"x","parameters":{"a":[1,12345678901234567890]}}', 400, "DROVER-PAR-005"],
  ["1e400", '{"agent_name":"x","parameters":{"a":1e400}}', 400, "DROVER-PAR-005"],
  ["constructor", '{"constructor":{"prototype":{}}}', 400, "DROVER-API-005"],
  ["an unknown field", '{"agent_name":"x","paramaters":{}}', 400, "DROVER-API-006"],
  ["a wrong type", '{"agent_name":7}', 400, "DROVER-API-006"],
  ["a number", "7", 400, "DROVER-API-006"],
  ["2 MB", JSON.stringify({ agent_name: "x", prompt: "x".repeat(2_000_000) }), 413, "DROVER-API-003"],
])("refuses a body (%s) with its own code", async (_what, body, status, code) => {
  const response = await post("/runs", body);
  expect([response.status, JSON.parse(response.text).code]).toEqual([status, code]);
});

test("names faults by their path", async () => {
  const { text } = await post("/runs", '{"agent_name":"x","demands":{"tags":["a",7]},"paramaters":{}}');
  expect(JSON.parse(text).faults).toEqual(
    expect.arrayContaining([
      { path: "body.demands.tags[1]", message: expect.any(String) },
      { path: "body.paramaters", message: "unknown field; did you mean parameters?" },
    ]),
  );
  const deep = await post("/runs", '{"a":[{"b":{"__proto__":1}}]}');
  expect(JSON.parse(deep.text).faults).toEqual([{ path: "body.a[0].b.__proto__", message: "forbidden key" }]);
});

const longName = "k".repeat(900_000);
const manyNames = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`${"k".repeat(30)}${index}`, 1]));

test.each([
  ["the name of a parameter", { agent_name: "strict", parameters: { [longName]: 1 } }, 400, "DROVER-PAR-001"],
  ["the names of many parameters", { agent_name: "strict", parameters: manyNames }, 400, "DROVER-PAR-001"],
  ["the value of a parameter", { agent_name: "strict", parameters: { a: longName } }, 400, "DROVER-PAR-001"],
  [
    "the name of a redacted parameter",
    { agent_name: "free", parameters: { [longName]: "[redacted:token]" } },
    400,
    "DROVER-PAR-007",
  ],
  ["an unknown field", { agent_name: "free", [longName]: 1 }, 400, "DROVER-API-006"],
  ["the path of a forbidden key", `{"parameters":{"${longName}":{"__proto__":1}}}`, 400, "DROVER-API-005"],
  ["the path of a number", `{"parameters":{"${longName}":1e999}}`, 400, "DROVER-PAR-005"],
  [
    "a path of 60 names",
    `${`{"${"k".repeat(15_000)}":`.repeat(60)}12345678901234567891${"}".repeat(60)}`,
    400,
    "DROVER-PAR-005",
  ],
  [
    "escaped characters",
    { agent_name: "strict", parameters: { ["\u0001".repeat(150_000)]: 1 } },
    400,
    "DROVER-PAR-001",
  ],
])("keeps the response short that refuses %s", async (_what, body, status, code) => {
  await coordinator.client.agents.put("free", { command: "true" });
  await coordinator.client.agents.put("strict", {
    command: "true",
    parameters_schema: { type: "object", properties: { a: { enum: ["b"] } }, additionalProperties: false },
  });
  const { text, status: actualStatus } = await post("/runs", typeof body === "string" ? body : JSON.stringify(body));
  expect([actualStatus, JSON.parse(text).code]).toEqual([status, code]);
  expect(text.length).toBeLessThan(100_000);
  expect(JSON.parse(text).faults).not.toEqual([]);
});

test("keeps the response short that refuses a long content type, query name or cron expression", async () => {
  const responses = [
    await post("/runs", "{}", { "content-type": `x/${"y".repeat(20_000)}` }),
    await rawCall(coordinator.url, { path: `/me?${"q".repeat(20_000)}=1`, headers }),
    await post("/schedules/preview", JSON.stringify({ cron: "*".repeat(100_000), timezone: "Z".repeat(100_000) })),
  ];
  for (const { status, text } of responses) {
    expect(status).toBeGreaterThanOrEqual(400);
    expect(text.length).toBeLessThan(10_000);
  }
});

test.each(["text/plain", "application/x-www-form-urlencoded", "application/jsonx", "text/json; application/json"])(
  "refuses a body of type %s with 415",
  async (type) => {
    expect((await post("/runs", "{}", { "content-type": type })).status).toBe(415);
  },
);

/** Sends a body in chunks of 64 KB that never ends on its own. `response` is what has arrived of it. */
function startEndlessBody() {
  const { hostname, port } = new URL(coordinator.url);
  const socket = connect(Number(port), hostname);
  const body = { socket, response: "", sent: 0, send };
  socket.on("data", (chunk) => (body.response += chunk.toString()));
  socket.on("error", () => {});
  socket.write(
    `POST /runs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${headers["authorization"]}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
  );
  return body;

  async function send(): Promise<void> {
    const hasRoom = socket.write(`10000\r\n${"x".repeat(0x10000)}\r\n`);
    body.sent += 0x10000;
    await new Promise((resolve) => {
      if (hasRoom) return setImmediate(resolve);
      // The socket's buffer is full, so wait until it has drained.
      for (const event of ["drain", "close"]) socket.once(event, resolve);
      return undefined;
    });
  }
}

test("refuses a body above its limit before it ends, even without a Content-Length", async () => {
  const body = startEndlessBody();
  while (body.sent < 4 * 1024 * 1024) await body.send();
  await expect.poll(() => body.response).toContain("DROVER-API-003");
  expect(body.response).toMatch(/^HTTP\/1\.1 413 /);
  body.socket.destroy();
});

test("disconnects a client that never stops sending", async () => {
  const body = startEndlessBody();
  const deadline = Date.now() + 120_000;
  while (!body.socket.destroyed && Date.now() < deadline) await body.send();
  expect(body.socket.destroyed).toBe(true);
  // Data in flight when the connection closes may destroy the response.
  expect(body.response).toMatch(/^(HTTP\/1\.1 413 |$)/);
  expect(await coordinator.client.health()).toMatchObject({ status: "ok" });
});

test.each([
  ["that is not base64", "bogus"],
  ["that is empty", ""],
  ["without an id", "cnVuczo"],
  ["of another list", Buffer.from("sessions:x").toString("base64url")],
  ["that is too long", "x".repeat(10_000)],
])("refuses a cursor %s", async (_what, cursor) => {
  const { status, text } = await rawCall(coordinator.url, {
    path: `/runs?cursor=${encodeURIComponent(cursor)}`,
    headers,
  });
  expect([status, JSON.parse(text).faults[0].path]).toEqual([400, "query.cursor"]);
});

test.each(["%00", "..%2f..%2fetc%2fpasswd", "%F0%9F%98%80", "x".repeat(500), "%E0%A4%A", "' or 1=1 --", "__proto__"])(
  "finds no run with the id %s",
  async (id) => {
    const { status } = await rawCall(coordinator.url, { path: `/runs/${id.replaceAll(" ", "%20")}`, headers });
    expect([400, 404]).toContain(status);
  },
);

test("survives input that is not HTTP", async () => {
  const { hostname, port } = new URL(coordinator.url);
  for (const garbage of [
    "\0\0\0\0",
    "GET\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    `GET / HTTP/1.1\r\nHost: x\r\nX: ${"y".repeat(100_000)}\r\n\r\n`,
    "GET http://[/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
  ]) {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    socket.end(garbage);
    await new Promise((resolve) => socket.on("close", resolve).resume());
  }
  expect(await coordinator.client.health()).toMatchObject({ status: "ok" });
});
