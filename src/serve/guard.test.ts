import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { routes } from "./routes.ts";

let coordinator: TestCoordinator;
let ownHost: string;
beforeAll(async () => {
  coordinator = await startTestCoordinator({ publicUrls: ["https://drover.example:8443"] });
  ownHost = new URL(coordinator.url).host;
});
afterAll(() => coordinator.dispose());

const badHosts = [
  "evil.example",
  "127.0.0.1.evil.example",
  "localhost.evil.example",
  "evil.example:80",
  "127.0.0.1@evil.example",
  "0.0.0.0",
  "[::ffff:127.0.0.1]",
  "drover.example",
  "169.254.169.254",
];
const badOrigins = [
  "https://evil.example",
  "null",
  "http://localhost:1",
  "http://127.0.0.1",
  "file://",
  "https://drover.example",
  "http://evil.example:8443",
  "",
];

const everyRoute = routes.map((route) => [`${route.method.toUpperCase()} ${route.path}`, route] as const);

test.each(everyRoute)("%s refuses every foreign Host and Origin", async (_name, route) => {
  const path = route.path.replaceAll(/\{\w+\}/g, "x");
  const method = route.method.toUpperCase();
  const otherScheme = `https://${ownHost}`;
  const authorization = `Bearer ${coordinator.adminToken}`;
  for (const accept of ["application/json", "text/event-stream"]) {
    for (const host of badHosts) {
      const { status, text } = await rawCall(coordinator.url, {
        method,
        path,
        headers: { authorization, accept, host },
        headOnly: true,
      });
      // The status is 400 if the value is not a host name at all.
      expect([status === 403 || status === 400, host, text]).toEqual([
        true,
        host,
        expect.stringMatching(/DROVER-API-0(12|29)/),
      ]);
    }
    for (const origin of [...badOrigins, otherScheme]) {
      const { status, text, headers } = await rawCall(coordinator.url, {
        method,
        path,
        headers: { authorization, accept, origin },
        headOnly: true,
      });
      expect([status, origin, text]).toEqual([403, origin, expect.stringContaining("DROVER-API-013")]);
      expect(Object.keys(headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  }
});

test("accepts its own origin, public addresses and requests without an Origin", async () => {
  const authorization = `Bearer ${coordinator.adminToken}`;
  for (const headers of [
    {},
    { origin: `http://${ownHost}` },
    { host: "drover.example:8443", origin: "https://drover.example:8443" },
    { host: "localhost:8765" },
    { host: "[::1]:1" },
  ]) {
    expect((await rawCall(coordinator.url, { path: "/runs", headers: { authorization, ...headers } })).status).toBe(
      200,
    );
  }
});

test("names the page's origin, or the Sec-Fetch-Site of a request without one", async () => {
  const send = async (headers: Record<string, string>) =>
    JSON.parse((await rawCall(coordinator.url, { path: "/runs", headers })).text);
  expect(await send({ origin: "https://evil.example" })).toMatchObject({
    detail: "Requests from web pages of https://evil.example are not accepted.",
    next: expect.stringContaining("public_urls"),
  });
  const refused = await send({ "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" });
  expect(refused).toMatchObject({
    code: "DROVER-API-013",
    detail: "Requests from other web pages are not accepted (Sec-Fetch-Site: cross-site).",
  });
  expect(refused.next).not.toContain("public_urls");
});

test("a form on another page cannot submit a run, even with auth off", async () => {
  const open = await startTestCoordinator({ authEnabled: false });
  try {
    const body = '{"agent_name":"echo","parameters":{}}';
    for (const type of [
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "text/plain",
      "text/plain; application/json",
    ]) {
      const asForm = await rawCall(open.url, {
        method: "POST",
        path: "/runs",
        headers: { "content-type": type },
        body,
      });
      expect(asForm.status).toBe(415);
      const crossSiteHeaders = { "content-type": type, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" };
      expect((await rawCall(open.url, { method: "POST", path: "/runs", headers: crossSiteHeaders, body })).status).toBe(
        403,
      );
    }
    expect((await open.client.runs.list()).items).toEqual([]);
  } finally {
    await open.dispose();
  }
});

test.each([
  "GET /health HTTP/1.0\r\n\r\n",
  "GET /health HTTP/1.1\r\nHost:\r\n\r\n",
  "GET http://127.0.0.1/health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
])("refuses %j", async (request) => {
  const { hostname, port } = new URL(coordinator.url);
  const socket = connect(Number(port), hostname);
  let response = "";
  socket.on("data", (chunk) => (response += chunk.toString()));
  // Do not end the socket: that would count as a disconnect.
  socket.write(request);
  await expect.poll(() => response).toMatch(/^HTTP\/1\.1 40[03] /);
  socket.destroy();
});

test("does not grant a preflight request", async () => {
  const headers = { origin: "https://evil.example", "access-control-request-method": "POST" };
  const { status, headers: responseHeaders } = await rawCall(coordinator.url, {
    method: "OPTIONS",
    path: "/runs",
    headers,
  });
  expect(status).toBe(403);
  expect(responseHeaders["access-control-allow-origin"]).toBeUndefined();
});

test.each([
  ["a foreign Host", "POST /runs", ["host: evil.example"], 403],
  ["no token", "POST /runs", ["content-type: application/json"], 401],
  ["a wrong token for a file", "POST /runner/files", ["authorization: Bearer x"], 401],
  ["an unknown route", "POST /nothing", [], 404],
  ["a body that is too large", "POST /runs", ["content-type: application/json", "TOKEN"], 413],
  ["a file without an attempt", "POST /runner/files", ["TOKEN"], 400],
])("a client that is still sending receives the refusal: %s", async (_what, request, headers, status) => {
  const token = `authorization: Bearer ${coordinator.adminToken}`;
  const response = await sendSlowly(
    `${request} HTTP/1.1`,
    headers.map((line) => (line === "TOKEN" ? token : line)),
  );
  expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*application/problem\\+json[^]*DROVER-`));
});

/** Sends the body in pieces without reading, then returns the response. */
async function sendSlowly(requestLine: string, headers: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(coordinator.url);
  const socket = connect(Number(port), hostname);
  const [piece, pieces] = [Buffer.alloc(64 * 1024, "x"), 64];
  const host = headers.some((line) => line.startsWith("host:")) ? [] : [`host: ${ownHost}`];
  const lines = [requestLine, ...host, ...headers, `content-length: ${piece.length * pieces}`, "connection: close"];
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  const closed = once(socket, "close");
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  for (let sent = 0; sent < pieces; sent += 1) {
    await new Promise<void>((resolve, reject) => socket.write(piece, (error) => (error ? reject(error) : resolve())));
    await new Promise(setImmediate);
  }
  await closed;
  return text;
}
