// A browser attaches the session cookie to requests of any page. The Origin header says which page made the request.
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { routes } from "./routes.ts";
import { needsNoToken } from "./rule.ts";

let coordinator: TestCoordinator;
let cookie: string;
beforeAll(async () => {
  coordinator = await startTestCoordinator({ publicUrls: ["https://drover.example"] });
  cookie = await signIn();
});
afterAll(() => coordinator.dispose());

const writingRoutes = routes.filter(({ method, rule }) => method !== "get" && !needsNoToken(rule));

/** Origins of other pages, some on the same machine or with a similar name. */
const foreignOrigins = (url: string): (string | undefined)[] => [
  undefined,
  "null",
  "https://evil.example",
  "http://127.0.0.1:1",
  "http://localhost:1",
  url.replace("127.0.0.1", "localhost"),
  url.replace("http:", "https:"),
  `${url}.evil.example`,
  `${url}/`,
  "http://drover.example",
  "https://drover.example.evil.example",
  "https://evil.example#https://drover.example",
];

test.each(writingRoutes.map(({ method, path }) => [method.toUpperCase(), path.replaceAll(/\{[^}]*\}/g, "x")]))(
  "%s %s takes no session cookie from the page of another origin",
  async (method, path) => {
    for (const origin of foreignOrigins(coordinator.url)) {
      const response = await call(method, path, origin);
      expect([origin, response.status, JSON.parse(response.text).code]).toEqual([origin, 403, "DROVER-API-013"]);
    }
  },
);

test("an admin can create tokens from the dashboard, but a page of another origin cannot", async () => {
  const body = { role: "admin", subject: "made-by-a-page" };
  for (const origin of foreignOrigins(coordinator.url)) await call("POST", "/tokens", origin, body);
  const listCreated = async () =>
    (await coordinator.client.tokens.list()).items.filter((item) => item.subject === body.subject);
  expect(await listCreated()).toEqual([]);
  expect((await call("POST", "/tokens", coordinator.url, body)).status).toBe(201);
  expect(await listCreated()).toHaveLength(1);
});

test("refuses a session token in the Authorization header, where it would skip the check of Origin", async () => {
  const token = /=(drvb_\w+)/.exec(cookie)![1]!;
  for (const scheme of ["Cookie", "cookie", "COOKIE", "Bearer"])
    for (const [method, path] of [
      ["GET", "/me"],
      ["POST", "/tokens"],
    ] as const) {
      const response = await rawCall(coordinator.url, {
        method,
        path,
        headers: { host: host(), authorization: `${scheme} ${token}`, "content-type": "application/json" },
        ...(method === "POST" ? { body: JSON.stringify({ role: "admin", subject: "from-a-header" }) } : {}),
      });
      expect([scheme, path, response.status, JSON.parse(response.text).code]).toEqual([
        scheme,
        path,
        401,
        "DROVER-API-009",
      ]);
    }
});

test("a cookie issued over TLS is marked Secure", async () => {
  expect(await signIn("https://drover.example")).toMatch(/; Secure$/);
  expect(await signIn()).not.toContain("Secure");
});

const host = (): string => new URL(coordinator.url).host;

function call(method: string, path: string, origin: string | undefined, body: unknown = {}) {
  return rawCall(coordinator.url, {
    method,
    path,
    headers: { host: host(), cookie, "content-type": "application/json", ...(origin === undefined ? {} : { origin }) },
    body: JSON.stringify(body),
  });
}

async function signIn(origin = coordinator.url): Promise<string> {
  const { code } = await coordinator.client.signIn.link();
  const { headers } = await rawCall(coordinator.url, {
    method: "POST",
    path: "/sign-in",
    headers: { host: host(), "content-type": "application/json", origin },
    body: JSON.stringify({ code }),
  });
  return String([headers["set-cookie"]].flat()[0]);
}
