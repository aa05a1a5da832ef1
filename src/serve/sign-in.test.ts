import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { freshDatabase } from "../../test/postgres/fresh-database.ts";
import { createClient, type NewToken } from "../wire/client.ts";

let coordinator: TestCoordinator;
let drop: (() => Promise<void>) | null = null;

describe.each(["sqlite", "postgres"])("signing in, with a record in %s", (engine) => {
  beforeAll(async () => {
    const database = engine === "sqlite" ? null : await freshDatabase();
    drop = database?.drop ?? null;
    coordinator = await startTestCoordinator({
      database: database && { url: database.url, secret: randomBytes(32) },
      webDirectory: createWebDirectory(),
    });
  });
  afterAll(async () => {
    expect(coordinator.defects).toEqual([]);
    await coordinator.dispose();
    await drop?.();
  });

  test("a link signs in once, with a cookie that scripts and other sites cannot use", async () => {
    const { code } = await coordinator.client.signIn.link();
    const response = await exchange(code!);
    expect(response.status).toBe(204);
    const [cookie = ""] = [response.headers["set-cookie"]].flat();
    expect(cookie).toMatch(/^drover_\w+=drvb_[0-9A-Za-z]{32}; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(await getMe(cookie)).toMatchObject({ subject: "admin", role: "admin", by: "browser" });
    const second = await exchange(code!);
    expect([second.status, JSON.parse(second.text).code]).toEqual([409, "DROVER-WEB-001"]);
  });

  test("refuses an unknown code and other kinds of tokens", async () => {
    const { token } = await createToken({ role: "admin" });
    for (const code of ["drvl_0", token, coordinator.adminToken]) expect((await exchange(code)).status).toBe(409);
  });

  test("a cookie has the permissions of its token and no more", async () => {
    const { token } = await createToken({ role: "viewer", subject: "ann" });
    const cookie = await signIn(token);
    expect(await getMe(cookie)).toMatchObject({ subject: "ann", role: "viewer" });
    for (const path of ["/tokens", "/metrics"]) expect((await get(path, cookie)).status).toBe(403);
    expect((await post("/runs", cookie, { agent_name: "echo" })).status).toBe(403);
    // A cookie cannot renew itself and does not work as a bearer token.
    const adminCookie = await signIn(coordinator.adminToken);
    expect((await post("/sign-in/links", adminCookie, {})).status).toBe(403);
    // A stolen cookie must not become a token that outlives it.
    const other = await createToken({ role: "user", subject: "bob" });
    expect((await post(`/tokens/${other.token_id}/rotate`, await signIn(other.token), {})).status).toBe(403);
    const text = /=(drvb_\w+)/.exec(adminCookie)![1]!;
    const asBearer = await rawCall(coordinator.url, {
      path: "/me",
      headers: { host: host(), authorization: `Bearer ${text}` },
    });
    expect(asBearer.status).toBe(401);
  });

  test("with a cookie, refuses writes without the coordinator's own origin and reads from another origin", async () => {
    const cookie = await signIn(coordinator.adminToken);
    const call = (headers: Record<string, string>, method = "POST") =>
      rawCall(coordinator.url, {
        method,
        path: method === "POST" ? "/runs" : "/runs?limit=1",
        headers: { host: host(), cookie, "content-type": "application/json", ...headers },
        ...(method === "POST" ? { body: "{}" } : {}),
      }).then(({ status }) => status);
    expect(await call({})).toBe(403);
    expect(await call({ origin: "http://127.0.0.1:1" })).toBe(403);
    expect(await call({ origin: "null" })).toBe(403);
    expect(await call({ origin: coordinator.url })).toBe(400);
    expect(await call({ "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" }, "GET")).toBe(403);
    expect(await call({ "sec-fetch-site": "same-origin" }, "GET")).toBe(200);
  });

  test("signing out ends only that browser's session", async () => {
    const [one, other] = [await signIn(coordinator.adminToken), await signIn(coordinator.adminToken)];
    const response = await rawCall(coordinator.url, {
      method: "DELETE",
      path: "/sign-in",
      headers: { host: host(), cookie: one, origin: coordinator.url },
    });
    expect([response.status, String(response.headers["set-cookie"])]).toEqual([
      204,
      expect.stringContaining("Max-Age=0"),
    ]);
    expect([(await get("/me", one)).status, (await get("/me", other)).status]).toEqual([401, 200]);
  });

  test("revoking the token ends its cookies, their streams and its unused links", async () => {
    const { token, token_id } = await createToken({ role: "user", subject: "ben" });
    const cookie = await signIn(token);
    const { code } = await createClient({ url: coordinator.url, token }).signIn.link();
    const stream = await openStream(cookie);
    await coordinator.client.tokens.revoke(token_id);
    await stream.whenEnded;
    expect((await get("/me", cookie)).status).toBe(401);
    expect((await exchange(code!)).status).toBe(409);
  });

  test("rotating a token ends its cookies; a browser's session never outlives its token", async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const { token, token_id } = await createToken({ role: "user", subject: "cat", expires_at });
    const cookie = await signIn(token);
    const listed = (await coordinator.client.tokens.list({ limit: 1000 })).items;
    expect(listed.find(({ kind, subject }) => kind === "browser" && subject === "cat")).toMatchObject({ expires_at });
    expect(listed.some(({ kind }) => kind === "link")).toBe(false);
    await coordinator.client.tokens.rotate(token_id, { overlap_seconds: 0 });
    expect((await get("/me", cookie)).status).toBe(401);
  });
});

