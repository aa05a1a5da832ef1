import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { useDrover } from "./drover-ui.ts";

const ui = useDrover();
const foreignScript = readFileSync(join(import.meta.dirname, "foreign-page.js"), "utf8");

/** A request from a script of the page, with the page's cookie. */
const ask = (path: string, init: object = {}): string =>
  `fetch(${JSON.stringify(path)}, ${JSON.stringify({ headers: { "content-type": "application/json" }, ...init })}).then(({ status }) => status)`;

test("a viewer's browser is read-only, and no script can read its cookie", async () => {
  const { token } = await ui.client.tokens.create({ role: "viewer", subject: "vera" });
  const { page, context } = await ui.open({ token });
  expect(await page.evaluate("document.cookie")).toBe("");
  const [cookie] = await context.cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", domain: new URL(ui.url).hostname });
  expect(await page.evaluate(ask("/runs"))).toBe(200);
  for (const [path, init] of [
    ["/runs", { method: "POST", body: JSON.stringify({ agent_name: "echo", parameters: { message: "x" } }) }],
    ["/agents/mine", { method: "PUT", body: JSON.stringify({ command: "true" }) }],
    ["/tokens", { method: "POST", body: JSON.stringify({ role: "admin", subject: "vera" }) }],
    ["/sign-in/links", { method: "POST", body: "{}" }],
    ["/tokens", {}],
  ] as const)
    expect([path, await page.evaluate(ask(path, init))]).toEqual([path, 403]);
  // The page does not offer it either.
  await page.goto(`${ui.url}/ui/settings`);
  await page.getByText("vera, viewer").waitFor();
  expect(await page.getByRole("button", { name: "New token" }).count()).toBe(0);
});

test("revoking a token ends the streams of its browsers, and their pages sign out", async () => {
  const { token, token_id } = await ui.client.tokens.create({ role: "user", subject: "rob" });
  const { page } = await ui.open({ token });
  // A second stream beside the one that all tabs share.
  await page.evaluate(`void (window.streamEnd = fetch("/events", { headers: { accept: "text/event-stream" } }).then(async ({ body }) => {
    const reader = body.getReader();
    window.streamOpen = true;
    while (!(await reader.read()).done);
  }).catch(() => undefined).then(() => "ended"))`);
  await expect.poll(() => page.evaluate("window.streamOpen")).toBe(true);
  await ui.client.tokens.revoke(token_id);
  expect(await page.evaluate("window.streamEnd")).toBe("ended");
  expect(await page.evaluate(ask("/me"))).toBe(401);
  await page.getByText("You are signed out").waitFor();
  expect(await page.locator("nav[aria-label=Pages]").count()).toBe(0);
});

test("a page from another origin can neither read nor write with the cookie of a signed-in browser", async () => {
  const { context, faults } = await ui.open();
  const stateBefore = await snapshot();
  // On the same host, where even a SameSite cookie is sent, and on another host, where it is not.
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html").end(`<body><script>${foreignScript}</script>`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => (server.closeAllConnections(), server.close(() => resolve()))));
  const { port } = server.address() as AddressInfo;
  for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
    const page = await context.newPage();
    await page.goto(origin);
    const results = await page.evaluate(`attack(${JSON.stringify(ui.url)})`);
    expect([origin, results]).toEqual([
      origin,
      {
        read: "refused",
        "read with a simple header": "refused",
        stream: "refused",
        image: "refused",
        script: "refused",
        write: "refused",
        "write as text": "opaque or refused",
        delete: "refused",
        "look into a window": "refused",
      },
    ]);
    // The dashboard was not framed; the frame shows the browser's error page instead.
    expect(page.frames().map((frame) => new URL(frame.url()).origin)).toEqual([origin, "null"]);
    for (const enctype of ["text/plain", "application/x-www-form-urlencoded"]) {
      await page.goto(origin);
      await page.evaluate(`submitForm(${JSON.stringify(ui.url)}, ${JSON.stringify(enctype)})`);
      await expect.poll(() => page.locator("body").innerText()).toMatch(/DROVER-API-013|DROVER-API-0\d\d/);
    }
    await page.close();
  }
  expect(await snapshot()).toEqual(stateBefore);
  // The foreign page's faults are expected.
  faults.length = 0;
});

async function snapshot(): Promise<unknown> {
  const [runs, agents, tokens] = await Promise.all([
    ui.client.runs.list({ limit: 1000 }),
    ui.client.agents.list(),
    ui.client.tokens.list(),
  ]);
  return [runs.items.length, agents.items.length, tokens.items.length];
}