test("each page response has its own policy and nonce; assets are cached forever", async () => {
  const ui = await startTestCoordinator({ webDirectory: createWebDirectory() });
  try {
    const pages = await Promise.all(["/ui/", "/ui/runs/1?tab=log", "/ui"].map((path) => fetch(ui.url + path)));
    const nonces = new Set<string>();
    for (const page of pages) {
      const policy = page.headers.get("content-security-policy") ?? "";
      const nonce = /style-src 'self' 'nonce-([^']+)'/.exec(policy)?.[1] ?? "";
      expect(policy).toContain("default-src 'none'; script-src 'self'; ");
      expect(await page.text()).toBe(`<html nonce="${nonce}">`);
      nonces.add(nonce);
    }
    expect(nonces.size).toBe(3);
    const asset = await fetch(`${ui.url}/ui/assets/app-1a2b.js`);
    expect(asset.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(await asset.text()).toBe("app()");
    for (const path of ["/ui/assets/gone.js", "/ui/..%2fsecret.js", "/ui/assets/..%2f..%2fsecret.js"])
      expect([path, await (await fetch(ui.url + path)).text()]).not.toEqual([path, "secret"]);
    const root = await fetch(`${ui.url}/`, { redirect: "manual" });
    expect([root.status, root.headers.get("location")]).toEqual([302, "/ui/"]);
  } finally {
    await ui.dispose();
  }
});

test("explains how to build a missing dashboard", async () => {
  const withoutDashboard = await startTestCoordinator({ webDirectory: null });
  try {
    const response = await fetch(`${withoutDashboard.url}/ui/`);
    expect([response.status, await response.json()]).toMatchObject([404, { code: "DROVER-WEB-002" }]);
  } finally {
    await withoutDashboard.dispose();
  }
});

function createWebDirectory(): string {
  const directory = join(mkdtempSync(join(tmpdir(), "drover-web-")), "web");
  mkdirSync(join(directory, "assets"), { recursive: true });
  writeFileSync(join(directory, "index.html"), '<html nonce="__NONCE__">');
  writeFileSync(join(directory, "assets", "app-1a2b.js"), "app()");
  writeFileSync(join(directory, "..", "secret.js"), "secret");
  temporaryDirectories.push(join(directory, ".."));
  return directory;
}

const temporaryDirectories: string[] = [];
afterAll(() => temporaryDirectories.forEach((directory) => rmSync(directory, { recursive: true })));

const host = (): string => new URL(coordinator.url).host;
const createToken = (token: Partial<NewToken>) =>
  coordinator.client.tokens.create({ role: "user", subject: "ann", ...token });

function exchange(code: string) {
  return rawCall(coordinator.url, {
    method: "POST",
    path: "/sign-in",
    headers: { host: host(), "content-type": "application/json", origin: coordinator.url },
    body: JSON.stringify({ code }),
  });
}

/** Signs in with this token and returns the cookie as a browser sends it. */
async function signIn(token: string): Promise<string> {
  const { code } = await createClient({ url: coordinator.url, token }).signIn.link();
  return String([(await exchange(code!)).headers["set-cookie"]].flat()[0]).split(";", 1)[0]!;
}

const get = (path: string, cookie: string) => rawCall(coordinator.url, { path, headers: { host: host(), cookie } });
const getMe = async (cookie: string): Promise<unknown> => JSON.parse((await get("/me", cookie.split(";")[0]!)).text);
const post = (path: string, cookie: string, body: unknown) =>
  rawCall(coordinator.url, {
    method: "POST",
    path,
    headers: { host: host(), cookie, origin: coordinator.url, "content-type": "application/json" },
    body: JSON.stringify(body),
  });

function openStream(cookie: string): Promise<{ whenEnded: Promise<void> }> {
  return new Promise((resolve, reject) => {
    const clientRequest = request(
      `${coordinator.url}/events`,
      { headers: { cookie, accept: "text/event-stream" } },
      (response) => {
        expect(response.statusCode).toBe(200);
        response.on("error", () => undefined).resume();
        resolve({ whenEnded: new Promise((end) => response.on("close", end)) });
      },
    );
    clientRequest.on("error", reject).end();
  });
}
